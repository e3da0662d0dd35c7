"""follow.py PK PK_TRAIN CALENDAR - pk job --follow: windows of forged ranks as they come, of which one is late from a known step on; of
real processes without MPI; ranks that fall behind, start anew, go on in another file; folders without any.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest

PK, TRAIN, CALENDAR = sys.argv[1:4]
STEPS = 20


def window(rank, ranks, number, own, comm, last=False, pid=1000, steps=STEPS, first=False):
    """A line as a rank writes it, without what nobody compares. first: of the run's first steps, which stand there one by one."""
    time_of_all = own + comm

    def distribution(total):
        return {"count": steps, "sum": total, "min": total // steps, "max": total // steps}
    regions = [("forward", "compute", own // 2), ("backward", "compute", own - own // 2), ("all_reduce", "comm", comm)]
    parts = [[i, total // steps] for i, (_, _, total) in enumerate(regions)]
    one_by_one = [{"index": number * steps + i, "duration": time_of_all // steps, "parts": parts} for i in range(steps)]
    return json.dumps({
        "format": "perfkit window", "schema": 1, "window": number, "start": number * time_of_all, "end": (number + 1) * time_of_all,
        "last": last, "run": {"program": "train", "host": f"node{rank // 8}", "pid": pid + rank, "rank": rank, "world_size": ranks,
                              "start_unix": 1795854259000000000 + pid},
        "steps": {"count": steps, "of_all_kinds": steps, "first": number * steps, "last": (number + 1) * steps - 1, "items": steps,
                  "time": distribution(time_of_all), **({"exact": {"first": one_by_one}} if first else {})},
        "regions": [{"name": name, "kind": kind, "time": distribution(total), "self": total,
                     **({} if first else {"step_self": distribution(total)})} for name, kind, total in regions]}) + "\n"


class Follow(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.random = random.Random(4711)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, ranks, numbers, late=None, by=0.05, since=0, end=True, **more):
        for number in numbers:
            own = [int(20e6 * (1 + self.random.gauss(0, 0.005)) * (1 + by * (r == late and number >= since))) for r in range(ranks)]
            for rank in range(ranks):
                with open(self.path(f"{rank}.windows.jsonl"), "a", encoding="utf-8") as file:
                    file.write(window(rank, ranks, number, own[rank], max(own) - own[rank] + 400000,
                                      last=end and number == numbers[-1], **more))

    def follow(self, *options, expect=0):
        done = subprocess.run([PK, "job", "--follow", *options, self.folder], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr if expect else done.stdout

    def verdicts(self, *options):
        return [json.loads(line) for line in self.follow("--once", "--json", *options).splitlines()]

    def test_names_who_is_late(self):
        self.write(32, range(60), late=5, since=30)
        found = self.verdicts()
        self.assertEqual(found[-1]["verdicts"], 60)
        self.assertEqual([late["rank"] for late in found[-1]["late"]], [5])
        self.assertTrue(0.02 < found[-1]["late"][0]["by"] < 0.08 and "node0" in found[-1]["late"][0]["text"], found[-1])
        named = [v["last"] for v in found if v["late"]]
        self.assertTrue(30 * STEPS <= named[0] <= 45 * STEPS, named[0])
        self.assertIn("Rank 5", self.follow("--once"))

    def test_in_the_first_steps(self):
        self.write(32, range(100), late=5, since=50, steps=2, first=True)
        named = [v["last"] for v in self.verdicts() if v["late"]]
        self.assertTrue(named and 100 <= named[0] <= 120, named)

    def test_who_begins_later(self):
        lines = [[window(rank, 2, n, 20000000, 400000, last=n == 7) for n in range(8)] for rank in range(2)]
        with open(self.path("0.windows.jsonl"), "w", encoding="utf-8") as first, \
                subprocess.Popen([PK, "job", "--follow", "--every", "1", "--json", self.folder], stdout=subprocess.PIPE, text=True) as follower:
            self.addCleanup(follower.kill)
            first.writelines(lines[0][:4])
            first.flush()
            time.sleep(1.5)  # it has heard of the first alone
            with open(self.path("1.windows.jsonl"), "w", encoding="utf-8") as second:
                second.writelines(lines[1])
            first.writelines(lines[0][4:])
            first.flush()
            said = follower.communicate(timeout=100)[0]
        self.assertEqual(json.loads(said.splitlines()[-1])["verdicts"], 8)

    def test_names_nobody(self):
        self.write(32, range(60))
        self.assertEqual(sum(len(v["late"]) for v in self.verdicts()), 0)
        self.assertIn("no rank is late", self.follow("--once"))

    def test_late_no_more(self):
        self.write(16, range(40), late=3, by=0.3, end=False)
        self.write(16, range(40, 120))
        text = self.follow("--once")
        self.assertIn("Rank 3", text)
        self.assertIn("rank 3 is late no more", text)

    def test_metrics_and_page(self):
        self.write(16, range(40), late=3, by=0.3)
        metrics, page = self.path("job.prom"), self.path("job.html")
        self.follow("--once", "--metrics", metrics, "--html", page)
        with open(metrics, encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if not line.startswith("#")]
        self.assertIn("pk_job_ranks 16", lines)
        self.assertTrue(any(line.startswith('pk_job_late_ratio{rank="3",host="node0"} 0.') for line in lines), lines)
        with open(page, encoding="utf-8") as file:
            self.assertIn("<li>Rank 3", file.read())

    def live(self):
        process = subprocess.Popen([PK, "job", "--follow", "--every", "1", "--json", self.folder], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_as_they_come(self):
        """Half a line is none yet; the file goes on as another one, as PATH.1 keeps the first; it ends when all have."""
        self.write(2, range(10), end=False)
        whole = window(0, 2, 10, 20000000, 400000)
        with open(self.path("0.windows.jsonl"), "a", encoding="utf-8") as file:
            file.write(whole[:100])
        process = self.live()
        for _ in range(10):
            self.assertIn('"ranks":2', process.stdout.readline())
        with open(self.path("0.windows.jsonl"), "a", encoding="utf-8") as file:
            file.write(whole[100:])
        for rank in [1]:
            with open(self.path(f"{rank}.windows.jsonl"), "a", encoding="utf-8") as file:
                file.write(window(rank, 2, 10, 20000000, 400000))
        self.assertEqual(json.loads(process.stdout.readline())["last"], 11 * STEPS - 1)
        self.write(2, [11], end=False)  # of which the first rank's is still to be read as its file gets another name
        os.rename(self.path("0.windows.jsonl"), self.path("0.windows.jsonl.1"))
        self.write(2, [12])
        lasts = [json.loads(line)["last"] for line in process.stdout]
        self.assertEqual(lasts, [12 * STEPS - 1, 13 * STEPS - 1])
        self.assertEqual(process.wait(60), 0)

    def test_the_calendar_is_set(self):
        """An hour ahead: nobody has been silent for that long."""
        self.write(2, range(12), late=1, by=0.5, end=False)
        ahead = tempfile.mkdtemp() + "/ahead"
        self.addCleanup(os.removedirs, os.path.dirname(ahead))
        self.addCleanup(os.unlink, ahead)
        environment = {**os.environ, "LD_PRELOAD": CALENDAR, "CALENDAR_AHEAD": ahead, "ASAN_OPTIONS": "verify_asan_link_order=0"}
        with subprocess.Popen([PK, "job", "--follow", "--every", "1", self.folder], stdout=subprocess.PIPE, text=True,
                              env=environment) as process:
            self.assertIn("Rank 1", process.stdout.readline())
            with open(ahead, "w", encoding="utf-8"):
                time.sleep(2.5)  # some of its looks
            self.write(2, [12])
            self.assertNotIn("silent", process.stdout.read())

    def test_a_rank_starts_anew(self):
        self.write(4, range(12), end=False)
        with open(self.path("2.windows.jsonl"), "a", encoding="utf-8") as file:
            file.write("{ cut off\n")
            file.write(window(2, 4, 0, 20000000, 400000, pid=5000, last=True))
        self.assertIn("Rank 2 has started anew, process 5002.", self.follow("--once"))

    def test_not_by_the_same_steps(self):
        for rank, steps in enumerate((20, 23)):
            with open(self.path(f"{rank}.windows.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(window(rank, 2, n + 1, 20000000, 400000, steps=steps) for n in range(15))
        done = subprocess.run([PK, "job", "--follow", "--once", self.folder], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("PK_WINDOW_STEPS", done.stderr)

    def test_what_is_none(self):
        self.assertIn("there are no windows", self.follow("--once", expect=2))
        self.folder = self.path("nowhere")
        self.assertIn("No such file", self.follow("--once", expect=2))
        for options in (["--every", "2"], ["--metrics", "x"], ["--once"]):
            done = subprocess.run([PK, "job", *options, "x"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, "--follow" in done.stderr), (2, True), done.stderr)

    def test_real_processes_without_mpi(self):
        ranks = []
        for rank in range(2):
            variables = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "PK_WINDOW_STEPS": 4,
                         "PK_WINDOWS_PATH": self.path("%r.windows.jsonl")}
            ranks.append(subprocess.Popen([TRAIN, "--quiet", "--steps", "48", "--layers", "1"], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL, env={**os.environ, **{k: str(v) for k, v in variables.items()}}))
        until = time.monotonic() + 60
        while len(os.listdir(self.folder)) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        said = self.follow("--every", "1", "--json").splitlines()
        self.assertEqual([r.wait() for r in ranks], [0, 0])
        last = json.loads(said[-1])
        self.assertEqual((last["ranks"], last["last"], last["verdicts"]), (2, 47, 12))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
