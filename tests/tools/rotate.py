"""rotate.py PK RUNS - a trace in several files: each is whole, together they are the run, whatever ends it."""

import collections
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

from folder import InFolder

PK, RUNS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
