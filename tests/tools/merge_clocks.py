"""merge_clocks.py PK - traces of several nodes: whose clocks `pk merge` goes by, and how wrong it says they may be."""

import json
import random
import sys
import unittest
from decimal import Decimal

from merge_kit import Merge, Rank, ns


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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
