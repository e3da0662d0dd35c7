"""sessions.py CASE PK PROGRAM - what a session leaves of one kind of thing, in its trace, in its report, and in one made of the
trace. PROGRAM makes the session: runs (Communicators, Exact, Spans), gpu_run (Devices), pk-serve (Requests)."""

import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from traces import InFolder

CASES = sys.argv[1].split(",")
PK, PROGRAM = map(os.path.abspath, sys.argv[2:4])


def run(*arguments, **more):
    return subprocess.run(arguments, capture_output=True, timeout=120, check=False, **more)


# ---- what was done on communicators ----

ROUNDS = 40


class Communicators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.trace, cls.report = cls.run_it("run")
        with open(cls.trace, encoding="utf-8") as file:
            text = file.read()
        cut = os.path.join(cls.folder.name, "cut.json")
        with open(cut, "w", encoding="utf-8") as file:
            file.write(text.split('\n],"perfkitReport":')[0] + "\n]}\n")
        cls.rebuilt = json.loads(cls.pk("report", "--json", cut))
        cls.events = json.loads(text)["traceEvents"]

    @classmethod
    def run_it(cls, name, *arguments):
        trace, report = (os.path.join(cls.folder.name, name + end) for end in (".json", ".report.json"))
        environment = dict(os.environ, PK_TRACE_PATH=trace, PK_REPORT_PATH=report, PK_BACKENDS="none",
                           RANK="2", WORLD_SIZE="4")
        done = run(PROGRAM, "comm", *arguments, env=environment)
        if done.returncode != (-signal.SIGKILL if arguments else 0):
            raise AssertionError(f"{done.returncode}: {done.stderr.decode()}")
        if arguments:
            return trace, None
        with open(report, encoding="utf-8") as file:
            return trace, json.load(file)

    @staticmethod
    def pk(*arguments):
        done = run(PK, *arguments)
        if done.returncode:
            raise AssertionError(done.stderr.decode())
        return done.stdout.decode()

    def test_the_session(self):
        comm = self.report["comm"]
        world, row = comm["communicators"]
        self.assertEqual((world["library"], world["name"], world["rank"], world["size"]), ("ring", "world", 2, 4))
        self.assertEqual((world["calls"], world["completed"], world["in_flight"]), (2 * ROUNDS, 2 * ROUNDS, 1))
        self.assertEqual(world["bytes"], ROUNDS * 1000 + ROUNDS // 4 * 4 * 64 * (1 + 2 + 4 + 8))
        self.assertEqual(world["exposed"], world["time"])
        self.assertEqual((row["id"], row["in_flight"], row["bytes"]), ("fedcba9876543210", 2, ROUNDS * 240))
        self.assertEqual(row["exposed"], ROUNDS * 123)
        sizes = [(r["operation"], r["size"]) for r in comm["collectives"] if r["communicator"] == 0]
        self.assertEqual(sizes, [("all_reduce", 256), ("all_reduce", 512), ("all_reduce", 1024), ("all_reduce", 2048),
                                 ("all_gather", 512)])
        self.assertEqual({r["region"] for r in comm["regions"]}, {'backward "quoted"'})
        self.assertEqual(comm["unmeasured"], 0)

    def without(self, comm):
        """What the trace does not hold: the library's number, and sums of what was rounded each by itself."""
        comm = json.loads(json.dumps(comm))
        for row in comm["communicators"]:
            row["id"] = "0"
        return comm

    def test_the_trace_gives_the_same(self):
        mine, theirs = self.without(self.report["comm"]), self.without(self.rebuilt["comm"])
        self.assertEqual(mine, theirs)

    def test_every_operation_is_in_the_trace_once(self):
        seen = sorted((e["args"]["Process Group Name"], e["args"]["Seq"]) for e in self.events
                      if e["ph"] in "Xb" and "Collective name" in e.get("args", {}))
        wanted = [(name, n + 1) for name in ('row "0"', "world") for n in range(2 * ROUNDS)]
        self.assertEqual(seen, wanted)

    def test_comms_id(self):
        """The library's own number, where it has one."""
        ids = {(e["args"]["Process Group Name"], e["args"].get("Comms Id")) for e in self.events
               if "Collective name" in e.get("args", {})}
        self.assertEqual(ids, {("world", None), ('row "0"', "fedcba9876543210")})

    def test_pairs(self):
        begun, ended = ({e["id"]: e["ts"] for e in self.events if e["ph"] == phase} for phase in "be")
        self.assertEqual(len(begun), 2 * ROUNDS)
        self.assertEqual(begun.keys(), ended.keys())
        self.assertTrue(all(begun[i] <= ended[i] and i >> 32 == 2 for i in begun))

    def test_text(self):
        text = self.pk("report", self.trace)
        self.assertIn("COMMUNICATION", text)
        self.assertIn("all_reduce", text)

    def test_a_killed_run(self):
        trace, _ = self.run_it("killed", "die")
        whole = os.path.join(self.folder.name, "whole.json")
        self.pk("recover", trace + ".arena", "-o", whole)
        comm = json.loads(self.pk("report", "--json", whole))["comm"]
        self.assertEqual([c["calls"] for c in comm["communicators"]], [2 * ROUNDS, 2 * ROUNDS])
        self.assertEqual(self.progress(comm), {"world": (2 * ROUNDS,) * 3 + (0,), 'row "0"': (2 * ROUNDS,) * 3 + (0,)})

    @staticmethod
    def progress(comm):
        return {c["name"]: (c["enqueued"], c["started"], c["completed"], c["under_way"]) for c in comm["communicators"]}

    HUNG = {"world": (2 * ROUNDS + 1, 2 * ROUNDS + 1, 2 * ROUNDS, 1),
            'row "0"': (2 * ROUNDS + 3, 2 * ROUNDS + 3, 2 * ROUNDS + 2, 2)}

    def test_a_run_killed_in_a_hang(self):
        """At once: `pk recover` knows it from the arena."""
        trace, _ = self.run_it("hung", "hang")
        whole = os.path.join(self.folder.name, "unhung.json")
        self.pk("recover", trace + ".arena", "-o", whole)
        self.assertEqual(self.progress(json.loads(self.pk("report", "--json", whole))["comm"]), self.HUNG)
        text = " ".join(self.pk("report", whole).split())
        self.assertIn("operation 81 was the last one enqueued, 81 started, 80 completed; 1 under way", text)

    def test_a_run_that_hung_for_a_while(self):
        """Then the trace says so itself, once."""
        trace, _ = self.run_it("long", "long")
        report = json.loads(self.pk("report", "--json", trace))
        self.assertEqual(self.progress(report["comm"]), self.HUNG)
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        told = [e["args"]["Process Group Name"] for e in events if e["name"] == "communicator"]
        self.assertEqual(sorted(told), ['row "0"', "world"])


# ---- spans, also in windows, metrics, captures and what a killed run leaves ----

EACH = 5  # in a step
SPANS = 40 * EACH


class Spans(InFolder):
    def run_it(self, how="run", **options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        environment.update(PK_BACKENDS="none", PK_TRACE_PATH=self.path("run.json"), **options)
        return subprocess.run([PROGRAM, "spans", how], env=environment, check=False, timeout=300, cwd=self.folder,
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


# ---- what devices did ----

STEPS, MEASURED, SPANNED = 60, 40, 40


def without_report(text):
    """The trace as a killed run leaves it."""
    head, tail = text.split('\n],"perfkitReport":') if '\n],"perfkitReport":' in text else text.split("\n]", 1)
    return head + "\n]}\n", tail


class Devices(unittest.TestCase):
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
        done = run(PROGRAM, *arguments, env=environment)
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
        self.assertEqual(activities["count"], MEASURED * (6 + 9 + 5 + 1 + 2) + SPANNED * 4 + STEPS * 2)
        self.assertEqual((activities["unwritten"], activities["late"], activities["unmeasured"]), (0, 0, 0))
        self.assertEqual(activities["overhead_count"], MEASURED)

    def test_devices(self):
        first, second, third = self.report["gpus"]
        self.assertEqual((first["device"], second["device"]), (0, 1))
        self.assertEqual((first["measured"], second["measured"]), (True, False))
        self.assertEqual((first["kernels"], first["memsets"], first["spans"]), (MEASURED * 10, MEASURED, SPANNED * 2))
        self.assertEqual((first["collectives"], second["collectives"]), (STEPS, STEPS))
        self.assertEqual({way: copies["count"] for way, copies in first["copies"].items()},
                         dict.fromkeys(("h2d", "d2h", "d2d", "p2p"), MEASURED))
        self.assertEqual(first["streams"], 5)
        self.assertEqual((second["streams"], second["kernels"]), (1, 0))
        self.assertEqual([gpu["graphs"] for gpu in (first, second, third)], [0, 0, MEASURED])

    def test_steps(self):
        first, second, _ = (gpu["per_step"] for gpu in self.report["gpus"])
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
        for gpu in self.report["gpus"][:2]:
            comm, hidden, exposed = (gpu["per_step"]["comm" + end]["sum"] for end in ("", "_hidden", "_exposed"))
            self.assertEqual(comm, hidden + exposed)
            self.assertGreater(hidden, 0)
            self.assertGreater(exposed, 0)
        # What events time there is another view: nothing but the kernels of NCCL's.
        nccl, = (row for row in self.report["kernels"] if "AllReduce" in row["name"])
        self.assertLessEqual(self.report["gpus"][0]["per_step"]["comm"]["sum"], nccl["time"]["sum"])

    def test_what_graphs_as_wholes_hide_is_not_claimed(self):
        """Also of a trace from before graphs were marked in it: there they are kernels."""
        marked = ',"whole graph":1'
        text, third = self.trace_text(), self.report["gpus"][2]
        self.assertEqual(text.count(marked), MEASURED)
        for gpu in (third, self.rebuilt["gpus"][2]):
            self.assertEqual((gpu["graphs"], gpu["kernels"]), (MEASURED, 2 * MEASURED))
            self.assertFalse(any(name.startswith("comm") for name in gpu["per_step"]))
            self.assertEqual({row["comm_hidden"] + row["comm_exposed"] for row in gpu["series"]}, {0})
        older = os.path.join(self.folder.name, "older.json")
        with open(older, "w", encoding="utf-8") as file:
            file.write(without_report(text)[0].replace(marked, ""))
        before = json.loads(self.pk("--json", older))["gpus"]
        self.assertEqual(before[:2], self.report["gpus"][:2])
        self.assertEqual((before[2]["graphs"], before[2]["kernels"]), (0, 2 * MEASURED))
        self.assertEqual(before[2]["per_step"]["busy"], third["per_step"]["busy"])
        self.assertGreater(before[2]["per_step"]["comm_exposed"]["sum"], 0)
        self.assertRegex(self.pk(self.trace).replace("\n", " "),
                         r"CUDA graphs as wholes, .* nor hidden and +exposed communication")

    def test_algorithms_and_steps_of_collectives(self):
        row, = self.report["comm"]["collectives"]
        self.assertEqual([(way["algorithm"], way["protocol"], way["calls"], way["channels"]) for way in row["algorithms"]],
                         [("RING", "LL", 80, 4), ("TREE", "LL", 40, 4)])
        slowest = self.report["comm"]["slowest"]
        self.assertEqual([call["step"] for call in slowest], [(call["sequence"] - 1) // 2 for call in slowest])

    def test_kernels_and_regions(self):
        kernels = {row["name"]: row for row in self.report["kernels"]}
        self.assertEqual(set(kernels), {"void gemm<128, 64>(float*)", 'softmax "x"', "tiny", "ncclDevKernel_AllGather",
                                        "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "graph 3"})
        self.assertEqual(sum(row["time"]["count"] for row in kernels.values()), MEASURED * 12)
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
        self.assertEqual(kinds.count("kernel"), MEASURED * 12)
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


# ---- what is called exact: sums, smallest and largest are those of the trace's own durations and values, to the last digit ----

MOMENTS = ("count", "sum", "min", "max", "mean", "stddev")


def record_exact(folder):
    """The report of a run, its trace's text, and the same trace without the report that it holds."""
    trace, report = os.path.join(folder, "run.json"), os.path.join(folder, "report.json")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PK_")}
    subprocess.run([PROGRAM, "exact"], check=True, timeout=120, env=dict(
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
            cls.live, cls.trace, cls.rebuilt = record_exact(folder)

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


# ---- requests, of the example's server: stages, causes, goodput, metrics; and that clients see the same ----

FEWER = 2 if os.environ.get("PK_TEST_NO_LIMIT") else 1  # a sanitizer makes a model slow, which has tests of its own
PARTS = ("queued", "preempted", "prefill", "crowded", "decode", "behind")


class Requests(InFolder):
    def serve(self, *arguments, **options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        environment.update(PK_BACKENDS="none", PK_REPORT_PATH=self.path("report.json"), **options)
        done = subprocess.run([PROGRAM, *arguments], env=environment, check=False, timeout=500, cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("report.json"), encoding="utf-8") as file:
            return json.load(file), done.stdout

    def check_sums(self, requests):
        for parts in [requests["all"], requests["slow"], *(r["parts"] for r in requests["slowest"])]:
            self.assertEqual(sum(parts[p] for p in PARTS), parts["total"])

    def share(self, requests, part):
        return requests["all"][part] / requests["all"]["total"]

    @unittest.skipIf(FEWER > 1, "figures of a model alone: what memory they are in the others touch, too")
    def test_as_load_rises_the_queue_does(self):
        low, _ = self.serve("--load", "0.02", "--requests", "8")
        high, _ = self.serve("--load", "50", "--requests", str(40 // FEWER))
        for report, count in ((low, 8), (high, 40 // FEWER)):
            requests = report["requests"]
            self.assertEqual((requests["count"], requests["finished"]), (count, count))
            self.check_sums(requests)
        self.assertGreater(self.share(high["requests"], "queued"), self.share(low["requests"], "queued"))
        self.assertGreater(self.share(high["requests"], "queued"), 0.5)
        slowest = high["requests"]["slowest"][0]
        self.assertGreater(slowest["steps"], 0)
        self.assertLess(slowest["first_step"] + slowest["steps"], high["steps"]["count"] + 2)

    def test_clients_and_perfkit_agree(self):
        """Within 1 %, and what a busy machine puts between two clock reads of the same moment."""
        _, said = self.serve("--load", "1", "--requests", str(40 // FEWER), "--draft", "3")
        rows = re.findall(r"^(TTFT|TPOT|end to end) +clients: mean +([0-9.]+) ms.*perfkit: mean +([0-9.]+)", said,
                          re.MULTILINE)
        self.assertEqual([row[0] for row in rows], ["TTFT", "TPOT", "end to end"])
        for what, theirs, ours in rows:
            self.assertAlmostEqual(float(theirs), float(ours), delta=0.01 * float(theirs) + 50, msg=what)

    @unittest.skipIf(FEWER > 1, "test_requests.c has it")
    def test_goodput(self):
        report, _ = self.serve("--load", "1", "--requests", "10", "--ttft", "1000", "--tpot", "1000")
        requests = report["requests"]
        self.assertEqual((requests["good"], requests["goodput"], requests["slow"]["count"]), (10, 1, 0))
        self.assertEqual((requests["ttft_limit"], requests["tpot_limit"]), (10**12, 10**12))
        report, _ = self.serve("--load", "1", "--requests", "10", "--tpot", "0.000000001")
        requests = report["requests"]
        self.assertEqual((requests["good"], requests["slow"]["count"]), (0, 10))
        self.assertEqual(requests["slow"], requests["all"])

    def test_a_trace_alone_says_the_same(self):
        report, _ = self.serve("--load", "5", "--requests", str(30 // FEWER), PK_TRACE_PATH=self.path("run.json"))
        with open(self.path("run.json"), encoding="utf-8") as file:
            trace = json.load(file)
        ended = [e for e in trace["traceEvents"] if e.get("cat") == "span" and "outcome" in e.get("args", {})]
        self.assertEqual(len(ended), 30 // FEWER)
        del trace["perfkitReport"]
        with open(self.path("alone.json"), "w", encoding="utf-8") as file:
            json.dump(trace, file)
        done = subprocess.run([PK, "report", "--json", self.path("alone.json")], check=True, capture_output=True,
                              timeout=300)
        self.assertEqual(json.loads(done.stdout)["requests"], report["requests"])
        text = subprocess.run([PK, "report", self.path("run.json")], check=True, capture_output=True, timeout=300)
        text = text.stdout.decode()
        self.assertIn("REQUESTS and what they waited for", text)
        self.assertRegex(text, r"\n  queued, not scheduled yet +[0-9.]+ % ")
        ours = text.split("REQUESTS")[1].split("THREADS")[0]
        self.assertLessEqual(max(map(len, ours.splitlines())), 80)

    def test_metrics_have_the_names_of_the_conventions(self):
        self.serve("--load", "5", "--requests", "20", PK_METRICS_PATH=self.path("m.prom"))
        with open(self.path("m.prom"), encoding="utf-8") as file:
            text = file.read()
        for name in ("request_duration", "time_to_first_token", "time_per_output_token"):
            self.assertIn(f"# TYPE gen_ai_server_{name}_seconds histogram\n", text)
            self.assertRegex(text, rf"gen_ai_server_{name}_seconds_count{{[^}}]*}} 20\n")
        self.assertRegex(text, r"pk_requests_good_total{[^}]*} 20\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + CASES)
