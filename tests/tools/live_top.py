"""live_top.py PK HANG_RUN - `pk top` of a real job: figures for scripts, and a page in a pty of changing size."""

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

PK, RUN = sys.argv[1], sys.argv[2]
RANKS = 3
ESCAPE = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")


class Job:
    """Ranks that go on until they are killed."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        meeting = os.path.join(self.folder, "meeting")
        with open(meeting, "wb") as file:
            file.write(bytes(4096))
        env = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
        env.update(PK_TRACE_PATH=os.path.join(self.folder, "run-%r.json"))
        self.ranks = [subprocess.Popen([RUN, "hang", str(rank), str(RANKS), meeting, "-1", "stopped", "20"],
                                       stdout=subprocess.PIPE, env=env) for rank in range(RANKS)]
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
        cls.job = Job()

    @classmethod
    def tearDownClass(cls):
        cls.job.close()

    def run_top(self, *arguments, **more):
        done = subprocess.run([PK, "top", self.job.folder, *arguments], capture_output=True, timeout=60, check=False, **more)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout

    def test_json(self):
        seen = json.loads(self.run_top("--once", "--json"))
        self.assertEqual([p["rank"] for p in seen["processes"]], list(range(RANKS)))
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
        self.assertEqual((regions["forward"]["kind"], regions["forward"]["processes"]), ("compute", RANKS))
        made = sum(p["steps_since"] for p in seen["processes"])
        self.assertAlmostEqual(regions["forward"]["calls"], made, delta=made / 2 + 10)
        order = [r["self_seconds"] for r in seen["regions"]]
        self.assertEqual(order, sorted(order, reverse=True))

    def test_plain(self):
        text = self.run_top("--once").decode()
        self.assertNotIn("\x1b", text)
        self.assertIn(f"{RANKS} processes: {RANKS} running", text)
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
        self.job = Job()
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
