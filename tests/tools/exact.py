"""exact.py PK RUNS - what is called exact: the report's sums, smallest and largest are those of the trace's own
durations and values, to the last digit; and so are those of the report that is rebuilt from the trace.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PK, RUNS = sys.argv[1], sys.argv[2]
MOMENTS = ("count", "sum", "min", "max", "mean", "stddev")


def record(folder):
    """The report of a run, its trace's text, and the same trace without the report that it holds."""
    trace, report = os.path.join(folder, "run.json"), os.path.join(folder, "report.json")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PK_")}
    subprocess.run([RUNS, "exact"], check=True, timeout=120, env=dict(
        environment, PK_TRACE_PATH=trace, PK_REPORT_PATH=report, PK_BACKENDS="none", PK_WARMUP_STEPS="1"))
    with open(trace, encoding="utf-8") as file:
        text = file.read()
    with open(trace, "w", encoding="utf-8") as file:
        file.write(text.replace('"perfkitReport":', '"nothing":'))
    rebuilt = subprocess.run([PK, "report", "--json", trace], check=True, capture_output=True, text=True, timeout=120)
    with open(report, encoding="utf-8") as file:
        return json.load(file), json.loads(text), json.loads(rebuilt.stdout)


def lacks(event):
    """Nanoseconds that were taken off a slice's duration: the picoseconds of its start (docs/internals/trace-format.md)."""
    return round(event["ts"] * 1e6) % 1000 if round(event["dur"] * 1e6) % 4 == 2 else 0


class Exact(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.live, cls.trace, cls.rebuilt = record(folder)

    def durations(self, name):
        return [round(e["dur"] * 1000) + lacks(e) for e in self.trace["traceEvents"] if e["ph"] == "X" and re.fullmatch(name, e["name"])]

    def compare(self, told, samples):
        self.assertEqual((told["count"], told["sum"], told["min"], told["max"]),
                         (len(samples), sum(samples), min(samples), max(samples)))

    def test_nothing_was_dropped(self):
        self.assertEqual((self.live["counts"]["dropped"], self.live["counts"]["points_dropped"]), (0, 0))
        self.assertFalse("perfkitReport" not in self.trace)

    def test_regions(self):
        for name in ("outer", "inner", "next"):
            for report in (self.live, self.rebuilt):
                row = next(row for row in report["regions"] if row["name"] == name)
                self.compare(row["time"], self.durations(name))

    def test_own_times(self):
        own = {row["name"]: row["self"] for row in self.live["regions"]}
        self.assertEqual(own, {row["name"]: row["self"] for row in self.rebuilt["regions"]})
        self.assertEqual(own["outer"], sum(self.durations("outer")) - sum(self.durations("inner|next")))

    def step_durations(self, kind):
        return [round(e["dur"] * 1000) for e in self.trace["traceEvents"]
                if e["name"].startswith("ProfilerStep#") and e["args"].get("kind") == kind]

    def test_steps(self):
        for report in (self.live, self.rebuilt):
            self.compare(report["steps"]["all"], self.step_durations(None))

    def test_steps_of_other_kinds(self):
        for report in (self.live, self.rebuilt):
            kinds = {row["name"]: row for row in report["steps"]["step_kinds"]}
            self.assertEqual(set(kinds), {"evaluation", 'evaluation "full"'})
            for name, row in kinds.items():
                self.compare(row["time"], self.step_durations(name))

    def test_time_between_steps(self):
        for report in (self.live, self.rebuilt):
            self.compare(report["steps"]["between"]["time"], self.durations("between steps"))

    def test_what_the_others_were_spent_on(self):
        """In the rebuilt report to a nanosecond a slice: those are cut where a step ends."""
        slices = len(self.durations("outer|inner|next"))
        parts = lambda report: report["steps"]["step_kinds"] + [report["steps"]["between"]]
        for live, rebuilt in zip(parts(self.live), parts(self.rebuilt)):
            self.assertEqual(sum(live["kinds"].values()), live["time"]["sum"])
            for kind, ns in live["kinds"].items():
                self.assertAlmostEqual(ns, rebuilt["kinds"][kind], delta=slices, msg=kind)

    def test_counter(self):
        values = [e["args"]["bytes"] for e in self.trace["traceEvents"] if e["ph"] == "C"]
        live, rebuilt = (report["counters"][0]["value"] for report in (self.live, self.rebuilt))
        self.compare(live, values)
        self.assertEqual(live, rebuilt)
        self.assertAlmostEqual(live["stddev"], 1000, delta=1000 / len(values))

    def test_both_reports(self):
        """Also the moments that are no sums."""
        for kind in ("regions", "counters"):
            key = "time" if kind == "regions" else "value"
            rebuilt = {row["name"]: row[key] for row in self.rebuilt[kind]}
            for row in self.live[kind]:
                for moment in MOMENTS:
                    a, b = row[key][moment], rebuilt[row["name"]][moment]
                    self.assertAlmostEqual(a, b, delta=abs(b) * 1e-15, msg=f"{row['name']} {moment}")

    def test_more_slices_than_are_kept_apart(self):
        """What lies in a slice that has not ended yet stays apart, at whichever of them room is made."""
        slices = '{{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":1,"ts":{}.{:03},"dur":{}}},\n'.format
        count = 70000
        for alone in range(3):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write('{"traceEvents":[\n')
                file.writelines(slices("alone", i, 0, "0.001") for i in range(alone))
                file.writelines(slices("inner", i, 100, "0.200") + slices("inner", i, 400, "0.300") + slices("outer", i, 0, "0.800")
                                for i in range(9, count))
                file.write(slices("last", count, 0, "0.001")[:-2] + "\n]}\n")
                file.flush()
                done = subprocess.run([PK, "report", "--json", file.name], check=True, capture_output=True, text=True)
            own = {row["name"]: row["self"] for row in json.loads(done.stdout)["regions"]}
            self.assertEqual((own["outer"], own["inner"]), ((count - 9) * 300, (count - 9) * 500))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
