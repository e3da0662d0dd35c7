"""job.py PK JOB_FILES RUN_TRACE RUNS - pk job over files of all sorts: forged ranks with a known culprit, folders, traces
beside reports, what is missing, cut off, twice there or no file of a run at all.
"""

import gzip
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

import traces

PK, FORGE, RUN_TRACE, RUNS = sys.argv[1:5]


class Job(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def forge(self, name="job", **numbers):
        """A folder of ranks' files; the ranks that are slow."""
        os.mkdir(self.path(name))
        done = subprocess.run([FORGE, self.path(name), *(f"{key}={value}" for key, value in numbers.items())],
                              check=True, capture_output=True, text=True, timeout=120)
        return [int(line) for line in done.stdout.split()]

    def run_pk(self, *arguments, expect=0):
        done = subprocess.run([PK, "job", *arguments], capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stdout if expect != 2 else done.stderr

    def job(self, *arguments):
        return json.loads(self.run_pk("--json", *arguments))

    def files(self, name="job"):
        return sorted(os.path.join(folder, file) for folder, _, names in os.walk(self.path(name)) for file in names)

    def verdicts(self, report):
        return [v["name"] for v in report["verdicts"]]

    def test_names_the_rank_and_its_stage(self):
        slow = self.forge(ranks=16, culprits=1, slow=0.1, stage=2, per_host=4)
        report = self.job(self.path("job"))
        late = report["verdicts"][0]
        self.assertEqual((late["name"], late["rank"], late["stage"]), ("late-rank", slow[0], "backward"))
        self.assertEqual(late["host"], f"node{slow[0] // 4}")
        self.assertTrue(late["late_low"] < 0.1 < late["late_high"], late)
        text = self.run_pk(self.path("job"))
        self.assertIn(f"Rank {slow[0]} (host node{slow[0] // 4}) takes", " ".join(text.split()))
        told = traces.brief(self.run_pk("--brief", self.path("job")))
        verdict = dict(reversed(told))["verdict"]
        self.assertEqual((verdict["name"], verdict["rank"], verdict["stage"]), ("late-rank", str(slow[0]), "backward"))
        self.assertTrue(float(verdict["low"]) < 0.1 < float(verdict["high"]), verdict)
        self.assertEqual(verdict["text"], late["text"])
        following = [f[""] for key, f in told if key == "next"]
        self.assertRegex(following[0], f"pk report --brief .*{slow[0]}")
        self.assertEqual(following[-2:], [f"pk job {self.path('job')}", f"pk job --html job.html {self.path('job')}"])
        self.assertIn("16 of 16 ranks on 4 hosts", text)

    def test_whole_reports_say_the_same(self):
        self.forge("small", ranks=8, culprits=1, slow=0.1, regions=3, calls=50)
        self.forge("whole", ranks=8, culprits=1, slow=0.1, regions=3, calls=50, report=1)
        small, whole = self.job(self.path("small")), self.job(self.path("whole"))
        for member in ("verdicts", "efficiency", "frontier", "stages", "regions"):
            self.assertEqual(small[member], whole[member], member)

    def test_any_order_says_the_same(self):
        self.forge(ranks=32, culprits=1, slow=0.05, regions=4, calls=50)
        files = self.files()
        first = self.run_pk("--json", *files)
        for seed in range(3):
            random.Random(seed).shuffle(files)
            self.assertEqual(self.run_pk("--json", *files), first)
        self.assertEqual(self.run_pk("--json", self.path("job")), first)

    def gather(self, name, paths, world, packed=False):
        """One file of these, as libpk_mpi writes it; where each rank's begins in it."""
        begins = []
        with open(self.path(name), "wb") as to:
            for path in paths:
                with open(path, "rb") as file:
                    text = file.read()
                rank = json.loads(text)["run"]["rank"]
                head = b'{"format":"perfkit ranks","schema":1,"rank":%d,"ranks":%d,"bytes":%d}\n' % (rank, world, len(text))
                begins.append(to.tell())
                to.write(gzip.compress(head + text) if packed else head + text)
        return begins

    def of_any_file(self, *arguments):
        """What it says, but for where it was read from: to the last byte."""
        return re.sub(r'"file":"[^"]*"|"files":\d+', "", self.run_pk("--json", *arguments))

    def test_one_file_says_the_same_as_a_folder(self):
        self.forge(ranks=16, culprits=1, slow=0.05, per_host=4, regions=4, calls=50)
        files = sorted(self.files(), key=lambda path: int(re.search(r"r-(\d+)", path)[1]))
        for name, packed in (("job.json", False), ("job.json.gz", True)):
            self.gather(name, files, 16, packed)
            self.assertEqual(self.of_any_file(self.path(name)), self.of_any_file(self.path("job")), name)
            self.assertIn("16 of 16 ranks on 4 hosts, from 1 file", self.run_pk(self.path(name)))
        self.gather("any.json", random.Random(1).sample(files, 16), 16)
        self.assertEqual(self.of_any_file(self.path("any.json")), self.of_any_file(self.path("job")))

    def test_one_file_is_no_report(self):
        self.forge(ranks=2)
        for name, packed in (("job.json", False), ("job.json.gz", True)):
            self.gather(name, self.files(), 2, packed)
            done = subprocess.run([PK, "report", self.path(name)], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, "`pk job` reads" in done.stderr), (2, True), done.stderr)

    def test_one_file_beside_others(self):
        """Of ranks that are in both, those of the later run: each region's calls are theirs."""
        self.forge("old", ranks=4, regions=2, calls=20)
        self.forge("new", ranks=4, seed=2, regions=2, calls=70)
        for path in self.files("new"):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(re.sub(r'"start_unix":\d+', lambda found: found[0] + "9", text))
        old, new = self.files("old"), self.files("new")
        self.gather("both.json", old + new, 4)
        self.gather("some.json", old + new[2:], 4)
        found = self.job(self.path("both.json"))
        self.assertEqual([row["time"]["count"] for row in found["regions"]], [280] * len(found["regions"]))
        self.assertEqual(found["regions"], self.job(self.path("new"))["regions"])
        self.assertEqual(self.job(self.path("some.json"), *new[:2])["regions"], found["regions"])
        self.assertEqual(self.job(self.path("old"), self.path("both.json"))["regions"], found["regions"])

    def test_one_file_numbers_its_ranks(self):
        """As MPI does; what they had been told before was another thing."""
        self.forge(ranks=3)
        for path in self.files():
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace('"world_size":3', '"world_size":0'))
        self.gather("job.json", self.files(), 5)
        found = self.job(self.path("job.json"))["job"]
        self.assertEqual((found["world_size"], found["ranks"], found["missing"]), (5, 3, [3, 4]))

    def test_one_file_that_is_cut_off_or_damaged(self):
        self.forge(ranks=4, regions=2, calls=20)
        for name, packed in (("job.json", False), ("job.json.gz", True)):
            begins = self.gather(name, self.files(), 4, packed)
            with open(self.path(name), "rb") as file:
                whole = file.read()
            amid = [begins[3] + 400] if packed else [begins[1] + 20, begins[2] - 1, begins[3] + 400, len(whole) - 1]
            for at in (begins[2], *amid):
                with open(self.path(name), "wb") as file:
                    file.write(whole[:at])
                there = sum(1 for begin in (*begins[1:], len(whole)) if begin <= at)
                found = self.job(self.path(name))["job"]
                self.assertEqual((found["missing"], len(found["notes"])), (list(range(there, 4)), at in amid), (name, at))
                self.assertIn("is cut off", found["notes"][0] if at in amid else "is cut off")
            with open(self.path(name), "wb") as file:
                file.write(whole[:begins[1] // 2])
            self.assertIn("is cut off amid rank 0", self.run_pk(self.path(name), expect=2))
        begins = self.gather("job.json", self.files(), 4)
        with open(self.path("job.json"), "r+b") as file:
            file.seek(begins[2] - 100)
            file.write(b"!" * 20)
        found = self.job(self.path("job.json"))["job"]
        self.assertEqual((found["missing"], len(found["notes"])), ([1], 1))
        self.assertIn("rank 1: ", found["notes"][0])
        with open(self.path("job.json"), "r+b") as file:
            file.seek(begins[2] + 2)
            file.write(b"!" * 20)
        self.assertEqual(self.job(self.path("job.json"))["job"]["missing"], [1, 2, 3])
        with open(self.path("job.json"), "w", encoding="utf-8") as file:
            file.write('{"format":"perfkit ranks","schema":2,"rank":0}\n')
        self.assertIn("schema 2, and this pk reads up to 1", self.run_pk(self.path("job.json"), expect=2))

    def test_missing_cut_off_and_unreadable(self):
        self.forge(ranks=8)
        files = self.files()
        os.remove(files[3])
        with open(files[5], "r+", encoding="utf-8") as file:
            file.truncate(os.path.getsize(files[5]) // 2)
        with open(self.path("job", "other.json"), "w", encoding="utf-8") as file:
            file.write('{"name": "something else"}')
        report = self.job(self.path("job"))
        self.assertEqual(report["job"]["missing"], [3, 5])
        self.assertEqual(report["job"]["ranks"], 6)
        self.assertEqual(len(report["job"]["notes"]), 2, report["job"]["notes"])
        self.assertIn("missing-ranks", self.verdicts(report))
        self.assertIn("no file of 2 of 8 ranks: 3, 5", " ".join(self.run_pk(self.path("job")).split()))

    def test_late_from_so_much_on(self):
        """5 % are late from 3 % on, and not from 8 %: then the page says so, and not that nobody is."""
        self.forge(ranks=8, steps=60, slow=0.05, culprits=1)
        self.assertIn("late-rank", self.verdicts(self.job(self.path("job"))))
        self.assertNotIn("late-rank", self.verdicts(self.job("--late", "8", self.path("job"))))
        self.assertIn("late-rank", self.verdicts(self.job("--late", "2", self.path("job"))))
        for refused in ("0", "2.5", "1001", "x"):
            self.run_pk("--late", refused, self.path("job"), expect=2)

    def test_damaged_files_are_named_at_the_head(self):
        self.forge(ranks=8)
        self.assertNotIn("Not in it", self.run_pk(self.path("job")))
        for path in self.files()[2:7]:
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"format":"perf')
        lines = self.run_pk(self.path("job")).splitlines()
        named = [os.path.basename(path) for path in self.files()[2:7]]
        head = [line for line in lines[:4] if line.startswith("Not in it")]
        self.assertEqual(len(head), 1)
        self.assertEqual([name in head[0] for name in named], [True] * 4 + [False])
        self.assertIn(" and 1 more (see the end)", head[0])

    def test_ranks_that_are_missing_cost_nothing(self):
        self.forge(ranks=4)
        os.remove(self.files()[2])
        path = self.files()[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace('"world_size":4', '"world_size":2000000000'))
        text = " ".join(self.limited(256, self.path("job")).split())
        self.assertIn("no file of 1999999997 of 2000000000 ranks: 2, 4-1999999999.", text)
        found = json.loads(self.limited(256, "--json", self.path("job")))["job"]
        self.assertEqual((found["missing_count"], found["gaps"]), (1999999997, [[2, 2], [4, 1999999999]]))
        self.assertEqual(found["missing"], [2, *range(4, 4099)])

    def test_a_trace_in_which_each_call_has_a_name(self):
        """Of another profiler's trace no more than 40 bytes of memory for one of it."""
        events = [{"ph": "X", "name": f"request {i}", "cat": "http", "pid": 1, "tid": 1, "ts": i * 10, "dur": 5 + i % 3} for i in range(20000)]
        events += [{"ph": "C", "name": f"queue {i}", "pid": 1, "ts": i * 10, "args": {"v": i}} for i in range(20000)]
        trace = self.path("t.json")
        with open(trace, "w", encoding="utf-8") as file:
            file.write('{"traceEvents":[\n' + ",\n".join(map(json.dumps, events)) + "\n]}\n")
        mib = 40 * os.path.getsize(trace) >> 20
        self.assertLess(mib, 150)
        found = json.loads(self.limited(mib, "--json", trace))
        self.assertEqual(len(found["regions"]), 20000)
        self.assertEqual(sum(row["time"]["count"] for row in found["regions"]), 20000)

    def limited(self, mib, *arguments):
        """With so much address space."""
        def limit():
            if not os.environ.get("PK_TEST_NO_LIMIT"):
                resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
        return subprocess.run([PK, "job", *arguments], capture_output=True, text=True, timeout=60, check=True, preexec_fn=limit).stdout

    def poison(self, value, key=""):
        """Every string with sequences that set a terminal's title and turn text around, but for those that are asked for."""
        if isinstance(value, dict):
            return {k: self.poison(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.poison(v, key) for v in value]
        known = key in ("format", "source", "clock", "kind", "severity", "operation", "library")
        return value if known or not value or not isinstance(value, str) else "\x1b]0;x\x07\u202e\x9b1m" + value

    def assert_safe(self, text):
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e]")

    def test_nothing_of_a_file_acts_on_a_terminal(self):
        self.forge(ranks=4, regions=3, calls=20, report=1, culprits=1, slow=0.3)
        ranks = self.files()
        for path in ranks:
            with open(path, encoding="utf-8") as file:
                report = self.poison(json.load(file))
            report["stages"]["loops"].append({**report["stages"]["loops"][0], "name": "\x1b[31meval"})
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps(report, separators=(",", ":")))
        bad = self.path("job", "\x1b[31m.json")
        with open(bad, "w", encoding="utf-8") as file:
            file.write("{}")
        life = self.path("job", "\x1b]0;x\x07.goodput")
        subprocess.run([RUNS, "spans", "once"], check=True, timeout=120, stdout=subprocess.DEVNULL,
                       env={**os.environ, "PK_TRACE_PATH": self.path("t.json"), "PK_GOODPUT_PATH": life})
        text = self.run_pk(self.path("job"))
        self.assertIn("?]0;x?", text)
        for said in ("Stages of ?[31meval", "Goodput (", "Files that are not in it"):
            self.assertIn(said, text)
        self.assert_safe(text)
        self.assert_safe(self.run_pk(life))
        os.symlink(self.path("job"), self.path("\x1b[31mjob"))
        self.assert_safe(self.run_pk(self.path("job"), "--against", self.path("\x1b[31mjob")))
        self.assert_safe(self.run_pk(bad, expect=2))
        self.assert_safe(self.run_pk(self.path("\x1b[31mgone"), expect=2))
        report = [PK, "report", ranks[0], "--against", ranks[1]]
        self.assert_safe(subprocess.run(report, capture_output=True, text=True, timeout=60, check=True).stdout)

    def test_a_rank_that_did_not_end(self):
        self.forge(ranks=8, report=1)
        path = self.files()[2]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace('"complete":true', '"complete":false'))
        self.assertEqual(self.job(self.path("job"))["job"]["cut_off"], [2])

    def test_another_run_of_a_rank_is_left_out(self):
        self.forge(ranks=8, regions=2, calls=20)
        before = self.job(self.path("job"))
        with open(self.files()[2], encoding="utf-8") as file:
            text = file.read()
        for name, start in (("aaa.rank.json", 0), ("zzz.rank.json", 5)):
            with open(self.path("job", name), "w", encoding="utf-8") as file:
                file.write(text.replace('"start_unix":1', f'"start_unix":{start}'))
        report = self.job(self.path("job"))
        self.assertEqual(len(report["job"]["notes"]), 2)
        self.assertEqual(report["ranks"][2]["file"], self.path("job", "zzz.rank.json"))
        self.assertEqual(report["regions"], before["regions"])

    def test_the_same_run_twice_is_nothing_to_speak_of(self):
        self.forge(ranks=4)
        shutil.copytree(self.path("job"), self.path("copy"))
        report = self.job(self.path("job"), self.path("copy"))
        self.assertEqual((report["job"]["ranks"], report["job"]["notes"]), (4, []))

    def test_traces(self):
        for rank in range(4):
            subprocess.run([RUN_TRACE, self.path(f"t-{rank}.json"), str(rank), "4", "60", "cpu"], check=True, timeout=120)
        report = self.job(self.folder)
        self.assertEqual(report["job"]["ranks"], 4)
        late = [v for v in report["verdicts"] if v["name"] == "late-rank"]
        self.assertEqual([v["rank"] for v in late], [2], report["verdicts"])
        self.assertIn("attention", late[0]["stage"])
        self.assertIn("waits-unknown", self.verdicts(report))
        self.assertIn("no_transfer", report["efficiency"])

    def test_devices_of_traces_of_others(self):
        """PyTorch's profiler tells rank and size in distributedInfo alone. A step of 1,000 us: 100 of copies, 400 of kernels,
        a collective over the last 100 of them and 200 more. In the report of the trace it is the same."""
        def slice_of(cat, name, tid, ts, dur, **args):
            return {"ph": "X", "cat": cat, "name": name, "pid": 2 if args else 1, "tid": tid, "ts": ts, "dur": dur, "args": args}
        for rank in range(2):
            events, number = [], 0
            for step in range(10):
                events.append(slice_of("user_annotation", f"ProfilerStep#{step}", 1, step * 1000, 1000))
                for cat, name, stream, ts, dur in (("gpu_memcpy", "Memcpy HtoD", 13, 50, 100), ("kernel", "gemm", 7, 200, 400),
                                                   ("kernel", "ncclDevKernel_AllReduce", 20, 500, 300)):
                    number += 1
                    events.append(slice_of(cat, name, stream, step * 1000 + ts, dur, device=0, stream=stream, correlation=number))
            with open(self.path(f"t-{rank}.json"), "w", encoding="utf-8") as file:
                file.write('{"distributedInfo":{"backend":"nccl","rank": %d,"world_size":2},\n"traceEvents":[\n' % rank
                           + ",\n".join(map(json.dumps, events)) + "\n]}\n")
        traces = [self.path(f"t-{rank}.json") for rank in range(2)]
        found = self.job(*traces)
        self.assertEqual([(d["rank"], d["device"]) for d in found["devices"]], [(0, 0), (1, 0)])
        for d in found["devices"]:
            self.assertEqual([d[part] / 1000 for part in ("step", "compute", "communication", "memory", "idle")], [1000, 400, 200, 100, 300])
            self.assertAlmostEqual(d["overlap"], 1 / 3)
        self.assertRegex(self.run_pk(*traces), r"hidden, of communication +2 +33.3 %")
        for rank in range(2):
            report = subprocess.run([PK, "report", "--json", traces[rank]], check=True, capture_output=True, timeout=120).stdout
            with open(self.path(f"r-{rank}.json"), "wb") as file:
                file.write(report)
        self.assertEqual(self.job(self.path("r-0.json"), self.path("r-1.json"))["devices"], found["devices"])

    def test_a_slow_link_accuses_nobody(self):
        self.forge(ranks=16, link=10)
        self.assertEqual(self.verdicts(self.job(self.path("job"))), ["communication"])

    def test_steps(self):
        self.forge(ranks=8, steps=60)
        report = self.job("--steps", "20-39", self.path("job"))
        self.assertEqual(report["frontier"]["steps"], 20)
        self.assertIn("within 500-600", self.run_pk("--steps", "500-600", self.path("job"), expect=2))
        self.assertIn("range of steps", self.run_pk("--steps", "9-3", self.path("job"), expect=2))

    def test_a_slow_processor(self):
        self.forge(ranks=8, steps=100, crowd=1, told=1, uneven=0.27)
        slow = self.job(self.path("job"))["verdicts"][0]
        self.assertEqual((slow["name"], slow["host"], slow["processor"]), ("slow-processor", "node0", 1))
        self.assertLess(abs(slow["slower"] - 0.27), 0.05)
        self.assertTrue(slow["first_step"] + 8 <= slow["last_step"] < 100 and 2 <= slow["ranks"] <= 8)

    def test_a_rank_is_no_larger_than_64_kib(self):
        self.forge("narrow", ranks=1, regions=100, calls=50, steps=50)
        self.forge("wide", ranks=1, regions=100, calls=20000, steps=128, crowd=1, told=1)
        for name in ("narrow", "wide"):
            self.assertLess(os.path.getsize(self.files(name)[0]), 65536, name)
        report = self.job(self.path("wide"))
        for row in report["regions"]:
            self.assertEqual(row["time"]["count"], 20000)
            middle = 1e6 * (int(row["name"].split()[1]) + 1)
            self.assertLess(abs(row["time"]["p50"] / middle - 1), 0.13)

    def against(self, *arguments, expect):
        report = json.loads(self.run_pk("--json", *arguments, expect=expect))
        self.assertEqual(report["against"]["slower"], expect == 1)
        told = traces.brief(self.run_pk("--brief", *arguments, expect=expect))
        changes = [f["change"] for key, f in told if key == "against"]
        self.assertTrue(changes)
        self.assertEqual("slower" in changes, expect == 1)
        return report["against"]

    def test_against_the_same_is_the_same(self):
        self.forge("a", ranks=16, steps=60, seed=1)
        self.forge("b", ranks=16, steps=60, seed=2)
        rows = self.against(self.path("b"), "--margin", "3", "--against", self.path("a"), expect=0)["rows"]
        self.assertEqual(rows[0]["of"], "step")
        self.assertEqual(rows[0]["change"], "same")
        self.assertTrue(rows[0]["ratio_low"] <= 1 <= rows[0]["ratio_high"], rows[0])
        self.assertEqual(len([row for row in rows if row["of"] == "rank"]), 16)

    def test_against_names_rank_and_stage(self):
        self.forge("a", ranks=16, steps=60, seed=1)
        slow = self.forge("b", ranks=16, steps=60, seed=2, culprits=1, slow=0.3, stage=1)
        both = (self.path("b"), "--against", self.path("a"))
        rows = self.against(*both, expect=1)["rows"]
        self.assertEqual([row["rank"] for row in rows if row["of"] == "rank" and row["change"] == "slower"], slow)
        self.assertEqual(rows[0]["change"], "slower")
        text = self.run_pk(*both, expect=1)
        self.assertRegex(text, rf"rank {slow[0]} .*slower")
        self.assertEqual(self.against(self.path("a"), "--against", self.path("b"), expect=0)["rows"][0]["change"],
                         "faster")
        self.against(*both, "--margin", "900", expect=0)

    def test_against_several_runs(self):
        """One run of a host that is 7 % slower for it: beside one run slower, beside what five differ by not."""
        def whole(name, slow, seed):
            self.forge(name, ranks=2, steps=60, seed=seed, culprits=2, slow=slow, stage=2)
            return self.path(name)
        before = [whole(f"r{i}", slow, i + 1) for i, slow in enumerate((0.001, 0.06, 0.02, 0.08, 0.01))]
        several = [word for path in before for word in ("--against", path)]
        same = whole("same", 0.07, 8)
        self.against(same, "--against", before[0], expect=1)
        found = self.against(same, *several, expect=0)
        self.assertEqual((found["runs"], found["rows"][0]["change"]), (5, "cannot tell"))
        self.assertTrue(0.01 < found["rows"][0]["spread"] < 0.05, found["rows"][0])
        self.assertEqual({row["of"] for row in found["rows"]}, {"step", "stage", "rank"})
        self.assertEqual(self.against(whole("slow", 0.5, 9), *several, expect=1)["rows"][0]["change"], "slower")
        self.assertEqual(self.against(before[0], *several[2:], "--margin", "90", expect=0)["rows"][0]["change"], "same")
        self.assertRegex(self.run_pk(same, *several, expect=0), r"(?s)Against \S*r0 and 4 more, per step.*the 5\s+earlier\s+runs")
        self.assertIn("--against takes one run, or 4 and more", self.run_pk(same, *several[:6], expect=2))

    def report_against(self, now, before, **processor):
        """What pk report says of two runs of one process; with that of its processor."""
        paths = [self.files(name)[0] for name in (now, before)]
        if processor:
            with open(paths[0], encoding="utf-8") as file:
                report = json.load(file)
            report["steps"] = {**report.get("steps", {}), "processor": processor}
            with open(paths[0], "w", encoding="utf-8") as file:
                json.dump(report, file, separators=(",", ":"))
        done = subprocess.run([PK, "report", paths[0], "--against", paths[1]], capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def test_report_against_knows_noise(self):
        """One process beside itself is not slower; 5 % are told; a run without a processor is not judged."""
        for seed in range(1, 11):
            self.forge(f"a{seed}", ranks=1, steps=300, seed=seed, report=1, regions=1, calls=300)
        for seed in range(1, 11, 2):
            text = self.report_against(f"a{seed}", f"a{seed + 1}")
            self.assertNotIn("  slower\n", text)
            self.assertRegex(text, r"\n  step, mean .* [-+][0-9.]+ %\.\.[-+][0-9.]+ %  (same|cannot tell)\n")
            self.assertRegex(text, r"\n  region 0 .* -  cannot tell\n")
        self.forge("slow", ranks=1, steps=300, seed=1, report=1, culprits=1, slow=0.06, stage=2)
        text = self.report_against("slow", "a1")
        self.assertRegex(text, r"\n  step, mean .*  slower\n")
        text = self.report_against("slow", "a1", observed=10 ** 10, running=6 * 10 ** 9, ready=3 * 10 ** 9)
        self.assertTrue(" ".join(text.split("\n", 1)[1].split()).startswith("! Processors were short: there was none for 30.0 % of the time in this run"))
        self.assertNotIn("slower\n", text.replace("slower or\n", "").split("interval", 1)[1])

    def test_against_other_steps(self):
        self.forge(ranks=8, steps=60)
        path = self.path("job")
        rows = self.against("--steps", "30-59", "--against-steps", "1-29", "--margin", "3", path, expect=0)["rows"]
        self.assertEqual(rows[0]["change"], "same")
        self.assertIn("within 900-950", self.run_pk("--against-steps", "900-950", path, expect=2))

    def test_scaling(self):
        self.forge("a", ranks=8, steps=60, quiet=1)
        self.forge("b", ranks=32, steps=60, quiet=1, link=5)
        found = self.against(self.path("b"), "--against", self.path("a"), expect=1)
        self.assertEqual(found["scaling"]["sort"], "weak")
        self.assertAlmostEqual(found["scaling"]["efficiency"], 10.5 / 12.5, places=3)
        self.assertAlmostEqual(found["scaling"]["speedup"], 4 * 10.5 / 12.5, places=3)
        self.assertEqual([row for row in found["rows"] if row["of"] == "rank"], [])

    def test_reports_with_next_to_nothing_in_them(self):
        for more in ("", ',"run":{}', ',"comm":{"communicators":[{}],"collectives":[{}],"sequences":{"operations":1,"rows":[[]]}}',
                     ',"stages":{"names":["a"],"width":7,"loops":[{}]}', ',"regions":[{}]'):
            path = self.path("bare.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"format":"perfkit report","schema":1' + more + "}")
            for arguments in ([], ["--json"], ["--against", path]):
                done = subprocess.run([PK, "job", path, *arguments], capture_output=True, text=True, timeout=60, check=False)
                self.assertIn(done.returncode, (0, 2), (more, arguments, done.stderr))

    def test_nothing_to_read(self):
        os.mkdir(self.path("empty"))
        self.assertIn("no file of a run", self.run_pk(self.path("empty"), expect=2))
        self.assertIn("needs files", self.run_pk(expect=2))
        self.assertIn("gone.json", self.run_pk(self.path("gone.json"), expect=2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
