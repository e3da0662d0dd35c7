"""recover.py PK RUNS - the command line of `pk recover` and `pk status`.

A trace that is cut anywhere, an arena that is spoilt anywhere: a whole trace, or one line that says why not.
"""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import unittest

import traces
from traces import InFolder

PK, RUNS = sys.argv[1], sys.argv[2]
# Under a sanitizer a process takes ten times as long; fuzz-salvage has thousands of spoilt arenas in one.
FEWER = 4 if os.environ.get("PK_TEST_NO_LIMIT") else 1

# In an arena, the text that waits to be written lies between; spoilt text is text, and not looked into.
TEXT, BEHIND = 150000, 1400000


def run(*arguments, **more):
    return subprocess.run([PK, *arguments], capture_output=True, timeout=120, check=False, **more)


class Commands(InFolder):
    def file(self, content, name):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def refused(self, *arguments, says=""):
        done = run(*arguments)
        said = done.stderr.decode()
        self.assertEqual(done.returncode, 2, said)
        self.assertRegex(said, r"\Apk: [ -~]*\n\Z")  # one line
        self.assertIn(says, said)
        return said


class Cut(Commands):
    whole = traces.trace().encode()

    def events(self, path):
        with open(path, "rb") as file:
            content = file.read()
        if path.endswith(".gz"):
            content = gzip.decompress(content)
        return json.loads(content)["traceEvents"]

    def recovered(self, content, name):
        out = self.path("out-" + name)
        done = run("recover", self.file(content, name), "-o", out)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return self.events(out)

    def test_cut_anywhere(self):
        wanted = json.loads(self.whole)["traceEvents"]
        first = self.whole.index(b"\n{\"ph\"")
        chance = random.Random(5)
        for at in sorted(chance.randrange(first + 2, len(self.whole)) for _ in range(60 // FEWER)):
            events = self.recovered(self.whole[:at], "cut.json")
            lines = self.whole[first:at].count(b"\n") - 1  # those that were whole for certain
            self.assertEqual(events, wanted[: len(events)])
            self.assertGreaterEqual(len(events), min(lines, len(wanted)))

    def test_cut_gzip(self):
        wanted = json.loads(self.whole)["traceEvents"]
        packed = gzip.compress(self.whole)
        events = self.recovered(packed[: len(packed) * 2 // 3], "cut.json.gz")
        self.assertEqual(events, wanted[: len(events)])
        self.assertGreater(len(events), 10)

    def test_whole_stays_whole(self):
        self.assertEqual(self.recovered(self.whole, "whole.json"), json.loads(self.whole)["traceEvents"])

    def test_refusals(self):
        trace = self.file(self.whole, "t.json")
        self.refused("recover", says="needs a file")
        self.refused("recover", trace, says="-o")  # never over the original unasked
        self.refused("recover", trace, "x", says="one file")
        self.refused("recover", "--nonsense", says="no option")
        self.refused("recover", trace, "-o", says="-o needs")
        self.refused("recover", self.path("none.json"), "-o", trace, says="No such file")
        self.refused("recover", self.folder, "-o", trace)
        self.refused("recover", self.file(b"", "empty.json"), "-o", self.path("o.json"))
        self.refused("recover", self.file(b"hello\n", "text"), "-o", self.path("o.json"), says="not a trace")
        self.refused("recover", self.file(self.whole[:40], "head"), "-o", self.path("o.json"))
        self.refused("recover", trace, "-o", self.path("no/such/folder.json"))
        with open(trace, "rb") as file:
            self.assertEqual(file.read(), self.whole)


class Arena(Commands):
    def killed(self, arena=None, memory="8M"):
        """The trace and the arena of a run that was killed."""
        trace = self.path("run.json")
        environment = dict(os.environ, PK_TRACE_PATH=trace, PK_MEMORY_BYTES=memory, PK_RING_RECORDS="1024")
        if arena:
            environment["PK_ARENA_PATH"] = arena
        arena = arena or trace + ".arena"
        victim = subprocess.Popen([RUNS, "victim"], env=environment, stdout=subprocess.PIPE)
        self.addCleanup(victim.stdout.close)
        victim.stdout.readline()  # it is under way
        self.refused("recover", arena, says="still writing")
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        return trace, arena

    def test_read_only(self):
        """Whoever may only read it is told of the writer, too."""
        trace, arena = self.path("run.json"), self.path("run.json.arena")
        environment = dict(os.environ, PK_TRACE_PATH=trace, PK_MEMORY_BYTES="8M", PK_RING_RECORDS="1024")
        victim = subprocess.Popen([RUNS, "victim"], env=environment, stdout=subprocess.PIPE)
        self.addCleanup(victim.stdout.close)
        victim.stdout.readline()
        pk = shutil.copy(PK, self.path("pk"))  # the build may lie where nobody else may look
        commands = os.path.join(os.path.dirname(PK), "pk-commands")
        copies = [pk] + ([shutil.copy(commands, self.path("pk-commands"))] if os.path.exists(commands) else [])
        for path in (self.folder, arena, trace, *copies):
            os.chmod(path, 0o755)
        if os.geteuid() == 0:
            done = subprocess.run([pk, "recover", arena, "-o", "/dev/shm/none"], user=65534, capture_output=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"process %d is still writing it" % victim.pid, done.stderr)
        victim.kill()
        victim.wait()

    def test_recovered(self):
        trace, arena = self.killed()
        done = run("recover", arena, "-o", self.path("again.json"))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(run("recover", arena).returncode, 0)  # in its place
        with open(trace) as file, open(self.path("again.json")) as again:
            first, second = json.load(file), json.load(again)
        self.assertEqual(first, second)
        open_ones = [e["name"] for e in first["traceEvents"] if "unbalanced" in e.get("args", {})]
        self.assertEqual(sorted(open_ones), ["inner", "outer"])
        self.assertTrue(all(e["args"]["cut_off"] == 1 for e in first["traceEvents"] if e["name"] in open_ones))
        self.assertFalse(first["metadata"]["complete"])

    def test_counts_of_a_killed_run(self):
        """Steps and points are those of the events; what only the kill left open is nobody's mistake."""
        trace, arena = self.killed()
        self.assertEqual(run("recover", arena).returncode, 0)
        with open(trace) as file:
            document = json.load(file)
        counts, events = document["metadata"]["counts"], document["traceEvents"]
        steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
        marks = [e for e in events if e["ph"] == "i"]
        regions = [e for e in events if e["ph"] == "X" and e not in steps]
        self.assertEqual(counts["steps"], 500)  # all, also those for which the ring was full
        self.assertEqual(counts["points"], len(steps) + len(marks))
        self.assertEqual(counts["points"] + counts["points_dropped"], 1000)
        self.assertEqual((counts["recorded"], counts["recorded"] + counts["dropped"]), (len(regions), 502))
        self.assertEqual((counts["threads"], counts["unbalanced"]), (1, 0))
        report = json.loads(run("report", "--json", trace).stdout)
        self.assertEqual((report["counts"]["steps"], report["counts"]["unbalanced"]), (500, 0))
        self.assertNotIn("unbalanced", [verdict["name"] for verdict in report["verdicts"]])
        self.assertIn("incomplete", [verdict["name"] for verdict in report["verdicts"]])

    def test_ended_within_pk_start(self):
        """Whatever has been made of an arena by then."""
        _, arena = self.killed()
        with open(arena, "rb") as file:
            sound = file.read(1 << 20)
        for made in (b"", bytes(4096), bytes(1 << 20), sound[:8] + bytes(1 << 20)):
            for more in ((), ("-o", self.path("out.json"))):
                self.refused("recover", self.file(made, "start.json.arena"), *more, says="ended within pk_start")

    def test_what_perfkit_took_until_then(self):
        """The victim's pk_flush, and the recording before it, are known after its death."""
        trace, arena = self.killed()
        self.assertEqual(run("recover", arena).returncode, 0)
        report = json.loads(run("report", "--json", trace).stdout)
        took = report["overhead"]
        self.assertGreater(took["callers"], 0)
        self.assertGreater(took["recording"], 0)
        self.assertGreater(report["run"]["cpu"], took["callers"])
        self.assertAlmostEqual(took["total"], took["recording"] + took["collector"] + took["callers"] + took["captures"] + took["readings"]
                               + took["backends"], 3)
        self.assertAlmostEqual(took["share"], took["total"] / report["run"]["cpu"], 6)

    def test_spoilt(self):
        """Whatever stands in it: a trace or a refusal, never a crash and never a trace that is none."""
        _, arena = self.killed()
        with open(arena, "rb") as file:
            sound = bytearray(file.read(2 << 20))
        chance = random.Random(11)
        out = self.path("out.json")
        for _ in range(80 // FEWER):
            spoilt = bytearray(sound)
            for _ in range(chance.choice((1, 4, 64))):
                at = chance.choice((chance.randrange(1024), chance.randrange(TEXT), chance.randrange(BEHIND, len(sound))))
                spoilt[at] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
            spoilt = spoilt[: chance.choice((len(spoilt), chance.randrange(len(spoilt))))]
            done = run("recover", self.file(bytes(spoilt), "run.json.arena"), "-o", out)
            self.assertIn(done.returncode, (0, 2), done)
            if done.returncode == 0:
                with open(out, encoding="utf-8") as file:
                    json.load(file)

    def test_refusals(self):
        trace, arena = self.killed()
        os.rename(trace, self.path("moved.json"))
        self.refused("recover", arena, says="is not there: --trace says where")
        self.refused("recover", arena, "--trace", self.path("none.json"), says="No such file")
        with open(trace, "w", encoding="utf-8") as file:
            file.write(traces.trace())
        elsewhere = self.path("elsewhere.arena")
        os.rename(arena, elsewhere)
        self.refused("recover", elsewhere, says="another run's")
        with open(trace, encoding="utf-8") as file:
            self.assertEqual(file.read(), traces.trace())

    def test_away_from_its_trace(self):
        """An arena_path of its own, /dev/shm say; and a trace that has been moved since."""
        folder = self.path("shm")
        os.mkdir(folder)
        trace, arena = self.killed(os.path.join(folder, "run-0.arena"))
        self.assertEqual(run("recover", arena).returncode, 0)
        with open(trace, encoding="utf-8") as file:
            first = json.load(file)
        self.assertEqual(first["metadata"]["counts"]["steps"], 500)
        moved = self.path("moved.json")
        os.rename(trace, moved)
        os.rename(arena, self.path("any name"))
        done = run("recover", self.path("any name"), "--trace", moved, "-o", self.path("out.json"))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"out.json", done.stdout)

    def test_an_arena_shows_what_is_used(self):
        """Not a gigabyte of holes, which people clear."""
        _, arena = self.killed(memory="1G")
        self.assertLess(os.stat(arena).st_size, 32 << 20)


class Status(Commands):
    def test_what_it_says(self):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        done = run("status", env=dict(clean, PK_RING_RECORDS="1024", PK_TRCE_PATH="x", OMPI_COMM_WORLD_RANK="2",
                                      OMPI_COMM_WORLD_SIZE="4"))
        said = done.stdout.decode()
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        for start in ("perfkit ", "clock ", "region ", "limits ", "memory ", "traces ", "cuda ", "nccl "):
            self.assertRegex(said, rf"(?m)^{start}")
        self.assertIn("2 of 4", said)
        self.assertRegex(said, r"(?m)^PK_RING_RECORDS=1024$")
        self.assertRegex(said, r"(?m)^PK_TRCE_PATH=x .*does not know")

    def test_refusals(self):
        done = run("status", env=dict(os.environ, PK_CLOCK="sundial"))
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"sundial", done.stderr)
        self.refused("status", "now", says="now")
        self.assertEqual(run("status", "--help").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
