"""live.py CASE,... PK RUNS - what is asked of jobs that run: where their ranks are, what is on top, the watchdog, and a
capture of the same steps of all."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
import unittest

CASES = sys.argv[1].split(",")
PK, RUN = sys.argv[2:4]


# ---- `pk where` of real jobs ----

# Whoever hangs is named, with evidence; and the dead are read.

RANKS = 4

STEP = 20


def pk(*arguments):
    return subprocess.run([PK, *arguments], capture_output=True, timeout=100, check=False)


class Job:
    """Ranks of `runs hang` in a folder of their own."""

    def __init__(self, how, victim, size=RANKS, prefix=(), folder=None, **more):
        self.folder = folder or tempfile.mkdtemp()
        meeting = os.path.join(self.folder, "meeting")
        with open(meeting, "wb") as file:
            file.write(bytes(4096))
        env = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        env.update(PK_TRACE_PATH=os.path.join(self.folder, "run-%r.json"), **more)
        self.ranks = [subprocess.Popen([*prefix, RUN, "hang", str(rank), str(size), meeting, str(victim), how, str(STEP)],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
                      for rank in range(size)]
        self.ranks[0].stdout.readline()

    def close(self):
        for p in self.ranks:
            p.kill()
            p.wait()
            p.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def where(self, *targets):
        done = pk("where", "--json", *(targets or [self.folder]))
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def hung(self):
        """What pk where says once all but the victim stand in the collective."""
        until = time.monotonic() + 30
        while True:
            seen = self.where()
            if len(seen["behind"]) == 1 and min(t["steps"] for t in seen["targets"]) == STEP - 1:
                break
            if time.monotonic() > until:
                raise AssertionError(seen)
            time.sleep(0.05)
        time.sleep(0.2)  # the collector's next round
        return self.where()


class Where(unittest.TestCase):
    def job(self, *arguments, **more):
        job = Job(*arguments, **more)
        self.addCleanup(job.close)
        return job

    def named(self, how, why, says):
        job = self.job(how, 2)
        seen = job.hung()
        only, = seen["behind"]
        self.assertEqual((only["rank"], only["pid"], only["why"]), (2, job.ranks[2].pid, why))
        self.assertRegex(only["evidence"], says)
        self.assertIn("wait for rank 2", seen["verdict"])
        text = pk("where", job.folder).stdout.decode()
        self.assertRegex(text, r"(?m)^rank 2 ")
        self.assertIn("The others wait for rank 2.", text)
        return seen, text

    def test_stopped(self):
        seen, _ = self.named("stopped", "stopped", "is stopped")
        self.assertEqual([t["state"] for t in seen["targets"]], ["running", "running", "stopped", "running"])

    def test_spinning(self):
        seen, text = self.named("spinning", "missing in a collective",
                                rf"has not entered operation {STEP} on world, in which 3 others are for .*"
                                rf"in step {STEP - 1}, in forward for ")
        self.assertRegex(text, r"communicator world of test: enqueued 20, started 20, completed 19, under way 1")
        main = seen["targets"][2]["threads"][0]
        self.assertEqual((main["name"], main["main"]), ("trainer", True))
        self.assertEqual([r["name"] for r in main["open"]], ["forward"])
        waiting = seen["targets"][0]["threads"][0]["open"][0]
        self.assertEqual((waiting["name"], waiting["operation"], waiting["sequence"]),
                         ("all-reduce", "all_reduce", STEP))

    def test_blocked(self):
        self.named("blocked", "missing in a collective", "has not entered operation 20 on world, .*in load for ")

    def test_gone(self):
        seen, _ = self.named("gone", "gone", "has ended without pk_stop")
        self.assertEqual(seen["targets"][2]["state"], "gone")

    def test_without_a_communicator(self):
        self.named("plain-blocked", "in a region that others have left",
                   "is inside load, which 3 others have left and wait since")

    def test_one_process_and_the_dead(self):
        job = self.job("spinning", 1)
        job.hung()
        one, = job.where(str(job.ranks[1].pid))["targets"]
        self.assertEqual((one["rank"], one["state"], one["host"]), (1, "running", os.uname().nodename))
        job.ranks[1].kill()
        job.ranks[1].wait()
        arena = os.path.join(job.folder, "run-1.json.arena")
        one, = job.where(arena)["targets"]
        self.assertEqual((one["state"], one["steps"]), ("gone", STEP - 1))
        self.assertEqual([r["name"] for r in one["threads"][0]["open"]], ["forward"])
        refused = pk("where", str(job.ranks[1].pid))
        self.assertEqual(refused.returncode, 2)
        self.assertIn(b"there is no process", refused.stderr)

    def test_what_is_torn_is_left_out(self):
        job = self.job("spinning", 1)
        job.hung()
        with open(os.path.join(job.folder, "torn.arena"), "wb") as file:
            file.write(b"PKARENA\0" + bytes(5000))
        done = pk("where", job.folder)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), r"\Apk: where: left out: .*torn.arena: .*\n\Z")

    def test_nobody_hangs(self):
        job = self.job("stopped", -1)
        for _ in range(20):
            seen = job.where()
            self.assertEqual([t["state"] for t in seen["targets"]], ["running"] * RANKS)
            for target in seen["targets"]:
                for thread in target["threads"]:
                    for region in thread["open"]:
                        self.assertIn(region["name"], ("load", "forward", "rückwärts", "all-reduce", "checkpoint"))
                        self.assertLess(region["seconds"], 20)

    def test_refusals(self):
        for arguments, says in ([], "needs a TARGET"), (["/nowhere"], "No such file"), (["--what"], "--what"):
            done = pk("where", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr.decode())


class Ras(unittest.TestCase):
    """pk where --ras: what `ncclras -f json` prints, as NCCL writes it, member by member."""

    KINDS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")
    JOB = "nccl fa93daea854b060b"

    def rank(self, number, reduces=642, gathers=0, pid=None, host=None, **status):
        state = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False, **status}
        flags = ",\n".join(f'            "{key}": {str(value).lower()}' for key, value in state.items())
        counts = dict.fromkeys(self.KINDS, 0) | {"AllReduce": reduces, "AllGather": gathers}
        return (self.place(number, pid, host) + f'          "status": {{\n{flags}\n          }},\n          "collective_counts": {{\n' +
                ",\n".join(f'            "{kind}": {n}' for kind, n in counts.items()) + "\n          }\n        }")

    def place(self, number, pid=None, host=None):
        return (f'        {{\n          "rank": {number},\n          "host": "{host or f"10.0.0.{number // 4}"}",\n'
                f'          "pid": {pid or 4000 + number},\n          "cuda_dev": {number % 4},\n          "nvml_dev": {number % 4},\n')

    def missing(self, number, unresponsive=True, dead=False, comma=","):
        """Without the comma it is what 2.28.7 and 2.28.9 write."""
        return (self.place(number)[:-2] + f'{comma}\n          "status": {{\n            "unresponsive": {str(unresponsive).lower()},\n'
                f'            "considered_dead": {str(dead).lower()}\n          }}\n        }}')

    def communicator(self, ranks, missing=(), size=None, number=0xfa93daea854b060b):
        return (f'    {{\n      "hash": "{number:#x}",\n      "secondary_hash": "0x1:0x2",\n'
                f'      "size": {size or len(ranks) + len(missing)},\n      "ranks_count": {len(ranks)},\n'
                f'      "missing_ranks_count": {len(missing)},\n      "ranks": [\n' + ",\n".join(ranks) +
                '\n      ],\n      "missing_ranks": [\n' + ",\n".join(missing) + "\n      ]\n    }")

    def output(self, *communicators, version="2.28.9", when="2026-03-01 12:00:05", timeouts=0):
        return (f'{{\n  "nccl_version": "{version}",\n  "cuda_runtime_version": 12090,\n  "cuda_driver_version": 13000,\n'
                f'  "timestamp": "{when}",\n  "communicators_count": {len(communicators)},\n  "communicators": [\n' +
                ",\n".join(communicators) + f'\n  ],\n  "ras": {{\n    "collection_time_sec": 0.012,\n    "timeouts_count": {timeouts}\n'
                "  }\n}\n")

    def where(self, text, *arguments, expect=0):
        done = subprocess.run([PK, "where", *arguments, "--ras", "-"], input=text.encode(), capture_output=True, timeout=100, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return (done.stderr if expect else done.stdout).decode()

    def said(self, *communicators, more="", **options):
        ras = json.loads(self.where(more + self.output(*communicators, **options), "--json"))["ras"]
        return ras, [(row["rank"], row["why"]) for row in ras["behind"]], [(row["rank"], row["why"]) for row in ras["perhaps"]]

    def ranks(self, count, less=(), **more):
        return [self.rank(r, 641 if r in less else 642, **more) for r in range(count)]

    def test_who_has_not_launched_what(self):
        text = self.where(self.output(self.communicator(self.ranks(8, less=(5,)))))
        self.assertEqual(" ".join(text.split()),
                         f"NCCL 2.28.9's RAS, 2026-03-01 12:00:05: 1 communicators, 8 ranks; as {self.JOB} of 8 numbers them "
                         f"rank 5 (pid 4005 on 10.0.0.1, GPU 1) has not launched AllReduce 642 on {self.JOB}, where 7 of 8 ranks are "
                         "further. The others wait for rank 5. Ranks on their way differ, too: append a second output to the file, and "
                         "it tells who stands.")

    def test_nobody(self):
        ras, behind, perhaps = self.said(self.communicator(self.ranks(8)))
        self.assertEqual((behind, perhaps), ([], []))
        self.assertIn("all have launched the same", ras["verdict"])
        self.assertIn("RAS knows of no rank", self.said()[0]["verdict"])
        self.assertEqual(self.said(self.communicator([], size=8))[0]["verdict"], "Not there yet: 8 of 8.")

    def test_two_outputs(self):
        before = self.output(self.communicator(self.ranks(8, less=(5,))), when="2026-03-01 11:59:00")
        ras, behind, _ = self.said(self.communicator(self.ranks(8, less=(5,))), more=before)
        self.assertEqual(behind, [(5, "missing in a collective")])
        self.assertIn("Nobody has launched anything since 2026-03-01 11:59:00.", ras["verdict"])
        on = [self.rank(r, 700 - (r == 5)) for r in range(8)]
        ras, behind, _ = self.said(self.communicator(on), more=before)
        self.assertEqual(behind, [])
        self.assertIn("Nobody stands: who is behind goes on. 8 of 8 have launched something", ras["verdict"])
        before = self.output(self.communicator([self.rank(r) for r in range(8) if r != 5], [self.missing(5)]))
        self.assertEqual(self.said(self.communicator(self.ranks(8, less=(5,))), more=before)[1], [(5, "missing in a collective")])

    def test_who_waits_elsewhere_is_not_to_blame(self):
        """Ranks 0 and 1 are a communicator of their own, in which 1 is missing: so 0 does not come to the job's."""
        pair = self.communicator([self.rank(0, 10, pid=4000), self.rank(1, 9, pid=4001)], number=0xbeef)
        _, behind, perhaps = self.said(self.communicator(self.ranks(8, less=(0, 1))), pair)
        self.assertEqual((behind, perhaps), ([(1, "missing in a collective")], []))
        pair = self.communicator([self.rank(0, 10, pid=4000), self.rank(1, 9, pid=4001)], number=0xbeef)
        ras, behind, _ = self.said(self.communicator([self.rank(0, 641), self.rank(1)]), pair)
        self.assertEqual(sorted(rank for rank, _ in behind), [0, 1])
        self.assertIn("Each waits for another: rank 0, rank 1.", ras["verdict"])

    def test_who_does_not_answer(self):
        """Also where commas are missing, as NCCL 2.28 has it; who has not come may wait for that one."""
        for comma in ("", ","):
            ranks = [self.rank(r, 641 if r == 2 else 642) for r in range(8) if r not in (5, 6)]
            missing = [self.missing(5, comma=comma), self.missing(6, dead=True, comma=comma)]
            ras, behind, perhaps = self.said(self.communicator(ranks, missing), timeouts=1)
            self.assertEqual(behind, [(5, "does not answer"), (6, "does not answer")])
            self.assertEqual(perhaps, [(2, "missing in a collective")])
            self.assertIn("is dead", ras["behind"][1]["evidence"])
            self.assertIn("The others wait for rank 5, rank 6. RAS has waited for 1 answers in vain.", ras["verdict"])

    def test_other_findings(self):
        ranks = self.ranks(4, gathers=10)
        for rank, why, says in (
                (self.rank(3, 641, 11), "has launched other operations", f"on {self.JOB} than rank 0 of it, but not AllReduce 642"),
                (self.rank(3, 642, 10, async_error=6), "error", r"error 6 \(ncclResult_t\) on"),
                (self.rank(3, 642, 10, init_state=1), "error", "error 1"),
                (self.rank(3, 642, 10, abort_flag=True), "error", "has aborted"),
                (self.rank(3, 640, 7), "missing in a collective", "AllGather 8 to 10 and AllReduce 641 to 642")):
            ras, behind, _ = self.said(self.communicator([*ranks[:3], rank]))
            self.assertEqual(behind, [(3, why)])
            self.assertRegex(ras["behind"][0]["evidence"], says)
        self.assertEqual(self.said(self.communicator(ranks[:3], [self.missing(3, unresponsive=False)]))[1], [(3, "has left")])
        self.assertEqual(self.said(self.communicator(self.ranks(4, gathers=10, init_state=7, async_error=7)))[1], [])
        ras, behind, _ = self.said(self.communicator(self.ranks(4, init_state=7), size=8))
        self.assertEqual((behind, ras["behind"][0]["evidence"]), ([(-1, "has not joined")], f"ranks of {self.JOB} have not come to make it: 4, 5, 6, 7"))

    def test_many(self):
        text = self.where(self.output(self.communicator(self.ranks(32, less=range(30)))))
        self.assertEqual(text.count(" has not launched AllReduce 642 "), 8)
        self.assertIn("... and 22 more: missing in a collective", text)
        self.assertIn("rank 7 and 22 more.", " ".join(text.split()))

    def test_with_what_perfkit_sees(self):
        job = Job("spinning", 2)
        self.addCleanup(job.close)
        job.hung()
        ranks = [self.rank(r, 19 if r == 2 else 20, pid=job.ranks[r].pid) for r in range(RANKS)]
        seen = json.loads(self.where(self.output(self.communicator(ranks)), "--json", job.folder))
        self.assertEqual([b["rank"] for b in seen["behind"]], [2])
        self.assertRegex(seen["ras"]["behind"][0]["evidence"], rf"has not launched AllReduce 20 .*; it is in step {STEP - 1}, in forward for ")
        for r in range(RANKS):  # processes of another host that have the same numbers
            ranks[r] = self.rank(RANKS - 1 - r, 19 if r == 2 else 20, pid=job.ranks[r].pid)
        seen = json.loads(self.where(self.output(self.communicator(ranks)), "--json", job.folder))
        self.assertNotIn("step", seen["ras"]["behind"][0]["evidence"])

    def test_what_is_none(self):
        whole = self.output(self.communicator(self.ranks(2), [self.missing(2, comma="")]))
        self.assertIn("of 3 numbers them", self.where("RCCL version 2.28.9\n" + whole + whole[:-20]))
        for text, says in ((whole[:-20], "line"), ("Connection timed out\n", "there is no object"), ("{}", "no communicators"),
                           ('{"communicators": {}}', "no communicators"), ("{\"communicators\": [\0]}", "line")):
            self.assertIn(says, self.where(text, expect=2))
        self.where('{"communicators": [null, 3, {"ranks": [null, {"collective_counts": 4}, {"rank": "x"}], "size": -1}]}')
        done = pk("where", "--ras", "/nowhere")
        self.assertEqual((done.returncode, done.stderr.decode()), (2, "pk: where: /nowhere: No such file or directory\n"))


class Watchdog(unittest.TestCase):
    """hang_seconds: each rank that waits says so, and runs a command that names the one that does not."""

    def alarm(self, how):
        folder = tempfile.mkdtemp()
        command = f"cd {folder} && '{os.path.abspath(PK)}' where --json . > new-%r && mv new-%r said-%r.json"
        job = Job(how, 1, folder=folder, PK_HANG_SECONDS="1", PK_HANG_COMMAND=command, PK_HISTORY_STEPS="4")
        self.addCleanup(job.close)
        said = os.path.join(folder, "said-0.json")
        until = time.monotonic() + 30
        while not os.path.exists(said) and time.monotonic() < until:
            time.sleep(0.02)
        with open(said, encoding="utf-8") as file:
            seen = json.load(file)
        self.assertEqual([b["rank"] for b in seen["behind"]], [1])
        dog = seen["targets"][0]["watchdog"]
        self.assertEqual((dog["alarms"], dog["hangs"]), (1, True))
        self.assertRegex(dog["words"], r"\Ano step and no region has ended for \d+\.\d s .*in step 19\n"
                                       r"thread 0 \(trainer\): in all-reduce for \d+\.\d s\n"
                                       r"communicator world of test: enqueued 20, started 20, completed 19, 1 under way\Z")
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(job.ranks[0].pid)], capture_output=True, check=False)
        self.assertEqual(children.stdout, b"")
        self.assertIn("its watchdog:\n    no step and no region has ended", pk("where", folder).stdout.decode())
        self.check_capture(folder, until)

    def check_capture(self, folder, until):
        """Of the steps before, by rank 0, with its first thread that stands in something."""
        found = []
        while not found and time.monotonic() < until:
            found = [name for name in os.listdir(folder) if re.fullmatch(r"run-0-\d+\.json", name)]
            time.sleep(0.02)
        with open(os.path.join(folder, found[0]), encoding="utf-8") as file:
            about = json.load(file)["perfkitCapture"]
        self.assertEqual((about["reason"], about["last"]), ("hang", STEP - 2))
        self.assertRegex(about["text"], r"\Athread 0 \(trainer\): in all-reduce for ")

    def test_stopped(self):
        self.alarm("stopped")

    def test_spinning(self):
        self.alarm("spinning")

    def test_blocked(self):
        self.alarm("blocked")

    def test_gone(self):
        self.alarm("gone")


class Namespace(unittest.TestCase):
    """As from the host of a container: the processes number themselves differently."""

    def test_where(self):
        prefix = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
        try:
            subprocess.run([*prefix, "true"], check=True, capture_output=True, timeout=20)
        except (OSError, subprocess.SubprocessError) as why:
            self.skipTest(f"no namespaces here: {why}")
        job = Job("spinning", 0, size=2, prefix=prefix)
        self.addCleanup(job.close)
        seen = job.hung()
        self.assertEqual(seen["behind"][0]["rank"], 0)
        self.assertEqual([t["state"] for t in seen["targets"]], ["running", "running"])
        pids = [t["pid"] for t in seen["targets"]]
        self.assertEqual(len(set(pids)), 2)
        for pid in pids:
            self.assertGreater(pid, 100)
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                self.assertTrue(re.search(r"(?m)^NSpid:.*\t[1-9]$", file.read()))
        self.assertEqual(job.where(str(pids[1]))["targets"][0]["rank"], 1)
        os.kill(pids[0], signal.SIGSTOP)
        end = time.monotonic() + 60  # it stops when it has a processor again
        while (state := job.where()["targets"][0]["state"]) == "running" and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(state, "stopped")


# ---- `pk top` of a real job ----

# Figures for scripts, and a page in a pty of changing size.

TOP_RANKS = 3

ESCAPE = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")


class TopJob:
    """Ranks that go on until they are killed."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        meeting = os.path.join(self.folder, "meeting")
        with open(meeting, "wb") as file:
            file.write(bytes(4096))
        env = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        env.update(PK_TRACE_PATH=os.path.join(self.folder, "run-%r.json"))
        self.ranks = [subprocess.Popen([RUN, "hang", str(rank), str(TOP_RANKS), meeting, "-1", "stopped", "20"],
                                       stdout=subprocess.PIPE, env=env) for rank in range(TOP_RANKS)]
        self.ranks[0].stdout.readline()

    def close(self):
        for p in self.ranks:
            p.kill()
            p.wait()
            p.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


class Top(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.job = TopJob()

    @classmethod
    def tearDownClass(cls):
        cls.job.close()

    def run_top(self, *arguments, **more):
        done = subprocess.run([PK, "top", self.job.folder, *arguments], capture_output=True, timeout=60, check=False, **more)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout

    def test_json(self):
        for _ in range(20):  # beside much load a rank may have begun one step, and nothing else
            seen = json.loads(self.run_top("--once", "--json"))
            if min(p["steps_since"] for p in seen["processes"]) >= 5:
                break
        self.assertEqual([p["rank"] for p in seen["processes"]], list(range(TOP_RANKS)))
        for process, p in zip(seen["processes"], self.job.ranks):
            self.assertEqual((process["pid"], process["state"], process["hangs"]), (p.pid, "running", False))
            self.assertGreater(process["steps_since"], 0)
            self.assertAlmostEqual(process["steps_per_second"], process["steps_since"] / process["seconds"], 3)
            self.assertLess(process["seconds"], 30)
            self.assertAlmostEqual(sum(process["shares"].values()), 1, 6)
            self.assertGreater(process["shares"]["compute"], 0)
            self.assertTrue(0.001 < process["p50_seconds"] <= process["p90_seconds"] <= process["p99_seconds"])
            world, = process["communicators"]
            self.assertEqual(world["name"], "world")
            self.assertGreater(world["per_second"], 0)
        regions = {r["name"]: r for r in seen["regions"]}
        self.assertLessEqual({"load", "forward", "all-reduce", "rückwärts"}, set(regions))
        self.assertEqual((regions["forward"]["kind"], regions["forward"]["processes"]), ("compute", TOP_RANKS))
        made = sum(p["steps_since"] for p in seen["processes"])
        self.assertAlmostEqual(regions["forward"]["calls"], made, delta=made / 2 + 10)
        order = [r["self_seconds"] for r in seen["regions"]]
        self.assertEqual(order, sorted(order, reverse=True))

    def test_plain(self):
        text = self.run_top("--once").decode()
        self.assertNotIn("\x1b", text)
        self.assertIn(f"{TOP_RANKS} processes: {TOP_RANKS} running", text)
        for name in ("rank 0", "rank 2", "rückwärts", "all-reduce", "world"):
            self.assertIn(name, text)
        self.assertLessEqual(max(columns(line) for line in text.splitlines()), 140)

    def test_a_line_each_second(self):
        top = subprocess.Popen([PK, "top", "--json", self.job.folder], stdout=subprocess.PIPE)
        lines = [json.loads(top.stdout.readline()) for _ in range(2)]
        top.stdout.close()
        self.assertIn(top.wait(timeout=20), (2, -signal.SIGPIPE))  # nobody reads it any more
        self.assertLess(lines[0]["processes"][0]["steps"], lines[1]["processes"][0]["steps"])

    def test_refusals(self):
        for arguments, says in ([], "needs a TARGET"), (["/nowhere"], "No such file"), (["--seconds", "0", "1"], "--seconds"):
            done = subprocess.run([PK, "top", *arguments], capture_output=True, check=False, timeout=20)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr.decode())


class Terminal(unittest.TestCase):
    def setUp(self):
        self.job = TopJob()
        self.addCleanup(self.job.close)
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        self.resize(100, 20)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.addCleanup(os.close, slave)
        env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"LC_ALL": "C.UTF-8"}
        self.top = subprocess.Popen([PK, "top", self.job.folder], stdin=slave, stdout=slave, stderr=slave, env=env,
                                    start_new_session=True)
        self.addCleanup(self.top.wait)
        self.addCleanup(self.top.kill)

    def resize(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        if hasattr(self, "top"):
            self.top.send_signal(signal.SIGWINCH)

    def pages(self, wanted, seconds=20):
        """What is drawn until a page has it."""
        seen, until = b"", time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([self.master], [], [], 0.2)[0]:
                seen += os.read(self.master, 65536)
            *whole, _ = seen.split(b"\x1b[J")
            if whole and wanted.encode() in whole[-1]:
                return whole[-1].split(b"\x1b[H")[-1]
        self.fail(f"no page with {wanted!r}: {seen[-3000:]!r}")

    def fits(self, page, width, height):
        lines = ESCAPE.sub(b"", page).decode().replace("\r", "").split("\n")
        self.assertLessEqual(len(lines), height, lines)
        for line in lines:
            self.assertLessEqual(columns(line), width, line)

    def test_keys_and_sizes(self):
        page = self.pages("rank 2")
        self.fits(page, 100, 20)
        self.assertIn(b"\x1b[7m", page)
        os.write(self.master, b"h")
        self.assertIn(b"q quit", self.pages("q quit"))
        os.write(self.master, b"h")
        for width, height in (40, 10), (7, 5), (200, 50), (1, 1):
            self.resize(width, height)
            time.sleep(0.3)
            os.set_blocking(self.master, False)
            try:
                while os.read(self.master, 65536):
                    pass
            except BlockingIOError:
                pass
            os.set_blocking(self.master, True)
            self.fits(self.pages(""), width, height)
        self.resize(120, 40)
        os.write(self.master, b"p")
        self.pages("(paused)")
        os.write(self.master, b"ps")
        self.pages("rückwärts")
        self.job.ranks[1].send_signal(signal.SIGSTOP)
        self.pages("rank 1 is now stopped")
        os.write(self.master, b"q")
        self.assertEqual(self.top.wait(timeout=20), 0)
        self.assertEqual(termios.tcgetattr(self.slave), self.before)
        self.assertIn(b"\x1b[?1049l", os.read(self.master, 65536))

    def test_interrupted(self):
        self.pages("rank 2")
        self.top.send_signal(signal.SIGINT)
        self.assertEqual(self.top.wait(timeout=20), 0)
        self.assertEqual(termios.tcgetattr(self.slave), self.before)


# ---- `pk capture` of several processes: the same steps of all; and who has not, by name ----

CAPTURED = 6


class CaptureJob:
    """Ranks of `runs capture` in a folder of their own."""

    def __init__(self, size=CAPTURED, pause=5, capture="request", **more):
        self.folder = tempfile.mkdtemp()
        env = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        env.update(PK_CAPTURE=capture, PK_HISTORY_STEPS="64", PK_WORLD_SIZE=str(size), PK_BACKENDS="none",
                   PK_ARENA_PATH=os.path.join(self.folder, "%r.arena"),
                   PK_CAPTURE_PATH=os.path.join(self.folder, "%r-%s.json"), **more)
        self.ranks = [subprocess.Popen([RUN, "capture", str(pause)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env=env | {"PK_RANK": str(rank)}) for rank in range(size)]
        for p in self.ranks:
            p.stdout.readline()

    def close(self):
        for p in self.ranks:
            p.send_signal(signal.SIGCONT)
            p.stdin.close()
            p.wait()
            p.stdout.close()
        shutil.rmtree(self.folder)

    def ask(self, *arguments):
        done = pk("capture", "--json", *arguments, self.folder)
        return done.returncode, json.loads(done.stdout)


class Capture(unittest.TestCase):
    def job(self, *arguments, **more):
        job = CaptureJob(*arguments, **more)
        self.addCleanup(job.close)
        return job

    def check_file(self, target, first, last):
        with open(target["path"], encoding="utf-8") as file:
            trace = json.load(file)
        about = trace["perfkitCapture"]
        self.assertEqual((about["reason"], about["first"], about["last"]), ("request", first, last))
        steps = {e["name"] for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#")}
        self.assertEqual(steps, {f"ProfilerStep#{n}" for n in range(first, last + 1)})
        self.assertEqual(trace["distributedInfo"]["rank"], target["rank"])

    def test_the_same_steps_of_all(self):
        job = self.job()
        for steps in 1, 3:
            status, said = job.ask("--steps", str(steps))
            self.assertEqual(status, 0, said)
            self.assertEqual([t["rank"] for t in said["targets"]], list(range(CAPTURED)))
            for target in said["targets"]:
                self.assertEqual(target["answer"], "captured", said)
                self.check_file(target, said["first"], said["first"] + steps - 1)

    def test_at_a_step_and_some_ahead(self):
        """How many steps pass until pk has asked, and has started, is the machine's."""
        job = self.job(2)
        for ahead in 50, 400, 3200:
            status, said = job.ask("--in", str(ahead))
            if status == 0:
                break
            self.assertLessEqual({target["answer"] for target in said["targets"]}, {"late", "captured"}, said)
        self.assertEqual(status, 0, said)
        for ahead in 200, 800, 3200:
            at = said["first"] + ahead
            status, said = job.ask("--at", str(at), "--steps", "2")
            self.assertEqual(said["first"], at, said)
            if status == 0:
                break
            self.assertLessEqual({target["answer"] for target in said["targets"]}, {"late", "captured"}, said)
        self.assertEqual([target["answer"] for target in said["targets"]], ["captured"] * 2, said)

    def test_one_that_is_stopped_is_named(self):
        job = self.job(3)
        os.kill(job.ranks[1].pid, signal.SIGSTOP)
        status, said = job.ask("--steps", "2", "--wait", "20")
        self.assertEqual(status, 1)
        self.assertEqual([t["answer"] for t in said["targets"]], ["captured", "stopped", "captured"], said)
        text = pk("capture", job.folder).stdout.decode()
        self.assertRegex(text, r"(?m)^rank 1, pid \d+ on .*: stopped, ")

    def test_one_that_is_gone_is_named(self):
        job = self.job(3)
        job.ranks[2].kill()
        job.ranks[2].wait()
        status, said = job.ask()
        self.assertEqual(status, 1)
        self.assertEqual([t["answer"] for t in said["targets"]], ["captured", "captured", "gone"], said)

    def test_who_is_late_is_named_and_not_shifted(self):
        job = self.job(2)
        before = set(os.listdir(job.folder))
        status, said = job.ask("--at", "3")
        self.assertEqual(status, 1)
        for target in said["targets"]:
            self.assertEqual(target["answer"], "late")
            self.assertRegex(target["why"], r"it was in step \d+ already")
        self.assertEqual(set(os.listdir(job.folder)), before)

    def test_who_takes_no_requests_says_so(self):
        job = self.job(1, capture="every=100000")
        status, said = job.ask()
        self.assertEqual((status, said["targets"][0]["answer"]), (1, "off"))

    def test_the_hour_is_full(self):
        job = self.job(1, PK_CAPTURES_PER_HOUR="1")
        self.assertEqual(job.ask()[0], 0)
        status, said = job.ask()
        self.assertEqual((status, said["targets"][0]["answer"]), (1, "refused"))

    def test_the_end_of_the_run(self):
        job = self.job(1, 20)
        asked = subprocess.Popen([PK, "capture", "--json", "--in", "100000", job.folder], stdout=subprocess.PIPE)
        with self.assertRaises(subprocess.TimeoutExpired):
            asked.wait(2)
        job.ranks[0].stdin.close()
        job.ranks[0].wait()
        said = json.loads(asked.communicate(timeout=60)[0])
        self.assertEqual(said["targets"][0]["answer"], "ended")
        job.ranks[0].stdin = open(os.devnull, "wb")  # for close

    def test_words_that_make_no_sense(self):
        for arguments, says in (([], "TARGET"), (["--at", "1", "--in", "2", "."], "exclude"),
                                (["--steps", "0", "."], "--steps"), (["/nowhere"], "/nowhere")):
            done = pk("capture", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr.decode(), re.escape(says))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + CASES)
