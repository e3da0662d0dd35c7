"""gpu.py PK GPU_RUN - what devices did: in the report of a session, in its trace, and in a report made of that."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PK, GPU_RUN = sys.argv[1], sys.argv[2]
STEPS, MEASURED, SPANNED = 60, 40, 40


def run(*arguments, **more):
    return subprocess.run(arguments, capture_output=True, timeout=120, check=False, **more)


def without_report(text):
    """The trace as a killed run leaves it."""
    head, tail = text.split('\n],"perfkitReport":') if '\n],"perfkitReport":' in text else text.split("\n]", 1)
    return head + "\n]}\n", tail


class Session(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.trace, cls.report = cls.run_it("run")
        cls.cut = os.path.join(cls.folder.name, "cut.json")
        with open(cls.cut, "w", encoding="utf-8") as file:
            file.write(without_report(cls.trace_text())[0])
        cls.rebuilt = json.loads(cls.pk("--json", cls.cut))

    @classmethod
    def run_it(cls, name, *arguments):
        trace, report = (os.path.join(cls.folder.name, name + end) for end in (".json", ".report.json"))
        environment = dict(os.environ, PK_TRACE_PATH=trace, PK_REPORT_PATH=report, PK_BACKENDS="none")
        done = run(GPU_RUN, *arguments, env=environment)
        wanted = -signal.SIGKILL if arguments else 0
        if done.returncode != wanted:
            raise AssertionError(f"{done.returncode}: {done.stderr.decode()}")
        if arguments:
            return trace, None
        with open(report, encoding="utf-8") as file:
            return trace, json.load(file)

    @classmethod
    def trace_text(cls):
        with open(cls.trace, encoding="utf-8") as file:
            return file.read()

    @staticmethod
    def pk(*arguments):
        done = run(PK, "report", *arguments)
        if done.returncode:
            raise AssertionError(done.stderr.decode())
        return done.stdout.decode()

    # ---- the session's own report ----

    def test_every_activity_is_counted(self):
        activities = self.report["activities"]
        self.assertEqual(activities["count"], MEASURED * (6 + 9 + 5 + 1) + SPANNED * 4 + STEPS * 2)
        self.assertEqual((activities["unwritten"], activities["late"], activities["unmeasured"]), (0, 0, 0))
        self.assertEqual(activities["overhead_count"], MEASURED)

    def test_devices(self):
        first, second = self.report["gpus"]
        self.assertEqual((first["device"], second["device"]), (0, 1))
        self.assertEqual((first["measured"], second["measured"]), (True, False))
        self.assertEqual((first["kernels"], first["memsets"], first["spans"]), (MEASURED * 10, MEASURED, SPANNED * 2))
        self.assertEqual((first["collectives"], second["collectives"]), (STEPS, STEPS))
        self.assertEqual({way: copies["count"] for way, copies in first["copies"].items()},
                         dict.fromkeys(("h2d", "d2h", "d2d", "p2p"), MEASURED))
        self.assertEqual(first["streams"], 5)
        self.assertEqual((second["streams"], second["kernels"]), (1, 0))

    def test_steps(self):
        first, second = (gpu["per_step"] for gpu in self.report["gpus"])
        # Which steps CUPTI was on for, from start to end, differs by one at the edges.
        self.assertIn(first["step"]["count"], range(MEASURED - 2, MEASURED + 2))
        self.assertEqual(second["step"]["count"], STEPS - self.report["steps"]["warmup"])
        for figures in (first, second):
            self.assertEqual(figures["busy"]["sum"] + figures["idle"]["sum"], figures["step"]["sum"])
            self.assertGreater(figures["busy"]["sum"], 0)
            self.assertGreaterEqual(figures["longest_gap"]["max"], figures["idle"]["max"] / figures["gaps"]["max"])
        self.assertEqual(first["sync"]["max"], 60000)  # what a stream waits for holds up nobody
        self.assertNotIn("kernels", second)
        self.assertGreater(first["memory"]["count"], 0)

    def test_collectives_are_hidden_or_exposed(self):
        for gpu in self.report["gpus"]:
            comm, hidden, exposed = (gpu["per_step"]["comm" + end]["sum"] for end in ("", "_hidden", "_exposed"))
            self.assertEqual(comm, hidden + exposed)
            self.assertGreater(hidden, 0)
            self.assertGreater(exposed, 0)
        # What events time there is another view: nothing but the kernels of NCCL's.
        nccl, = (row for row in self.report["kernels"] if row["name"].startswith("nccl"))
        self.assertLessEqual(self.report["gpus"][0]["per_step"]["comm"]["sum"], nccl["time"]["sum"])

    def test_algorithms_and_steps_of_collectives(self):
        row, = self.report["comm"]["collectives"]
        self.assertEqual([(way["algorithm"], way["protocol"], way["calls"], way["channels"]) for way in row["algorithms"]],
                         [("RING", "LL", 80, 4), ("TREE", "LL", 40, 4)])
        slowest = self.report["comm"]["slowest"]
        self.assertEqual([call["step"] for call in slowest], [(call["sequence"] - 1) // 2 for call in slowest])

    def test_kernels_and_regions(self):
        kernels = {row["name"]: row for row in self.report["kernels"]}
        self.assertEqual(set(kernels), {"void gemm<128, 64>(float*)", 'softmax "x"', "tiny",
                                        "ncclDevKernel_AllReduce_Sum_f32_RING_LL"})
        self.assertEqual(sum(row["time"]["count"] for row in kernels.values()), MEASURED * 10)
        self.assertEqual(kernels["tiny"]["region"], "synchronise")
        regions = {row["name"]: row for row in self.report["regions"]}
        self.assertEqual(regions["on the stream only"]["time"]["count"], 0)
        self.assertEqual(regions["on the stream only"]["gpu"]["count"], 2 * SPANNED)
        self.assertEqual(regions["forward"]["gpu"]["count"], 2 * SPANNED)
        self.assertIn("kernels", regions['backward "quoted"'])
        self.assertNotIn("nccl:all_reduce", regions)

    # ---- the trace ----

    def test_the_trace_has_them_all(self):
        trace = json.loads(self.trace_text())
        self.assertEqual(trace["perfkitReport"], self.report)
        kinds = [event.get("cat") for event in trace["traceEvents"]]
        self.assertEqual(kinds.count("kernel"), MEASURED * 10)
        self.assertEqual(kinds.count("collective"), STEPS * 2)
        self.assertEqual(kinds.count("gpu_user_annotation"), SPANNED * 4)
        marks = [event["name"] for event in trace["traceEvents"] if event.get("cat") == "perfkit"]
        self.assertEqual(marks, ["CUPTI on", "CUPTI off"])
        self.assertEqual(json.loads(self.pk("--json", self.trace)), self.report)

    # ---- made of the trace ----

    def test_rebuilt_devices_are_the_same(self):
        self.assertEqual(self.rebuilt["gpus"], self.report["gpus"])

    def test_rebuilt_counters_are_the_same(self):
        def over_time(report):
            return {counter["name"]: [row[:3] for row in counter["series"]] for counter in report["counters"]}
        self.assertEqual(over_time(self.rebuilt), over_time(self.report))
        self.assertTrue(any(over_time(self.report).values()))

    def test_rebuilt_kernels_are_the_same(self):
        self.assertEqual(self.rebuilt["kernels"], self.report["kernels"])

    def test_rebuilt_collectives_are_the_same(self):
        for part in ("collectives", "regions", "slowest"):
            self.assertEqual(self.rebuilt["comm"][part], self.report["comm"][part])

    def test_rebuilt_activities_are_the_same(self):
        self.assertEqual(self.rebuilt["activities"]["count"], self.report["activities"]["count"])
        self.assertEqual(self.rebuilt["activities"]["overhead"], self.report["activities"]["overhead"])

    def test_rebuilt_regions_are_the_same(self):
        def on_devices(report):
            return {row["name"]: (row["time"]["count"], row.get("gpu"), row.get("kernels")) for row in report["regions"]}
        self.assertEqual(on_devices(self.rebuilt), on_devices(self.report))

    def test_devices_are_no_threads(self):
        self.assertEqual([(row["tid"], row["recorded"]) for row in self.rebuilt["threads"]],
                         [(row["tid"], row["recorded"]) for row in self.report["threads"]])

    def test_rebuilt_from_standard_input(self):
        """In one pass, all events kept and sorted."""
        with open(self.cut, "rb") as file:
            done = run(PK, "report", "--json", "-", stdin=file)
        self.assertEqual(json.loads(done.stdout)["gpus"], self.report["gpus"])

    def test_rebuilt_verdicts_about_devices(self):
        def about(report):
            return [(row["name"], row["value"]) for row in report["verdicts"]
                    if re.search("gpu|launch|copy|sync|exposed", row["name"])]
        self.assertEqual(about(self.rebuilt), about(self.report))

    # ---- killed ----

    def test_a_killed_run_shows_its_devices(self):
        trace, _ = self.run_it("killed", "kill")
        text = self.pk(trace)
        self.assertIn("GPU 0: kernels and copies, by CUPTI, on 5 streams", text)
        self.assertIn("GPU 1: stream spans, by events, on 1 stream", text)
        self.assertIn("KERNELS by total time", text)
        recovered = os.path.join(self.folder.name, "recovered.json")
        done = run(PK, "recover", trace + ".arena", "-o", recovered)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(self.pk("--json", recovered))["activities"]["count"],
                         self.report["activities"]["count"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
