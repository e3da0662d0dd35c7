"""comm.py PK RUNS - what was done on communicators: in the report of a session, and in one made of its trace."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

PK, RUNS = sys.argv[1], sys.argv[2]
ROUNDS = 40


def run(*arguments, **more):
    return subprocess.run(arguments, capture_output=True, timeout=120, check=False, **more)


class Session(unittest.TestCase):
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
        done = run(RUNS, "comm", *arguments, env=environment)
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
