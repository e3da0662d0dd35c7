"""merge.py CASE,... PK - pk merge: traces of many ranks in one, whatever their clocks and their files."""

import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
from decimal import Decimal

CASES = sys.argv[1].split(",")
PK = os.path.abspath(sys.argv[2])


# ---- traces of ranks as perfkit writes them ----

UNIX = 1795173753000000000

STEPS_TRACK = 4294967294


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


def ns(number):
    return int(Decimal(number) * 1000)


class Rank:
    """A trace as perfkit writes it, whose clock reads `offset` and `drift` more than the true one."""

    def __init__(self, rank, size, host="node0", pid=None, base=10**12, offset=0, drift=0.0, clock="boot", real=0):
        self.rank, self.size, self.host, self.pid = rank, size, host, pid or 1000 + rank
        self.offset, self.drift, self.base, self.real = offset, drift, base, real
        self.clock = f"{clock}-{host}" if clock else None
        self.events, self.sequence = [], 0
        self.add({"ph": "M", "name": "process_name", "pid": self.pid, "tid": self.pid, "ts": "0.000", "args": {"name": "train"}})
        self.add({"ph": "M", "cat": "__metadata", "name": "process_sort_index", "pid": self.pid, "tid": self.pid, "ts": "0.000",
                  "args": {"sort_index": rank}})

    def add(self, event):
        """ts and dur are texts: their digits are part of what is tested."""
        text = json.dumps(event, separators=(",", ":"))
        for key in ("ts", "dur"):
            if key in event:
                text = text.replace(f'"{key}":"{event[key]}"', f'"{key}":{event[key]}')
        self.events.append(text)

    def local(self, true):
        """What this rank's clock reads, from the beginning of its file on."""
        return true + round(self.drift * true)

    def slice(self, name, start, end, cat="cpu_op", tid=None, **args):
        start, end = self.local(start), self.local(end)
        event = {"ph": "X", "cat": cat, "name": name, "pid": self.pid, "tid": tid or self.pid, "ts": us(start), "dur": us(end - start)}
        self.add(event | ({"args": args} if args else {}))

    def step(self, number, start, end):
        self.slice(f"ProfilerStep#{number}", start, end, "user_annotation", STEPS_TRACK, thread=self.pid, items=1)

    def operation(self, op, start, end, comm="world", sequence=None, **args):
        self.sequence += 1
        self.slice(f"MPI_{op}", start, end, **{"bytes": 8, "Collective name": op, "Group size": self.size, "Process Group Name": comm,
                                             "Process Group Description": "MPI", "Rank": self.rank, "Seq": sequence or self.sequence}, **args)

    def text(self, tail="\n]}\n"):
        clock = {"source": "tsc", "base_monotonic_ns": self.base + self.offset} | ({"id": self.clock} if self.clock else {})
        metadata = {"perfkit": "0.1.0", "host": self.host, "program": "train", "pid": self.pid, "rank": self.rank,
                    "world_size": self.size, "clock": clock}
        start = UNIX + self.base + self.real
        head = (f'{{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":{start},\n"metadata":{json.dumps(metadata)},\n'
                '"traceEvents":[\n')
        return head + ",\n".join(self.events) + tail


class Merge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text):
        data = text.encode() if isinstance(text, str) else text
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(gzip.compress(data) if name.endswith(".gz") else data)
        return self.path(name)

    def ranks(self, ranks, folder="run"):
        for i, rank in enumerate(ranks):
            self.put(f"{folder}/run-{i}.json", rank.text())
        return self.path(folder)

    def run_pk(self, *arguments, **more):
        return subprocess.run([PK, "merge", *arguments], capture_output=True, text=True, check=False, **more)

    def merge(self, *arguments, out="merged.json"):
        done = self.run_pk(*arguments, "-o", self.path(out))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.said = done.stdout
        with (gzip.open if out.endswith(".gz") else open)(self.path(out), "rt", encoding="utf-8") as file:
            self.document = json.load(file, parse_float=Decimal)
        return self.document["traceEvents"]

    def refused(self, *arguments, says, **more):
        done = self.run_pk(*arguments, **more)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(done.stderr, r"\Apk: [ -~]*\n\Z")
        self.assertIn(says, done.stderr)

    def flows(self, events):
        """(pid and time where it starts, where it ends) of each arrow; each has both."""
        ends = {}
        for e in events:
            if e["ph"] in "sf" and e["cat"] == "ranks":
                ends_of = ends.setdefault((e["name"], e["id"]), {})  # what viewers go by
                self.assertNotIn(e["ph"], ends_of)
                ends_of[e["ph"]] = (e["pid"], ns(e["ts"]))
        for pair in ends.values():
            self.assertEqual(set(pair), {"s", "f"})
            self.assertLessEqual(pair["s"][1], pair["f"][1])
        return sorted((pair["s"], pair["f"]) for pair in ends.values())


# ---- traces of ranks as one ----

# What stands in it, who waits for whom, and parts of it.


class OneNode(Merge):
    def test_times_and_who_is_who(self):
        a, b = Rank(0, 2), Rank(1, 2, base=10**12 + 2500)
        a.slice("forward", 100, 300)
        b.slice("forward", 100, 300)
        b.add({"ph": "X", "cat": "cpu_op", "name": "tied \\\" \u00fc,\"ts\":7", "pid": 1001, "tid": 1001, "ts": "12.351002", "dur": "0.058796"})
        b.add({"ph": "C", "cat": "counter", "name": "queue", "pid": 1001, "tid": 1001, "ts": "1.000", "args": {"pid": 5, "ts": 7}})
        b.add({"ph": "M", "cat": "__metadata", "name": "process_name", "pid": 2147739904, "tid": 1, "ts": "0.000", "args": {"name": "GPU 0"}})
        events = self.merge(self.ranks([b, a]))
        self.assertEqual([(e["pid"], e["args"]["name"]) for e in events if e["name"] == "process_name"],
                         [(1000, "rank 0 node0"), (1001, "rank 1 node0"), (2147739904, "rank 1 node0 GPU 0")])
        self.assertEqual(["cat" in e for e in events], [False] + [True] * (len(events) - 1))
        self.assertEqual([(e["pid"], ns(e["ts"]), ns(e["dur"])) for e in events if e["name"] == "forward"],
                         [(1000, 100, 200), (1001, 2600, 200)])
        tied, = [e for e in events if e["name"].startswith("tied")]
        self.assertEqual((str(tied["ts"]), str(tied["dur"])), ("14.851002", "0.058796"))  # every digit means something
        counter, = [e for e in events if e["ph"] == "C"]
        self.assertEqual((ns(counter["ts"]), counter["args"]), (3500, {"pid": 5, "ts": 7}))
        self.assertEqual(self.document["baseTimeNanoseconds"], UNIX + 10**12)
        self.assertIn("ranks: 0-1 (2 of 2)\n", self.said)
        self.assertEqual(self.document["metadata"]["merged"], 2)

    def test_numbers_of_processes_and_arrows(self):
        """Containers: the same pid; two that call themselves rank 0: the same ids."""
        ranks = [Rank(0, 0, pid=1), Rank(0, 0, host="node1", pid=1), Rank(0, 0, host="node2", pid=1)]
        for rank in ranks:
            rank.slice("work", 100, 900)
            rank.add({"ph": "s", "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": "0.200", "id": 7})
            rank.add({"ph": "f", "bp": "e", "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": "0.300", "id": 7})
        events = self.merge(self.ranks(ranks))
        self.assertEqual(len({e["pid"] for e in events}), 3)
        self.assertEqual(len({e["id"] for e in events if e["ph"] == "s"}), 3)
        self.assertEqual([e["id"] for e in events if e["ph"] == "s"], [e["id"] for e in events if e["ph"] == "f"])
        self.assertTrue(all(0 < e["id"] < 2**53 and 0 < e["pid"] < 2**32 for e in events if "id" in e))

    def test_captures_of_one_process(self):
        a, b = Rank(0, 1), Rank(0, 1, base=10**12 + 10**6)
        a.slice("x", 10, 20)
        b.slice("x", 10, 20)
        self.assertEqual({e["pid"] for e in self.merge(self.ranks([a, b]))}, {1000})

    def test_collectives(self):
        """From the last to come to all others."""
        ranks = [Rank(r, 3) for r in range(3)]
        for number, late in enumerate((1, 0, 2)):
            for r, rank in enumerate(ranks):
                rank.operation("all_reduce", 10000 * number + (5000 if r == late else 10 * r), 10000 * number + 6000 + r)
        ranks[0].operation("broadcast", 50000, 50100, Root=0)
        ranks[1].operation("broadcast", 50050, 50200, Root=0)
        ranks[2].operation("broadcast", 49000, 50300, Root=0)
        for rank in ranks:
            rank.operation("reduce", 60000 + rank.rank, 60900, Root=2)
        arrows = self.flows(self.merge(self.ranks(ranks)))
        self.assertEqual([(s[0] - 1000, f[0] - 1000) for s, f in sorted(arrows, key=lambda a: a[1][1])],
                         [(1, 0), (1, 2), (0, 1), (0, 2), (2, 0), (2, 1), (0, 1), (0, 2), (0, 2), (1, 2)])
        self.assertIn("arrows: 10, of 0 messages and 5 collectives", self.said)
        self.assertNotIn("backwards", self.said)

    def test_messages(self):
        """The n-th that was sent is the n-th that was received, by sender, receiver and tag."""
        a, b = Rank(0, 2), Rank(1, 2)
        for i in range(4):
            a.operation("send", 1000 * i, 1000 * i + 10, **{"Dst Rank": 1, "Tag": i % 2})
        for i in (1, 3, 0, 2):  # in another order by tags
            b.operation("recv", 4000 + 100 * i, 4050 + 100 * i, **{"Src Rank": 0, "Tag": i % 2})
        arrows = self.flows(self.merge(self.ranks([a, b])))
        self.assertEqual([(s[1], f[1]) for s, f in arrows], [(1000 * i, 4049 + 100 * i) for i in range(4)])

    def test_what_returns_at_once(self):
        a, b = Rank(0, 2), Rank(1, 2)
        args = {"Collective name": "send", "Group size": 2, "Process Group Name": "world", "Process Group Description": "MPI", "Rank": 0,
                "Seq": 1, "Dst Rank": 1, "region": "halo"}
        a.slice("MPI_Irecv", 50, 90)
        a.slice("MPI_Isend", 130, 200)
        a.slice("halo", 0, 500)
        a.add({"ph": "b", "cat": "collective", "name": "MPI send", "pid": 1000, "tid": 1000, "ts": "0.100", "id": 5, "args": args})
        a.add({"ph": "e", "cat": "collective", "name": "MPI send", "pid": 1000, "tid": 1000, "ts": "0.900", "id": 5})
        b.operation("recv", 50, 800, **{"Src Rank": 0})
        self.assertEqual(self.flows(self.merge(self.ranks([a, b]))), [((1000, 130), (1001, 799))])

    def test_a_receive_before_its_send_has_no_arrow(self):
        a, b = Rank(0, 2), Rank(1, 2)
        a.operation("send", 5000, 5100, **{"Dst Rank": 1})
        b.operation("recv", 3000, 4000, **{"Src Rank": 0})
        self.assertEqual(self.flows(self.merge(self.ranks([a, b]))), [])
        self.assertIn("backwards: 1 end is before what it has to follow, by up to 1.000 us", self.said)

    def test_what_has_no_other_side(self):
        a, b = Rank(0, 4), Rank(1, 4)
        for _ in range(3):
            a.operation("send", 10, 20, **{"Dst Rank": 1})
        b.operation("recv", 10, 20, **{"Src Rank": 0})
        a.operation("barrier", 30, 40, sequence=99)
        self.assertEqual(self.flows(self.merge(self.ranks([a, b]))), [])
        self.assertIn("alone: 5 ", self.said)
        self.assertIn("missing: 2-3", self.said)

    def test_communicators_with_the_same_name(self):
        """Rows of a grid: two of two ranks each, not one of four."""
        ranks = [Rank(r, 4) for r in range(4)]
        for r, rank in enumerate(ranks):
            rank.rank, rank.size = r % 2, 2
            rank.operation("all_reduce", 100 + r, 200, comm="row")
            rank.rank, rank.size = r, 4
        self.assertEqual(self.flows(self.merge(self.ranks(ranks))), [])
        self.assertIn("ambiguous: 1 collective", self.said)

    def test_many_operations(self):
        """More than are kept in memory."""
        ranks, count = [Rank(r, 2) for r in range(2)], 80000
        for r, rank in enumerate(ranks):
            for i in range(count):
                rank.operation("barrier", 1000 * i + r, 1000 * i + 500)
        self.assertEqual(len(self.flows(self.merge(self.ranks(ranks)))), count)


class Windows(Merge):
    def make(self):
        ranks = [Rank(r, 4) for r in range(4)]
        for r, rank in enumerate(ranks):
            for i in range(10):
                start = 1000 * i + 100 * r
                rank.step(i, start, start + 1000)
                rank.slice("work", start, start + 900)
                rank.operation("barrier", start + 900, 1000 * i + 1200)
        return self.ranks(ranks)

    def names(self, events, name="ProfilerStep#"):
        return sorted({(e["pid"] - 1000, e["name"]) for e in events if e["name"].startswith(name)})

    def test_ranks(self):
        events = self.merge(self.make(), "--ranks", "0,2-9")
        self.assertEqual({e["pid"] for e in events}, {1000, 1002, 1003})
        self.assertIn("ranks: 0, 2-3 (3 of 4); missing: 1\n", self.said)

    def test_steps(self):
        """From the first one's beginning of the first to the last one's end of the last, for all."""
        events = self.merge(self.make(), "--steps", "4-5")
        self.assertEqual({e["pid"] for e in events}, {1000, 1001, 1002, 1003})
        for e in events:
            if e["ph"] == "X":
                self.assertLessEqual(ns(e["ts"]), 6300)
                self.assertGreaterEqual(ns(e["ts"]) + ns(e["dur"]), 4000)
        for rank in range(4):
            self.assertTrue({(rank, "ProfilerStep#4"), (rank, "ProfilerStep#5")} <= set(self.names(events)))
        self.assertNotIn((0, "ProfilerStep#2"), self.names(events))
        self.assertEqual(len(self.flows(events)) % 3, 0)

    def test_seconds(self):
        events = self.merge(self.make(), "--from", "0.0000051", "--to", ".0000052")
        self.assertEqual(self.names(events)[:2], [(0, "ProfilerStep#5"), (1, "ProfilerStep#4")])
        self.assertFalse(self.names(events, "ProfilerStep#6"))

    def test_no_end_without_its_beginning(self):
        rank = Rank(0, 1)
        for i, (ph, at) in enumerate((("s", 100), ("f", 900), ("s", 800), ("f", 950))):
            rank.add({"ph": ph, "cat": "a", "name": "a", "pid": 1000, "tid": 1000, "ts": us(at), "id": i // 2})
        events = self.merge(self.ranks([rank]), "--from", "0.0000005")
        self.assertEqual([(e["ph"], e["id"]) for e in events if "id" in e], [("s", 1), ("f", 1)])

    def test_nothing_of_it(self):
        folder, out = self.make(), self.path("o.json")
        self.refused(folder, "-o", out, "--steps", "77", says="no rank has one of these steps")
        self.refused(folder, "-o", out, "--ranks", "77", says="no trace is of one of these ranks")
        self.assertFalse(os.path.exists(out))


# ---- traces of several nodes ----

# Whose clocks `pk merge` goes by, and how wrong it says they may be.


class Nodes(Merge):
    """Ranks of two nodes, whose clocks have nothing to do with each other."""

    def job(self, seed, offset, drift, steps=200, period=10**7, slowest=50000, nodes=2):
        rng = random.Random(seed)
        ranks = [Rank(r, 2 * nodes, host=f"node{r // 2}", offset=(r // 2) * offset, drift=(r // 2) * drift, base=10**12 + rng.randint(0, 10**6),
                      real=rng.randint(-20 * 10**6, 20 * 10**6)) for r in range(2 * nodes)]
        for i in range(steps):
            true = [period * i + rng.randint(0, period // 4) for _ in ranks]
            last = 10**12 + max(at + rank.base - 10**12 for at, rank in zip(true, ranks))
            for at, rank in zip(true, ranks):
                end = last + rng.randint(200, slowest) - rank.base
                rank.slice("work", at - 100 if at > 100 else at, at)
                rank.operation("all_reduce", at, end)
        return ranks

    def errors(self, ranks, events):
        """How far each slice is from where it truly was, relative to the first rank's, ns."""
        times = {}
        for e in events:
            if e["name"] == "MPI_all_reduce":
                times.setdefault(e["pid"] - 1000, []).append(ns(e["ts"]))
        off = {}
        for rank in ranks:
            true = []
            for text in rank.events:
                e = json.loads(text, parse_float=Decimal)
                if e["name"] == "MPI_all_reduce":
                    true.append(round(ns(e["ts"]) / (1 + rank.drift)) + rank.base)
            off[rank.rank] = [seen - at for seen, at in zip(times[rank.rank], true)]
        zero = off[0][0]
        return max(abs(value - zero) for values in off.values() for value in values)

    def test_the_truth_is_where_it_is_said_to_be(self):
        for seed, (offset, drift) in enumerate([(0, 0), (123456789, 0), (-987654321, 5e-6), (10**15, -20e-6), (7 * 10**9, 1e-6)]):
            with self.subTest(offset=offset, drift=drift):
                ranks = self.job(seed, offset, drift)
                events = self.merge(self.ranks(ranks, f"run{seed}"), out=f"m{seed}.json")
                clock = self.document["metadata"]["clocks"][1]
                self.assertEqual((clock["host"], clock["method"], clock["broken"]), ("node1", "messages and collectives", False))
                self.assertLessEqual(self.errors(ranks, events), clock["uncertainty_ns"])
                self.assertLess(clock["uncertainty_ns"], 50000)
                self.assertLess(abs(float(clock["drift_ppm"]) + 1e6 * drift), 1)
                self.assertLessEqual(abs(float(clock["drift_ppm"]) + 1e6 * drift), clock["drift_uncertainty_ppm"])
                seen = abs(float(clock["drift_ppm"])) > clock["drift_uncertainty_ppm"]
                self.assertIn("it drifts" if seen else "no drift beyond", self.said)
                self.assertEqual(seen, abs(drift) > 4e-6)
                self.assertNotIn("backwards", self.said)
                self.assertIn("clock of node1: within ", self.said)

    def test_nesting_survives_a_drifting_clock(self):
        ranks = self.job(3, 5 * 10**9, 40e-6)
        for rank in ranks:
            for i in range(500):
                start = 10**6 * i
                rank.slice("outer", start, start + 900001)
                rank.slice("inner", start + 300000, start + 900001)
        events = self.merge(self.ranks(ranks))
        for pid in (1000, 1002, 1003):
            outer, inner = ([(ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in events if (e["name"], e["pid"]) == (name, pid)]
                            for name in ("outer", "inner"))
            for (from_, to), (begin, end) in zip(outer, inner):
                self.assertLessEqual(from_, begin)
                self.assertLessEqual(end, to)

    def test_more_nodes(self):
        ranks = self.job(5, 3 * 10**9, 2e-6, nodes=5)
        events = self.merge(self.ranks(ranks))
        self.assertLessEqual(self.errors(ranks, events), max(c["uncertainty_ns"] for c in self.document["metadata"]["clocks"]))

    def test_without_anything_in_common(self):
        a, b = Rank(0, 2), Rank(1, 2, host="node1", offset=10**9, real=500)
        a.slice("x", 0, 100)
        b.slice("x", 0, 100)
        events = self.merge(self.ranks([a, b]))
        self.assertEqual([ns(e["ts"]) for e in events if e["name"] == "x"], [0, 500])
        self.assertIsNone(self.document["metadata"]["clocks"][1]["uncertainty_ns"])
        self.assertIn("clock of node1: by the nodes' real times, which nothing here bounds", self.said)

    def test_a_broken_clock_is_said(self):
        ranks = self.job(1, 10**9, 0)
        for at in (10**8, 2 * 10**8, 3 * 10**8):  # an operation that ends before others begin it, by a second
            ranks[0].operation("barrier", at, at + 10, sequence=10**6 + at)
            ranks[2].operation("barrier", at + 10**9, at + 10**9 + 10, sequence=10**6 + at)
            ranks[0].operation("barrier", at + 10**9, at + 10**9 + 10, sequence=2 * 10**6 + at)
            ranks[2].operation("barrier", at, at + 10, sequence=2 * 10**6 + at)
        self.merge(self.ranks(ranks))
        self.assertIn("clock of node1: broken: ", self.said)
        self.assertTrue(self.document["metadata"]["clocks"][1]["broken"])

    def test_messages_alone(self):
        a, b = Rank(0, 2), Rank(1, 2, host="node1", offset=-4 * 10**9)
        for i in range(200):
            at = 10**6 * i
            a.operation("send", at, at + 100, **{"Dst Rank": 1})
            b.operation("recv", at - 50 if i else 0, at + 900, **{"Src Rank": 0})
            b.operation("send", at + 1000, at + 1100, **{"Dst Rank": 0})
            a.operation("recv", at + 200, at + 1900, **{"Src Rank": 1})
        self.merge(self.ranks([a, b]))
        clock = self.document["metadata"]["clocks"][1]
        self.assertLessEqual(abs(clock["offset_ns"] - 4 * 10**9), clock["uncertainty_ns"])
        self.assertLessEqual(clock["uncertainty_ns"], 1000)

    def test_traces_that_do_not_say_which_clock(self):
        """By older versions: by the host's name."""
        a, b = Rank(0, 2, clock=None), Rank(1, 2, clock=None, base=10**12 + 700)
        b.slice("x", 0, 100)
        self.assertEqual([ns(e["ts"]) for e in self.merge(self.ranks([a, b])) if e["name"] == "x"], [700])


# ---- which files `pk merge` takes and makes, and what cannot be used ----


class Files(Merge):
    def job(self):
        ranks = [Rank(r, 3) for r in range(3)]
        for rank in ranks:
            for i in range(50):
                rank.slice("work", 1000 * i, 1000 * i + 500)
        return ranks

    def count(self, events):
        return [sum(e["pid"] == 1000 + r and e["name"] == "work" for e in events) for r in range(3)]

    def test_compressed(self):
        folder = os.path.dirname([self.put(f"run/{r}.json.gz", rank.text()) for r, rank in enumerate(self.job())][0])
        self.assertEqual(self.count(self.merge(folder, out="merged.json.gz")), [50] * 3)
        with open(self.path("merged.json.gz"), "rb") as file:
            self.assertEqual(file.read(2), b"\x1f\x8b")

    def test_killed_runs(self):
        ranks = self.job()
        whole = ranks[1].text()
        cut = whole[: whole.index(ranks[1].events[30]) + 50]
        for i, text in enumerate((ranks[0].text(), cut, ranks[2].text(tail=""))):
            self.put(f"run/{i}.json", text)
        self.put("run/2.json.arena", b"PKARENA")
        self.assertEqual(self.count(self.merge(self.path("run"))), [50, 28, 50])
        self.assertIn("1.json: it is cut off\n", self.said)
        self.assertIn("2.json: the run was killed; `pk recover ", self.said)

    def test_damaged_files(self):
        ranks = self.job()
        spoilt = ranks[1].text().replace(ranks[1].events[30], '{"ph":"X","na')
        for i, text in enumerate((ranks[0].text(), spoilt, ranks[2].text())):
            self.put(f"run/{i}.json", text)
        done = self.run_pk(self.path("run"), "-o", self.path("o.json"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("1.json: is damaged: line 34 is not an event; merged is what stands before it", done.stderr)
        with open(self.path("o.json"), encoding="utf-8") as file:
            self.assertEqual(self.count(json.load(file)["traceEvents"]), [50, 28, 50])

    def test_folders_have_other_files(self):
        folder = self.ranks(self.job())
        self.put("run/report.json", '{"format":"perfkit report","schema":1}')
        self.put("run/windows.json", '{"format":"perfkit window"}\n')
        self.put("run/notes.txt", "hello")
        self.put("run/bad.json", "hello")
        self.put("run/deeper/3.json", Rank(7, 8).text())
        self.assertEqual(self.count(self.merge(folder, out="run/merged.json")), [50] * 3)
        self.assertEqual(self.count(self.merge(folder, out="run/merged.json")), [50] * 3)  # it is none of them
        self.assertEqual(self.count(self.merge(folder, out="again.json")), [50] * 3)
        self.assertIn("4 traces", self.said)

    def test_traces_of_others(self):
        """In PyTorch's layout, with a line for each member, and an array."""
        document = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2}, "baseTimeNanoseconds": UNIX + 10**12,
                    "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 10.5, "dur": 3.25,
                                     "args": {"a": {"b": [1]}}}]}
        self.put("run/0.json", Rank(0, 2).text())
        self.put("run/1.json", json.dumps(document, indent=2))
        self.put("run/2.json", '[{"ph":"X","cat":"c","name":"other","pid":9,"tid":9,"ts":1,"dur":1},\n{"ph":"i","name":"n","pid":9,"tid":9,"ts":-3}]')
        events = self.merge(self.path("run"))
        mm, = [e for e in events if e["name"] == "aten::mm"]
        self.assertEqual((float(mm["dur"]), mm["args"]), (3.25, {"a": {"b": [1]}}))
        self.assertIn("left out: 1 event without a time", self.said)

    def test_few_files_are_open_at_once(self):
        ranks = [Rank(r, 1024) for r in range(1024)]
        for r, rank in enumerate(ranks):
            rank.operation("barrier", r, 2000)
        folder = self.ranks(ranks)
        done = self.run_pk(folder, "-o", self.path("o.json"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("o.json"), encoding="utf-8") as file:
            self.assertEqual(len(self.flows(json.load(file, parse_float=Decimal)["traceEvents"])), 64)  # to who waited longest
        self.assertIn("ranks: 0-1023 (1024 of 1024)", done.stdout)

    def test_what_cannot_be_used(self):
        folder, out = self.ranks(self.job()), self.path("o.json")
        report = self.put("report.json", '{"format":"perfkit report","schema":1}')
        os.mkdir(self.path("empty"))
        self.refused(says="merge needs traces")
        self.refused(folder, says="merge needs -o")
        self.refused(self.path("none.json"), "-o", out, says="No such file")
        self.refused(self.path("empty"), "-o", out, says="there is no trace in")
        self.refused(report, "-o", out, says="is no trace of one process")
        self.refused(os.path.join(folder, "run-0.json"), "-o", os.path.join(folder, "run-0.json"), says="is the output, too")
        self.refused(folder, "-o", self.path("no/such/folder.json"), says="No such file")
        for wrong in ("", "x", "3-1", "1,,2", "1-"):
            self.refused(folder, "-o", out, f"--ranks={wrong}", says="--ranks")
        self.refused(folder, "-o", out, "--steps", "a", says="--steps takes")
        self.refused(folder, "-o", out, "--from", "soon", says="--from takes seconds")
        self.refused(folder, "-o", out, "--steps", "1", "--to", "1", says="--steps, or --from and --to")
        self.refused(folder, "-o", out, "--manifest", "--steps", "1", says="--manifest leaves the files as they are")
        self.assertFalse(os.path.exists(out))

    def test_a_full_disk(self):
        """Neither half a file under its name nor what it was called before; an older one stays."""
        ranks = [Rank(r, 2) for r in range(2)]
        for rank in ranks:
            for i in range(30000):
                rank.operation("barrier", 1000 * i, 1000 * i + 500)
        folder, out = self.ranks(ranks), self.put("o.json", "older")

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
        for name in ("o.json", "o.tar"):
            self.refused(folder, "-o", self.path(name), *(["--manifest"] if name == "o.tar" else []), says="File too large", preexec_fn=limit)
        self.assertEqual(sorted(os.listdir(self.folder)), ["o.json", "run"])
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), "older")

    def test_manifest(self):
        ranks = [Rank(0, 3), Rank(1, 3, base=10**12 + 900), Rank(2, 3, host="node1", offset=10**9, real=5000)]
        folder = self.ranks(ranks)
        done = self.run_pk(folder, "-o", self.path("job.tar"), "--manifest")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with tarfile.open(self.path("job.tar")) as archive:
            names = archive.getnames()
            manifest = json.load(archive.extractfile("perfetto_manifest.json"))["perfetto_manifest"]
            self.assertEqual(archive.extractfile(names[2]).read().decode(), ranks[1].text())
        self.assertEqual(names, ["perfetto_manifest.json", *(entry["path"] for entry in manifest["files"])])
        self.assertEqual(manifest["version"], 1)
        self.assertEqual([(entry["machine"]["name"], entry["clocks"]["offset_ns"]) for entry in manifest["files"]],
                         [("node0", 0), ("node0", 900), ("node1", 5000)])
        done = self.run_pk(folder, "-o", self.path("perfetto_manifest.json"), "--manifest")
        self.assertEqual(done.returncode, 0)
        with open(self.path("perfetto_manifest.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["perfetto_manifest"]["files"][0]["path"], folder.lstrip("/") + "/run-0.json")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + CASES)
