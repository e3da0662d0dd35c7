"""spans.py PK RUNS - spans in trace, report, windows, metrics and captures, and in what a killed run leaves."""

import glob
import json
import os
import subprocess
import sys
import unittest

from traces import InFolder

PK, RUNS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
STEPS, EACH = 40, 5
SPANS = STEPS * EACH


class Spans(InFolder):
    def run_it(self, how="run", **options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        environment.update(PK_BACKENDS="none", PK_TRACE_PATH=self.path("run.json"), **options)
        return subprocess.run([RUNS, "spans", how], env=environment, check=False, timeout=300, cwd=self.folder,
                              capture_output=True).returncode

    def pk(self, *arguments):
        done = subprocess.run([PK, *arguments], check=False, capture_output=True, timeout=300, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        return done.stdout.decode()

    def events(self, path):
        with open(path, encoding="utf-8") as file:
            return [e for e in json.load(file)["traceEvents"] if e.get("cat") == "span"]

    def rows(self, report):
        return {row["name"]: row for row in report["regions"]}

    def check_pairs(self, events, whole=SPANS):
        """Each id has one begin and one end, of one name, in time; marks lie between."""
        by_id = {}
        for e in events:
            by_id.setdefault(e["id"], []).append(e)
        ended = 0
        for group in by_id.values():
            phases = sorted(group, key=lambda e: (e["ts"], "bne".index(e["ph"])))
            self.assertIn("".join(e["ph"] for e in phases), ("bne", "b", "be"))
            if len(phases) == 2:  # it never ended; viewers get an end
                begin, end = phases
                self.assertEqual((begin["name"], begin["tid"], begin["args"]["id"]), (end["name"], end["tid"], end["args"]["id"]))
                self.assertEqual(end["args"]["unfinished"], 1)
                self.assertGreaterEqual(end["ts"], begin["ts"])
            ended += len(phases) == 3
            if len(phases) == 3:
                begin, mark, end = phases
                self.assertEqual(begin["name"], end["name"])
                self.assertEqual(begin["args"]["id"], end["args"]["id"])
                self.assertAlmostEqual(mark["ts"] - mark["args"]["since_ns"] / 1000, begin["ts"], delta=0.01)
                self.assertNotEqual(begin["tid"], end["tid"])
        self.assertEqual(ended, whole)
        return by_id

    def test_the_trace_has_pairs_and_what_is_open(self):
        self.assertEqual(self.run_it(), 0)
        by_id = self.check_pairs(self.events(self.path("run.json")))
        self.assertEqual(len(by_id), SPANS + 1)
        self.assertEqual(sorted(len(group) for group in by_id.values()), [2, *[3] * SPANS])  # nothing is left open
        ids = {e["args"]["id"] for group in by_id.values() for e in group if e["ph"] == "b"}
        self.assertEqual(ids, set(range(SPANS)) | {str(2**64 - 1)})
        self.assertTrue(all(isinstance(e["id"], int) and e["id"] > 0 for e in self.events(self.path("run.json"))))

    def check_report(self, report, unfinished=1, twice=0):
        rows = self.rows(report)
        self.assertEqual(rows["request"]["span"], {"events": SPANS, "begun": SPANS, "ended": SPANS, "unfinished": 0,
                                                   "marks": 0})
        self.assertEqual((rows["request"]["kind"], rows["request"]["self"]), ("comm", 0))
        self.assertEqual(rows["queued"]["span"]["marks"], SPANS)
        self.assertEqual(rows["request"]["time"]["count"], SPANS)
        self.assertEqual(rows["user \"session\""]["span"]["unfinished"], unfinished)
        self.assertNotIn("span", rows["work"])
        spans = report["spans"]
        self.assertEqual((spans["begun"], spans["ended"], spans["unfinished"], spans["ended_twice"]),
                         (SPANS + 1, SPANS + 1 - unfinished, unfinished, twice))

    def test_the_report_and_the_one_made_of_the_trace_agree(self):
        self.assertEqual(self.run_it(PK_REPORT_PATH=self.path("report.json")), 0)
        with open(self.path("report.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.check_report(report)
        with open(self.path("run.json"), encoding="utf-8") as file:
            trace = json.load(file)
        del trace["perfkitReport"]
        with open(self.path("alone.json"), "w", encoding="utf-8") as file:
            json.dump(trace, file)
        rebuilt = json.loads(self.pk("report", "--json", self.path("alone.json")))
        self.check_report(rebuilt)
        self.assertEqual(rebuilt["spans"], report["spans"])
        for name in ("request", "queued"):
            ours, theirs = self.rows(report)[name], self.rows(rebuilt)[name]
            for figure in ("count", "sum", "min", "max"):
                self.assertEqual(ours["time"][figure], theirs["time"][figure], name + " " + figure)
        text = self.pk("report", self.path("run.json"))
        self.assertIn("SPANS from begin to end", text)
        self.assertRegex(text, r"\n  request +200      0 ")
        self.assertRegex(text, r"\n  queued +200 ")
        self.assertIn("unfinished: 1 of 201 spans", text)
        self.assertNotRegex(text.split("REGIONS")[1].split("SPANS")[0], "request|queued")

    def test_a_second_end_is_said(self):
        self.assertEqual(self.run_it("twice", PK_REPORT_PATH=self.path("report.json")), 0)
        with open(self.path("report.json"), encoding="utf-8") as file:
            self.check_report(json.load(file), unfinished=0, twice=1)
        self.assertIn("ended twice: 1 ", self.pk("report", self.path("run.json")))

    def test_what_a_killed_run_left(self):
        self.assertEqual(self.run_it("killed"), -9)
        self.pk("recover", self.path("run.json.arena"))
        self.check_pairs(self.events(self.path("run.json")))
        self.check_report(json.loads(self.pk("report", "--json", self.path("run.json"))))

    def test_a_capture_has_what_overlaps(self):
        self.assertEqual(self.run_it(PK_HISTORY_STEPS="4", PK_CAPTURE="every=10", PK_CAPTURE_PATH="kept-%s.json"), 0)
        files = glob.glob(self.path("kept-*.json"))
        self.assertTrue(files)
        for path in files:
            events = self.events(path)
            begins = [e["args"]["id"] for e in events if e["ph"] == "b"]
            self.assertEqual(begins.count(str(2**64 - 1)), 1)  # begun long before the history
            self.assertGreaterEqual(len(begins), EACH)
            self.assertLess(len(begins), SPANS)
            ids = [e["id"] for e in events if e["ph"] == "b"]
            self.assertEqual(len(ids), len(set(ids)))
            self.assertEqual(sorted(e["id"] for e in events if e["ph"] == "e"), sorted(ids))  # what is open at its end is marked
            self.assertIn(str(2**64 - 1), [e["args"]["id"] for e in events if e["ph"] == "e" and e["args"].get("unfinished")])

    def test_windows_and_metrics_have_them_as_regions(self):
        self.assertEqual(self.run_it(PK_WINDOWS_PATH=self.path("w.jsonl"), PK_WINDOW_STEPS="10",
                                     PK_METRICS_PATH=self.path("m.prom")), 0)
        merged = json.loads(self.pk("report", "--json", self.path("w.jsonl")))
        self.assertEqual(self.rows(merged)["request"]["time"]["count"], SPANS)
        with open(self.path("m.prom"), encoding="utf-8") as file:
            self.assertIn('"request"', file.read())


unittest.main(argv=sys.argv[:1])
