"""capture.py PK CAPTURE_RUN - `pk capture` of several processes: the same steps of all; and who has not, by name."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PK, RUN = sys.argv[1], sys.argv[2]
RANKS = 6


def pk(*arguments):
    return subprocess.run([PK, *arguments], capture_output=True, timeout=100, check=False)


class Job:
    """Ranks of `runs capture` in a folder of their own."""

    def __init__(self, size=RANKS, pause=5, capture="request", **more):
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
        job = Job(*arguments, **more)
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
            self.assertEqual([t["rank"] for t in said["targets"]], list(range(RANKS)))
            for target in said["targets"]:
                self.assertEqual(target["answer"], "captured", said)
                self.check_file(target, said["first"], said["first"] + steps - 1)

    def test_at_a_step_and_some_ahead(self):
        job = self.job(2)
        status, said = job.ask("--in", "50")
        self.assertEqual(status, 0, said)
        # How many steps pass until pk has started is the machine's.
        for ahead in 200, 800, 3200:
            at = said["first"] + ahead
            status, said = job.ask("--at", str(at), "--steps", "2")
            self.assertEqual(said["first"], at, said)
            if status == 0:
                break
            self.assertEqual({target["answer"] for target in said["targets"]}, {"late"}, said)
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
    unittest.main(argv=sys.argv[:1])
