"""windows.py CASE,... PK RUNS - what is written in parts as a program goes on: windows, a trace in several files, and
metrics, also as Prometheus scrapes them (the case scrape)."""

import collections
import fcntl
import gzip
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../browser"))

import chromium  # noqa: E402
from traces import InFolder  # noqa: E402

CASES = sys.argv[1].split(",")
PK, RUNS = map(os.path.abspath, sys.argv[2:4])
BOARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../package/grafana.json")


# ---- windows_path and what `pk report` makes of it ----

# The report of the run, to the last digit, of the whole run or as much of it as is there.

# What a window does not know step by step, or what goes on while the windows are being written.
UNKNOWN = {"steps": ("series", "drift", "first_third", "last_third"), "run": ("cpu", "source")}

NOT_IN_WINDOWS = ("backends", "overhead", "verdicts", "stages", "environment", "roofline", "cpu_side", "memory")


def comparable(report):
    report = {key: value for key, value in report.items() if key not in NOT_IN_WINDOWS}
    for part, keys in UNKNOWN.items():
        report[part] = {key: value for key, value in report[part].items() if key not in keys}
    report["steps"].pop("processor", None)  # looked at again at the end
    if "io" in report:
        report["io"] = {key: value for key, value in report["io"].items() if key != "steps"}
    # Windows have them in the order in which they first have values, the report as they were registered.
    report["counters"] = sorted(({k: v for k, v in row.items() if k != "series"} for row in report["counters"]),
                                key=lambda row: row["name"])
    return report


class Windows(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def record(self, steps, *arguments, expect=0, **options):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PK_")}
        environment.update(PK_WINDOWS_PATH=self.path("w.jsonl"), PK_REPORT_PATH=self.path("r.json"),
                           PK_BACKENDS="none", PK_LOG="stderr")
        environment.update((key, str(value)) for key, value in options.items())
        done = subprocess.run([RUNS, "windows", str(steps), *arguments], env=environment, capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    def lines(self, name="w.jsonl"):
        opener = gzip.open if name.endswith(".gz") else open
        with opener(self.path(name), "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def report(self, *arguments, name="w.jsonl"):
        done = subprocess.run([PK, "report", "--json", *arguments, self.path(name)], check=True, capture_output=True,
                              text=True, timeout=120)
        return json.loads(done.stdout)

    def own_report(self):
        with open(self.path("r.json"), encoding="utf-8") as file:
            return json.load(file)

    def refused(self, *arguments, says):
        done = subprocess.run([PK, *arguments], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn(says, done.stderr)

    # ---- the same report ----

    def same_report(self, steps, **options):
        self.record(steps, **options)
        own, made = self.own_report(), self.report()
        self.assertEqual(comparable(own), comparable(made))
        return own

    def test_by_steps(self):
        own = self.same_report(5000, PK_WINDOW_STEPS=100, PK_RING_RECORDS=1024)
        self.assertEqual([row["name"] for row in own["steps"]["step_kinds"]], ["evaluation"])
        self.assertGreater(own["steps"]["between"]["time"]["count"], 0)
        self.assertGreater(own["counts"]["dropped"], 0)  # and the distributions have these calls

    def test_uneven(self):
        self.same_report(1234, PK_WINDOW_STEPS=77, PK_RING_RECORDS=4096)

    def test_one_window(self):
        self.same_report(700, PK_WINDOW_STEPS=100000)
        self.assertEqual(len(self.lines()), 1)

    def test_warmup_given(self):
        own = self.same_report(1000, PK_WINDOW_STEPS=90, PK_WARMUP_STEPS=400)
        self.assertEqual(own["steps"]["warmup"], 400)

    def test_few_steps(self):
        self.same_report(3, PK_WINDOW_STEPS=2)

    def test_by_seconds(self):
        self.same_report(100000, PK_WINDOW_SECONDS=1, PK_RING_RECORDS=4096)

    def test_compressed(self):
        self.record(2000, PK_WINDOW_STEPS=100, PK_WINDOWS_PATH=self.path("w.jsonl.gz"))
        self.assertEqual(sum(w["steps"]["of_all_kinds"] for w in self.lines("w.jsonl.gz")), 2000)
        self.assertEqual(comparable(self.own_report()), comparable(self.report(name="w.jsonl.gz")))

    def test_costs(self):
        own = self.same_report(2000, PK_WINDOW_STEPS=300, PK_COSTS="io,energy", PK_GOODPUT_PATH=self.path("life"))
        self.assertTrue(own["io"]["asked"] and own["energy"]["asked"])
        self.assertEqual(sum(own["goodput"]["parts"].values()), own["goodput"]["up"])
        made, windows = self.report()["memory"], self.lines()
        for key in ("resident", "most_private", "minor_faults", "major_faults"):
            self.assertEqual(made[key], own["memory"][key])
        self.assertEqual(sum(w["io"]["read_calls"] for w in windows), own["io"]["read_calls"])
        self.assertEqual(windows[-1]["goodput"]["up"], own["goodput"]["up"])

    def test_no_costs(self):
        self.record(200, PK_WINDOW_STEPS=50)
        for w in self.lines():
            self.assertFalse({"io", "energy", "goodput"} & set(w))

    # ---- the lines ----

    def test_lines(self):
        self.record(1000, PK_WINDOW_STEPS=100)
        windows = self.lines()
        self.assertEqual([w["window"] for w in windows], list(range(len(windows))))
        self.assertEqual([w["last"] for w in windows], [False] * (len(windows) - 1) + [True])
        last = -1
        for before, after in zip(windows, windows[1:]):
            self.assertEqual(before["end"], after["start"])
        for w in windows:
            steps = w["steps"]
            if steps["of_all_kinds"]:
                self.assertEqual((steps["first"], steps["last"]), (last + 1, last + steps["of_all_kinds"]))
                last = steps["last"]
            self.assertEqual(steps["count"], steps["time"]["count"])
            if not w["last"]:
                self.assertEqual((last + 1) % 100, 0)  # on the edge
        self.assertEqual(last, 999)
        self.assertEqual(sum(w["counts"]["dropped"] for w in windows), self.own_report()["counts"]["dropped"])
        self.assertTrue(all(isinstance(w["verdicts"], list) for w in windows))
        self.assertNotIn("incomplete", [v["name"] for w in windows for v in w["verdicts"]])

    def test_extremes_are_each_windows_own(self):
        self.record(3000, PK_WINDOW_STEPS=500)
        for w in self.lines():
            for row in w["regions"]:
                exact = row["exact"]
                self.assertLessEqual(exact["min"], exact["max"])
                self.assertEqual(sum(count for _, count in exact["buckets"]), exact["count"])
                self.assertLessEqual(exact["count"] * exact["min"], exact["sum"])
                self.assertGreaterEqual(exact["count"] * exact["max"], exact["sum"])

    # ---- parts ----

    def test_some_steps(self):
        self.record(2000, PK_WINDOW_STEPS=100)
        chosen = [w for w in self.lines() if w["steps"]["count"] and w["steps"]["last"] >= 650 and w["steps"]["first"] <= 950]
        made = self.report("--steps", "650-950")
        self.assertEqual(made["steps"]["count"], sum(w["steps"]["count"] for w in chosen))
        self.assertEqual(made["steps"]["warmup"], 0)
        self.assertEqual(made["steps"]["items"], sum(w["steps"]["items"] for w in chosen))
        self.refused("report", "--steps", "5000", self.path("w.jsonl"), says="no window with any of these steps")
        self.refused("report", "--steps", "7-3", self.path("w.jsonl"), says="--steps 7-3")
        self.refused("report", "--steps", "7", self.path("r.json"), says="no file of windows")

    def test_rotation(self):
        bound = 1 << 20
        self.record(30000, PK_WINDOW_STEPS=20, PK_WINDOWS_MAX_BYTES=bound)
        parts = sorted(name for name in os.listdir(self.folder) if name.startswith("w.jsonl"))
        self.assertIn("w.jsonl.1", parts)
        self.assertLessEqual(set(parts), {"w.jsonl", "w.jsonl.1", "w.jsonl.2", "w.jsonl.3"})
        self.assertLessEqual(sum(os.path.getsize(self.path(name)) for name in parts), bound)
        windows = [w for name in sorted(parts, reverse=True) for w in self.lines(name)]
        numbers = [w["window"] for w in windows]
        self.assertEqual(numbers, list(range(numbers[0], numbers[-1] + 1)))
        made = self.report()
        self.assertEqual(made["run"]["source"], f"windows {numbers[0]} to {numbers[-1]}")
        self.assertEqual(made["steps"]["count"], sum(w["steps"]["count"] for w in windows))

    def test_parts_of_another_run(self):
        self.record(500, PK_WINDOW_STEPS=100)
        os.rename(self.path("w.jsonl"), self.path("w.jsonl.2"))
        self.record(700, PK_WINDOW_STEPS=100)
        self.assertEqual(comparable(self.own_report()), comparable(self.report()))

    def test_another_process_writes_it(self):
        self.record(100, PK_WINDOW_STEPS=100)
        with open(self.path("w.jsonl"), "r+b") as file:
            fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
            self.assertIn("another process", self.record(10, PK_WINDOW_STEPS=100, expect=1))

    # ---- trouble ----

    def test_killed(self):
        self.record(5000, "kill", PK_WINDOW_STEPS=100, expect=-9)
        windows = self.lines()  # whole lines
        self.assertFalse(windows[-1]["last"])
        made = self.report()
        self.assertFalse(made["run"]["complete"])
        self.assertEqual(made["steps"]["count"], sum(w["steps"]["count"] for w in windows))
        self.assertEqual(sum(w["steps"]["of_all_kinds"] for w in windows), 5000)
        self.assertIn("incomplete", [v["name"] for v in made["verdicts"]])

    def test_cut_anywhere(self):
        self.record(1000, PK_WINDOW_STEPS=100)
        with open(self.path("w.jsonl"), "rb") as file:
            content = file.read()
        first = content.index(b"\n") + 1
        for length in [*range(first, len(content), len(content) // 50), len(content) - 1]:
            with open(self.path("cut"), "wb") as file:
                file.write(content[:length])
            whole = content[:length].count(b"\n") + (length == len(content) - 1)
            self.assertEqual(self.report(name="cut")["run"]["source"], f"windows 0 to {whole - 1}")

    def test_not_windows(self):
        self.record(500, PK_WINDOW_STEPS=100)
        with open(self.path("w.jsonl"), encoding="utf-8") as file:
            lines = file.readlines()

        def refused(content, says):
            with open(self.path("bad"), "w", encoding="utf-8") as file:
                file.writelines(content)
            self.refused("report", self.path("bad"), says=says)
        refused([lines[0], "nonsense\n", lines[1]], "line 2")
        refused([lines[1], lines[0]], "does not follow")
        refused([lines[0], lines[1].replace('"schema":1', '"schema":2')], "a newer pk can")
        refused([lines[0], lines[1].replace('"schema":1', '"scheme":1')], '"schema"')
        refused([lines[0][:30]], "")
        self.refused("recover", self.path("w.jsonl"), says="")
        self.refused("query", "select 1", self.path("w.jsonl"), says="windows")

    def test_missing_in_the_middle(self):
        self.record(1000, PK_WINDOW_STEPS=100)
        with open(self.path("w.jsonl"), encoding="utf-8") as file:
            lines = file.readlines()
        with open(self.path("gap"), "w", encoding="utf-8") as file:
            file.writelines(lines[:2] + lines[4:])
        self.assertIn("(2 of them are missing)", self.report(name="gap")["run"]["source"])

    def test_full_disk(self):
        """The run goes on, says so once, and what is there is whole."""
        said = self.record(5000, "full", PK_WINDOW_STEPS=20, PK_REPORT_PATH="", expect=3)
        self.assertRegex(said, r"[0-9]+ windows are missing")
        self.assertEqual(len([line for line in said.splitlines() if "tried again" in line]), 1)
        windows = self.lines()
        self.assertEqual([w["window"] for w in windows], list(range(len(windows))))
        self.assertEqual(self.report()["steps"]["count"], sum(w["steps"]["count"] for w in windows))

    def test_nowhere(self):
        os.symlink("/dev/null", self.path("link"))
        self.assertIn("windows", self.record(10, PK_WINDOWS_PATH=self.path("link"), expect=1))
        self.assertIn("windows", self.record(10, PK_WINDOWS_PATH=self.path("no/where"), expect=1))


# ---- a trace in several files ----

# Each is whole, together they are the run, whatever ends it.

BOUND = 2 << 20

STEPS = 6000  # 7 MB


def run(*arguments):
    return subprocess.run([PK, *arguments], capture_output=True, timeout=300, check=False)


class Rotation(InFolder):
    def start(self, *arguments, **options):
        variables = {"PK_TRACE_PATH": self.path("run.json"), "PK_TRACE_ROTATE_BYTES": str(BOUND), "PK_BACKENDS": "none",
                     "PK_LOG": "stderr"}
        variables.update({"PK_" + key.upper(): str(value) for key, value in options.items()})
        return subprocess.Popen([RUNS, "rotate", *arguments], env={**os.environ, **variables}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=self.folder)

    def finish(self, steps=STEPS, **options):
        process = self.start(str(steps), **options)
        said = process.communicate(timeout=300)[1].decode()
        self.assertEqual(process.returncode, 0, said)
        return said

    def await_part(self, process, number, pause=0.001):
        """Until there is one of at least that number: with `trace_keep` each stays but for a moment."""
        until = time.monotonic() + 100
        while not any(int(re.search(r"\d+", name)[0]) >= number for name in self.parts()[:-1]):
            self.assertIsNone(process.poll())
            if time.monotonic() > until:
                process.kill()
                self.fail(f"no part {number}")
            time.sleep(pause)

    def parts(self, ending=".json"):
        """The files that are there, the oldest first."""
        numbers = [re.fullmatch(r"run\.part(\d+)" + re.escape(ending), name) for name in os.listdir(self.folder)]
        names = [f"run.part{n}{ending}" for n in sorted(int(m[1]) for m in numbers if m)]
        return names + ["run" + ending]

    def load(self, name):
        with (gzip.open if name.endswith(".gz") else open)(self.path(name), "rb") as file:
            return json.loads(file.read())

    def check_sizes(self, names):
        """Files that are full hold as much as they may, but for a sixteenth of a MiB."""
        for name in names[:-1]:
            size = os.path.getsize(self.path(name))
            self.assertLessEqual(size, BOUND, name)
            self.assertGreater(size, BOUND - (80 << 10), name)

    def counts(self, names):
        """How many slices of each name, and which steps; each file is one that viewers can do with."""
        seen, steps = collections.Counter(), []
        for name in names:
            named, used = set(), set()
            for event in self.load(name)["traceEvents"]:
                if event["ph"] == "M" and event["name"] == "thread_name":
                    named.add(event["tid"])
                elif event["ph"] == "X":
                    used.add(event["tid"])
                    seen[event["name"].split("#")[0]] += 1
                    if event["name"].startswith("ProfilerStep#"):
                        steps.append(int(event["name"].split("#")[1]))
            self.assertLessEqual(used, named, name)  # every track has its name in every file
        return seen, steps

    def report(self, *arguments):
        done = run("report", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def region(self, report, name):
        return next(r for r in report["regions"] if r["name"] == name)

    def test_all_of_it_once(self):
        self.finish()
        names = self.parts()
        self.assertGreaterEqual(len(names), 3)
        self.check_sizes(names)
        self.assertEqual(names[:-1], [f"run.part{n}.json" for n in range(1, len(names))])
        for n, name in enumerate(names, 1):
            self.assertLessEqual(os.path.getsize(self.path(name)), BOUND + (1 << 16))  # the report is behind the bound
            self.assertEqual(self.load(name)["perfkitPart"], {"part": n})
            self.assertTrue(self.load(name)["metadata"]["complete"])
            self.assertEqual("perfkitReport" in self.load(name), name == "run.json")
        seen, steps = self.counts(names)
        self.assertEqual((seen["work"], seen["all"], steps), (10 * STEPS, 1, list(range(STEPS))))
        self.assertFalse(os.path.exists(self.path("run.json.arena")))
        report = self.report(self.path("run.json"))  # its own, of the whole run
        self.assertEqual(report["steps"]["count"], STEPS)

    def test_report_of_events(self):
        self.finish()
        whole = self.report(self.path("run.json"))
        text = self.path("run.json")
        with open(text, "rb") as file:
            content = file.read()
        with open(text, "wb") as file:  # as if it had been killed, and mended
            file.write(content[: content.index(b'"perfkitPart"') - 2] + b"}\n")
        rebuilt = self.report(text)
        for name in ("work", "all", "aside"):
            for key in ("count", "sum", "min", "max"):
                self.assertEqual(self.region(rebuilt, name)["time"][key], self.region(whole, name)["time"][key], name)
        self.assertEqual(rebuilt["steps"]["count"], STEPS)
        part = self.report(self.path("run.part1.json"))  # alone, if it is asked for by its name
        self.assertLess(part["steps"]["count"], STEPS)

    def test_parts_of_another_run_are_none(self):
        self.finish()
        os.rename(self.path("run.part1.json"), self.path("run.part9.json"))
        self.finish(50)
        report = self.report(self.path("run.json"))
        self.assertEqual(report["steps"]["count"], 50)
        seen, _ = self.counts(["run.json"])
        self.assertEqual(seen["work"], 500)

    def test_compressed(self):
        self.finish(60000, trace_path=self.path("run.json.gz"))
        names = self.parts(".json.gz")
        self.assertGreaterEqual(len(names), 2)
        self.check_sizes(names)
        _, steps = self.counts(names)
        self.assertEqual(steps, list(range(60000)))

    def test_some_stay(self):
        self.finish(trace_keep=2)
        names = self.parts()
        self.assertEqual(len(names), 2)
        _, steps = self.counts(names)
        self.assertEqual(steps, list(range(steps[0], STEPS)))
        self.assertGreater(steps[0], 0)
        self.assertEqual(self.report(self.path("run.json"))["steps"]["count"], STEPS)
        self.finish(trace_keep=1)
        self.assertIn("run.json", self.parts())

    def test_what_is_in_the_way_stays(self):
        os.mkdir(self.path("run.part2.json"))
        said = self.finish()
        self.assertEqual(said.count("the next file cannot be made"), 1)
        _, steps = self.counts(["run.part1.json", "run.json"])
        self.assertEqual(steps, list(range(STEPS)))

    def test_one_that_somebody_has_put_there_stays(self):
        process = self.start("0", trace_keep=2)
        process.stdout.readline()
        mine = self.path("run.part1.json")
        self.await_part(process, 1)
        with open(mine + ".new", "w", encoding="ascii") as file:
            file.write("mine")
        os.rename(mine + ".new", mine)
        self.await_part(process, 4)
        process.kill()
        process.communicate()
        if os.path.exists(mine):  # unless it was removed before it became mine
            with open(mine, encoding="ascii", errors="replace") as file:
                self.assertEqual(file.read(4), "mine")

    def test_killed_at_any_moment(self):
        chance = random.Random(7)
        for _ in range(8):
            for name in os.listdir(self.folder):
                os.remove(self.path(name))
            process = self.start("0")
            process.stdout.readline()
            wanted = chance.randrange(1, 4)
            # Killed as soon as it is there, which is amid the change, or somewhat later.
            self.await_part(process, wanted, 0)
            time.sleep(chance.choice((0, 0, 0.02)))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            done = run("recover", self.path("run.json.arena"))
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            seen, steps = self.counts([name for name in self.parts() if os.path.exists(self.path(name))])
            self.assertEqual(steps, list(range(len(steps))))
            self.assertGreaterEqual(seen["work"], 10 * len(steps))
            self.assertEqual(seen["all"], 1)
            if os.path.exists(self.path("run.json")):
                self.assertEqual(self.report(self.path("run.json"))["steps"]["count"], len(steps))


# ---- metrics_path ----

# Whole at any moment, bounded, exact, and what promtool and python3-prometheus-client have to say
# of it.

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None


class Metrics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.prom = os.path.join(self.folder, "pk.prom")

    def environment(self, **options):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PK_")}
        environment.update(PK_METRICS_PATH=self.prom, PK_METRICS_SECONDS="1", PK_BACKENDS="none", PK_LOG="stderr")
        environment.update((key, str(value)) for key, value in options.items())
        return environment

    def record_rank(self, *arguments, expect=0, **options):
        done = subprocess.run([RUNS, "windows", *map(str, arguments)], env=self.environment(**options), capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    def text(self):
        with open(self.prom, encoding="utf-8") as file:
            return file.read()

    def samples(self):
        """Name with labels -> value."""
        return dict(line.rsplit(" ", 1) for line in self.text().splitlines() if not line.startswith("#"))

    def value(self, start):
        found = [value for key, value in self.samples().items() if key.startswith(start)]
        self.assertEqual(len(found), 1, start)
        return float(found[0])

    def test_figures_are_the_reports(self):
        self.figures_are_the_reports(65536)
        self.assertEqual(self.value("pk_items_total"), 96000)

    def test_with_calls_dropped(self):
        self.figures_are_the_reports(1024)

    def figures_are_the_reports(self, ring):
        report = os.path.join(self.folder, "r.json")
        self.record_rank(3000, PK_REPORT_PATH=report, PK_RING_RECORDS=ring)
        with open(report, encoding="utf-8") as file:
            own = json.load(file)
        self.assertEqual(self.value("pk_steps_total"), 3000)
        self.assertEqual(self.value("pk_step_duration_seconds_count"), 3000)
        self.assertEqual(self.value("pk_dropped_records_total{program=\"tools-runs\",rank=\"0\",what=\"region"),
                         own["counts"]["dropped"])
        self.assertEqual(self.value("pk_running"), 0)
        for row in own["regions"]:
            name = row["name"].replace('"', '\\"')
            rest = f'{{program="tools-runs",rank="0",region="{name}",kind="{row["kind"]}"}}'
            self.assertEqual(self.value("pk_region_calls_total" + rest), row["time"]["count"])
            self.assertAlmostEqual(self.value("pk_region_seconds_total" + rest), row["time"]["sum"] / 1e9, places=9)
            self.assertAlmostEqual(self.value("pk_region_self_seconds_total" + rest), row["self"] / 1e9, places=9)
            self.assertEqual(self.value("pk_region_bytes_total" + rest), row["bytes"])

    def test_costs(self):
        report = os.path.join(self.folder, "r.json")
        self.record_rank(300, PK_COSTS="io,energy", PK_GOODPUT_PATH=os.path.join(self.folder, "life"), PK_REPORT_PATH=report)
        with open(report, encoding="utf-8") as file:
            own = json.load(file)
        labels = '{program="tools-runs",rank="0"'
        for name, member in (("pk_io_read_bytes_total", "read_chars"), ("pk_io_written_bytes_total", "write_chars"),
                             ("pk_io_read_calls_total", "read_calls"),
                             ("pk_io_device_written_bytes_total", "write_device")):
            self.assertEqual(self.value(name + labels), own["io"][member])
        self.assertEqual(self.value("pk_process_resident_memory_bytes" + labels), own["memory"]["resident"])
        for part, ns in own["goodput"]["parts"].items():
            self.assertAlmostEqual(self.value(f'pk_goodput_seconds{labels},part="{part}"'), ns / 1e9, places=9)
        self.assertEqual({row["counter"] for row in own["energy"]["rows"]},
                         {re.search('counter="(.*?)"', key)[1] for key in self.samples() if key.startswith("pk_energy")})

    def test_bounded(self):
        self.record_rank(60000)  # 60 variants of a region
        self.assertLessEqual(len(self.samples()), 300)
        calls = {key: int(value) for key, value in self.samples().items() if key.startswith("pk_region_calls_total")}
        self.assertEqual(len(calls), 20)
        self.assertEqual(sum(calls.values()), 60000 * 3 + 60000 + 60)  # none is missing

    def test_whole_at_any_moment(self):
        process = subprocess.Popen([RUNS, "windows", "4000", "slow"], env=self.environment(), stderr=subprocess.DEVNULL)
        seen, last = set(), 0
        while process.poll() is None:
            if os.path.exists(self.prom):
                samples = self.samples()
                self.assertTrue(any(key.startswith("pk_overhead_cpu_seconds_total") for key in samples))
                steps = float(next(v for k, v in samples.items() if k.startswith("pk_steps_total")))
                self.assertGreaterEqual(steps, last)
                last = steps
                seen.add(steps)
                self.assertLessEqual(len(os.listdir(self.folder)), 2)
            time.sleep(0.05)
        self.assertEqual(process.returncode, 0)
        self.assertGreater(len(seen), 1)

    def test_rank_and_parts_of_the_name(self):
        self.prom = os.path.join(self.folder, "pk-%r.prom")
        self.record_rank(10, PK_RANK=5, PK_WORLD_SIZE=8)
        self.prom = os.path.join(self.folder, "pk-5.prom")
        self.assertIn('rank="5"', self.text())

    def test_nowhere(self):
        self.prom = "/nonexistent/folder/pk.prom"
        self.assertIn("metrics /nonexistent", self.record_rank(10, expect=1))

    def test_every_family_is_declared_once_before_its_samples(self):
        self.record_rank(100)
        declared = re.findall(r"^# TYPE (\S+) (\S+)$", self.text(), re.MULTILINE)
        self.assertEqual(len(dict(declared)), len(declared))
        for key in self.samples():
            name = re.sub(r"_(bucket|sum|count)$", "", key.split("{")[0])
            self.assertIn(name, dict(declared))

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_promtool(self):
        self.record_rank(1000, PK_WINDOWS_PATH=os.path.join(self.folder, "w"), PK_WINDOW_STEPS=100, PK_COSTS="io,energy",
                    PK_GOODPUT_PATH=os.path.join(self.folder, "life"))
        with open(self.prom, encoding="utf-8") as file:
            done = subprocess.run(["promtool", "check", "metrics"], stdin=file, capture_output=True, text=True,
                                  timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @unittest.skipUnless(text_string_to_metric_families, "no python3-prometheus-client")
    def test_python_client(self):
        self.record_rank(1000)
        families = {family.name: family for family in text_string_to_metric_families(self.text())}
        histogram = families["pk_step_duration_seconds"]
        self.assertEqual(histogram.type, "histogram")
        buckets = [(float(s.labels["le"]), s.value) for s in histogram.samples if s.name.endswith("_bucket")]
        self.assertEqual(buckets, sorted(buckets))
        self.assertEqual(buckets[-1], (float("inf"), 1000))
        self.assertIn('reduce "all"', [s.labels["region"] for s in families["pk_region_calls"].samples])


# ---- scrape ----

# Debian's node exporter reads metrics_path's files, two ranks' beside each other, and Debian's
# Prometheus scrapes them: on loopback, on ports that nobody has.

WAIT = 60  # s; they take two


def skip(why):
    print(why)
    sys.exit(77)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_for(what, ask):
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        try:
            answer = ask()
            if answer:
                return answer
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"{what}: not within {WAIT} s")


def query(port, text):
    answer = json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?query=" + urllib.parse.quote(text)))
    return answer["data"]["result"]


def rank_environment(folder, rank):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PK_")}
    environment.update(PK_METRICS_PATH=os.path.join(folder, "pk-%r.prom"), PK_METRICS_SECONDS="1", PK_RANK=str(rank),
                       PK_WORLD_SIZE="3", PK_BACKENDS="none")
    return environment


def record_rank(folder, rank):
    subprocess.run([RUNS, "windows", str(1000 + rank)], env=rank_environment(folder, rank), check=True, timeout=60)


def look(exporter, prometheus):
    page = wait_for("the node exporter", lambda: get(f"http://127.0.0.1:{exporter}/metrics"))
    assert "node_textfile_scrape_error 0" in page, page
    assert 'pk_steps_total{program="tools-runs",rank="1"} 1001' in page, page
    found = wait_for("Prometheus", lambda: query(prometheus, "pk_steps_total"))
    steps = {sample["metric"]["rank"]: float(sample["value"][1]) for sample in found}
    assert steps == {"0": 1000, "1": 1001}, found
    median = query(prometheus, "histogram_quantile(0.5, pk_step_duration_seconds_bucket)")
    assert all(0 < float(sample["value"][1]) < 1 for sample in median) and len(median) == 2, median
    inside = query(prometheus, 'pk_step_duration_seconds_bucket{le="+Inf"}')
    assert {float(sample["value"][1]) for sample in inside} == {1000, 1001}, inside


def numbers(found):
    return all(math.isfinite(float(sample["value"][1])) for sample in found) and found


# What Grafana puts in.
VARIABLES = {"$program": ".*", "$rank": "2", "$__rate_interval": "1m"}


def look_at_board(prometheus):
    """Each panel of the board shows something of the rank that goes on."""
    with open(BOARD, encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    texts = []
    for panel in panels:
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            assert "$" not in text, text
            found = wait_for(panel["title"], lambda: numbers(query(prometheus, text)))
            labels = re.findall(r"{{(\w+)}}", target["legendFormat"])
            assert all(label in sample["metric"] for sample in found for label in labels), (panel["title"], found)
            texts.append(text)
    print(f"{len(panels)} panels")
    show_board(prometheus, texts)


TABLES = "[...document.querySelectorAll('.console_table')].map(table => table.innerText.trim().split('\\n'))"


def show_board(prometheus, texts):
    """As tables on Prometheus' own page: no package has Grafana, and the page that Debian has draws no curve."""
    shown = [{f"g{i}.expr": text, f"g{i}.tab": 1} for i, text in enumerate(texts)]
    address = f"http://127.0.0.1:{prometheus}/classic/graph?" + "&".join(map(urllib.parse.urlencode, shown))
    try:
        with chromium.Browser() as browser:
            page = browser.page(address, width=1200, height=800)
            page.wait(f"{TABLES}.filter(rows => /\\t-?[0-9]/.test(rows[1])).length == {len(texts)}")
            print("rows:", [len(rows) - 1 for rows in page.ask(TABLES)])
    except chromium.Absent as why:
        print(f"not shown: {why}")


def scrape():
    for tool in ("prometheus", "prometheus-node-exporter"):
        if not shutil.which(tool):
            skip(f"no {tool}")
    with tempfile.TemporaryDirectory() as folder:
        files = os.path.join(folder, "textfile")
        os.mkdir(files)
        for rank in range(2):
            record_rank(files, rank)
        exporter, prometheus = free_port(), free_port()
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("scrape_configs:\n- job_name: pk\n  scrape_interval: 1s\n  static_configs:\n"
                       f"  - targets: ['127.0.0.1:{exporter}']\n")
        commands = [["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{exporter}",
                     "--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={files}"],
                    ["prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{prometheus}",
                     f"--storage.tsdb.path={folder}/data"]]
        with open(os.path.join(folder, "log"), "w+b") as log:
            processes = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]
            try:
                look(exporter, prometheus)
                processes.append(subprocess.Popen([RUNS, "windows", "1000000", "slow"], env=rank_environment(files, 2)))
                look_at_board(prometheus)
            finally:
                for process in processes:
                    process.terminate()
                for process in processes:
                    process.wait(30)


if __name__ == "__main__":
    if CASES == ["scrape"]:
        scrape()
    else:
        unittest.main(argv=sys.argv[:1] + CASES)
