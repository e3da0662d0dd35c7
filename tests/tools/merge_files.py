"""merge_files.py PK - which files `pk merge` takes and makes, and what cannot be used."""

import json
import os
import resource
import signal
import sys
import tarfile
import unittest
from decimal import Decimal

from merge_kit import UNIX, Merge, Rank


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
    unittest.main(argv=sys.argv[:1])
