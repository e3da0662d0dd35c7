"""merge.py PK - traces of ranks as one: what stands in it, who waits for whom, and parts of it."""

import os
import sys
import unittest

from merge_kit import UNIX, Merge, Rank, ns, us


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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
