"""slow_step.py PK GOLDEN_FOLDER - what `pk report` says of a capture: why it was kept, what is missing, which paths
made its step slow; and the call tree. PK_WRITE_GOLDEN=1 writes the expected files."""

import json
import os
import subprocess
import sys
import unittest

import traces
from folder import InFolder
from slow_trace import MS, capture, io_reading, loop

PK, GOLDEN = sys.argv[1], sys.argv[2]
def run(*arguments, **more):
    return subprocess.run([PK, "report", *arguments], capture_output=True, timeout=300, check=False, text=True, **more)


class SlowStep(InFolder):
    def file(self, text, name="capture.json"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def report(self, *arguments, **more):
        done = run(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def usual_capture(self, **about):
        return self.file(capture(*loop([2 * MS, 2 * MS + 40_000, 2 * MS - 20_000, 43 * MS]), kernels=[41], refused=2, **about))

    def golden(self, name, found):
        path = os.path.join(GOLDEN, name)
        if os.environ.get("PK_WRITE_GOLDEN"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(found)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(found, file.read())

    # ---- the capture ----

    def test_text_and_json(self):
        path = self.usual_capture()
        self.golden("report-capture.txt", self.report("--tree", path))
        self.golden("report-capture.json", self.report("--json", "--tree", path))

    def test_a_report_of_it_says_the_same(self):
        path = self.usual_capture()
        saved = self.file(self.report("--json", "--tree", path), "saved.json")
        self.assertEqual(self.report("--tree", path), self.report("--tree", saved))

    def test_times_add_up_to_the_step(self):
        beside = json.loads(self.report("--json", self.usual_capture()))["beside"]
        own = [row for row in beside["paths"] if not row["where"]]
        self.assertEqual(sum(row["self"] for row in own), beside["took"])
        self.assertEqual((beside["step"], beside["usual_count"], beside["same_kind"]), (41, 3, True))
        self.assertEqual(own[0], {"where": "", "path": "load", "kind": "data", "calls": 1, "self": 43 * MS, "usual": 2 * MS})
        self.assertEqual([row["path"] for row in own if row["path"].startswith("forward")],
                         ["forward", "forward > attention", "forward > mlp[layer=0]", "forward > mlp[layer=1]"])
        outside = next(row for row in own if not row["path"])
        self.assertEqual((outside["kind"], outside["self"], outside["usual"]), ("untracked", 500_000, 500_000))
        elsewhere = {(row["where"], row["path"]): (row["self"], row["usual"]) for row in beside["paths"] if row["where"]}
        self.assertEqual(elsewhere["loader", "read file"], (43 * MS, 3 * MS))
        self.assertEqual(elsewhere["GPU 0", "gemm"], (MS, MS))
        # What reaches beyond the step counts as far as it is in it.
        self.assertEqual(elsewhere["4242/4260", "monitor"], (beside["took"], beside["usual"]))

    def with_readings(self, loads, readings):
        events, rows = loop(loads)
        for row, reading in zip(rows, readings):
            if reading is not None:
                events += io_reading(row["start_ns"] + row["duration_ns"], **reading)
        path = self.file(capture(events, rows))
        beside = json.loads(self.report("--json", path))["beside"]
        return {row["name"]: row for row in beside.get("io", [])}, " ".join(self.report(path).split())

    def test_what_a_slow_step_wrote(self):
        few = {"written": 4096, "operations": 2}
        rows, text = self.with_readings([2 * MS, 2 * MS, 2 * MS, 43 * MS],
                                        [few, few, few, {"written": 2 << 30, "device_written": 2 << 30, "operations": 900}])
        self.assertEqual(rows["io.written"], {"name": "io.written", "value": 2 << 30, "steps": 1, "usual": 4096, "telling": True})
        self.assertEqual((rows["io.read"]["value"], rows["io.read"]["telling"]), (0, False))
        self.assertEqual((rows["io.operations"]["usual"], rows["io.operations"]["telling"]), (2, False))
        self.assertIn("load +41.0 ms; all else 0 ns. In it the process wrote 2.15 GB (usually 4.10 KB), dirtied 2.15 GB for devices (usually 0 B).",
                      text)

    def test_what_is_usual_is_not_told(self):
        much = {"read": 5 << 20, "operations": 5000}
        rows, text = self.with_readings([2 * MS, 2 * MS, 43 * MS], [much, much, much | {"read": 6 << 20, "operations": 5100}])
        self.assertEqual([row["telling"] for row in rows.values()], [False] * 5)
        self.assertNotIn("the process", text)
        _, text = self.with_readings([2 * MS, 2 * MS, 43 * MS], [much, much, much | {"operations": 12000}])
        self.assertIn("In it the process made 12.0K calls (usually 5.00K).", text)

    def test_readings_of_several_steps(self):
        """Of the slow step's reading, and of usual ones: each has the mean. Those that it has are no others."""
        rows, text = self.with_readings([2 * MS, 2 * MS, 2 * MS, 2 * MS, 43 * MS],
                                        [None, {"written": 8 << 20, "steps": 2}, {"written": 4 << 20}, None, {"written": 3 << 30, "steps": 2}])
        self.assertEqual((rows["io.written"]["value"], rows["io.written"]["steps"], rows["io.written"]["usual"]), (3 << 30, 2, 4 << 20))
        self.assertIn("In it and the 1 before it the process wrote 3.22 GB (usually 8.39 MB).", text)

    def test_readings_that_say_nothing(self):
        """Of the step alone, of none but it, of time between steps, and nonsense."""
        some = {"written": 1 << 30}
        for readings in ([None, None, some], [some, some, None], [some, some, some | {"steps": 3}], [some, some, some | {"steps": 0}],
                         [some, some, some | {"steps": 1e30}], [some, some, some | {"read": -5}], [some, some, some | {"read": 1e300}], [some, some, some | {"read": '"x"'}]):
            rows, text = self.with_readings([2 * MS, 2 * MS, 43 * MS], readings)
            self.assertEqual(rows, {}, readings)
            self.assertNotIn("the process", text)

    def test_steps_of_another_kind_are_not_usual(self):
        events, rows = loop([2 * MS, 90 * MS, 2 * MS, 43 * MS], kinds={39: "evaluation"})
        beside = json.loads(self.report("--json", self.file(capture(events, rows, slow_step=41, slow_ns=rows[3]["duration_ns"],
                                                                    median_ns=12_700_000))))["beside"]
        self.assertEqual((beside["step"], beside["usual_count"], beside["same_kind"]), (41, 2, True))
        text = self.report(self.file(capture(*loop([2 * MS, 43 * MS], kinds={39: "evaluation"}))))
        self.assertIn("1 usual step of the file, which are of another kind", " ".join(text.split()))

    def test_other_slow_steps_are_not_usual(self):
        beside = json.loads(self.report("--json", self.file(capture(*loop([2 * MS, 40 * MS, 43 * MS, 41 * MS])))))["beside"]
        self.assertEqual((beside["step"], beside["usual_count"], beside["usual_step"]), (40, 1, 38))

    def test_what_is_missing(self):
        events, rows = loop([2 * MS, 43 * MS])
        text = " ".join(self.report(self.file(capture(events, rows, cut=True, beginning_gone=True, full=True, records_lost=7, refused=1,
                                                      kernels=[]))).split())
        for words in ("Cut: the run ended before its last step.", "no longer in the history", "longer than capture_bytes_per_hour allowed",
                      "had no room for 7 records", "By then 1 other capture had been refused", "without kernels"):
            self.assertIn(words, text)
        self.assertNotIn("Nothing of it was cut", text)

    def test_machine_and_build(self):
        events, rows = loop([2 * MS, 43 * MS])
        block = {"memory": 8 << 30, "processors": 2, "cpu": "Some CPU", "architecture": "x86_64", "kernel": "Linux 6.1", "gpu": "",
                 "driver": "", "command": "train --fast", "compiler": "gcc 12", "program_compiler": "", "build_id": "ab12",
                 "commit": "0123456789abcdef0123456789abcdef01234567", "branch": "main"}
        path = self.file(capture(events, rows, environment=block))
        self.assertEqual(json.loads(self.report("--json", path))["environment"], block)
        text = self.report(path)
        for words in ("MACHINE AND BUILD", "Some CPU", "train --fast", "commit 0123456789ab on main"):
            self.assertIn(words, text)
        for wrong in [], {}, {"memory": "much"}, {"memory": 1, "cpu": 7}:
            report = self.report("--json", self.file(capture(events, rows, environment=wrong)))
            self.assertNotIn("environment", json.loads(report))

    def test_other_reasons(self):
        for reason, words in (("steps", "asked for by number"), ("every", "every so many"), ("cycle", "A part of a cycle"),
                              ("request", "Asked for by `pk capture`"), ("call", "(pk_capture): loss is not a number.")):
            text = self.report(self.file(capture(*loop([2 * MS, 3 * MS, 2 * MS]), reason=reason, text="loss is not a number" if reason == "call" else "")))
            self.assertIn(words, text)
            self.assertIn("THE LONGEST: step 39", text)

    def test_one_step_alone(self):
        text = self.report(self.file(capture(*loop([2 * MS]), reason="request")))
        self.assertIn("no other step", text)

    def test_no_path_stands_out(self):
        events, rows = loop([2 * MS] * 3)
        wide = [traces.slice_of(f"part {i}", traces.PID, (900 + 2 * i) * MS, (902 + 2 * i) * MS - 10) for i in range(24)]
        events += [*wide, traces.step_of(41, 900 * MS, 950 * MS)]
        rows.append({"step": 41, "start_ns": 900 * MS, "duration_ns": 50 * MS, "items": 1, "kind": ""})
        text = " ".join(self.report(self.file(capture(events, rows))).split())
        self.assertIn("No path stands out", text)

    def test_from_a_pipe_without_reasons(self):
        with open(self.usual_capture(), encoding="utf-8") as file:
            text = self.report("-", stdin=file)
        self.assertIn("CAPTURE: a slow step", text)

    def test_whatever_it_says(self):
        """Names that are no names, numbers that are none."""
        events, rows = loop([2 * MS, 43 * MS])
        for about in ({"steps": 7}, {"kernels": {"a": 1}}, {"reason": None}, {"slow_step": 10 ** 30}, {"text": ["x"]}, {"first": -1},
                      {"steps": [None, {"step": "x"}, {"duration_ns": 1}]}):
            done = run(self.file(capture(events, rows, **about)))
            self.assertEqual((done.returncode, done.stderr), (0, ""), about)

    def test_figures_of_the_run_are_not_the_steps(self):
        """A head of an older version has them: of the run so far, a hundred times as long."""
        whole = {"cpu_ns": 10**11, "overhead": {"region_ns": 20.0, "collector_ns": 10**10, "callers_ns": 10**10, "backends_ns": 0},
                 "stepping_thread": {"observed_ns": 10**11, "running_ns": 5 * 10**10, "ready_ns": 4 * 10**10}}
        text = capture(*loop([2 * MS, 2 * MS, 2 * MS, 43 * MS]))
        with_them = text.replace('"metadata":{', '"metadata":{' + json.dumps(whole)[1:-1] + ",", 1)
        self.assertNotEqual(text, with_them)
        report = json.loads(self.report("--json", self.file(with_them)))
        self.assertEqual([v["name"] for v in report["verdicts"]], ["rebuilt"])
        self.assertEqual((report["run"]["cpu"], report["overhead"]["total"]), (0, 0))
        self.assertEqual(report["steps"].get("processor", {}).get("observed", 0), 0)
        many = json.loads(self.report("--json", self.file(capture(*loop([2 * MS] * 12)))))
        self.assertIn("gpu-idle", [v["name"] for v in many["verdicts"]])

    def test_a_trace_is_reported_as_before(self):
        path = self.file(traces.trace(), "trace.json")
        text = self.report(path)
        self.assertTrue(text.startswith("perfkit 0.1.0 report\n"), text[:80])
        self.assertEqual({"capture", "beside", "tree"} & set(json.loads(self.report("--json", path))), set())

    # ---- the tree ----

    def test_the_tree_is_exact(self):
        report = json.loads(self.report("--json", "--tree", self.usual_capture()))
        rows = {(row["depth"], row["name"]): row for row in report["tree"]}
        self.assertEqual([row["depth"] for row in report["tree"]].count(0), 4)
        self.assertEqual((rows[0, "forward"]["calls"], rows[0, "forward"]["time"], rows[0, "forward"]["self"]), (4, 4 * 10_200_000, 4 * 200_000))
        self.assertEqual(rows[1, "attention"], {"name": "attention", "depth": 1, "kind": "compute", "calls": 8, "time": 24 * MS, "self": 24 * MS})
        self.assertEqual(sum(row["self"] for row in report["tree"]), sum(region["self"] for region in report["regions"]))

    def test_the_trees_limits(self):
        path = self.usual_capture()
        shallow = self.report("--tree", "--depth", "1", path).split("CALL TREE")[1]
        self.assertNotIn("attention", shallow)
        self.assertIn("more rows", shallow)
        large = self.report("--tree", "--min-share", "20", path).split("CALL TREE")[1]
        self.assertNotIn("mlp", large)
        self.assertIn("mlp", self.report("--tree", "--min-share", "0", path).split("CALL TREE")[1])
        self.assertEqual(self.report("--tree", "--top", "2", path).split("CALL TREE")[1].count("\n"), 5)

    def test_of_a_trace_with_a_report(self):
        report = json.loads(self.report("--json", self.file(traces.trace(), "bare.json")))
        whole = self.file(traces.trace(tail='\n],"perfkitReport":' + json.dumps(report) + "}\n"), "whole.json")
        self.assertIn("CALL TREE", self.report("--tree", whole))

    def test_a_report_has_none_and_says_so(self):
        done = run("--tree", os.path.join(GOLDEN, "report-train.json"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("has no call tree: that is made of the events of a trace", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
