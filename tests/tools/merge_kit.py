"""merge_kit.py - traces of ranks as perfkit writes them, and `pk merge` of them. PK is the program's first argument."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal

PK = os.path.abspath(sys.argv[1])
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
