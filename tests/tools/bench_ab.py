"""bench_ab.py PK PROGRAM [OLD.so SAME.so NEW.so BROKEN.so] - `pk bench-ab` with builds whose times are made up."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PK, PROGRAM = map(os.path.abspath, sys.argv[1:3])
OBJECTS = [os.path.abspath(path) for path in sys.argv[3:]]
SAME, SLOWER, UNUSABLE = 0, 1, 2


class BenchAB(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = os.path.join(self.folder, "log")
        os.mkdir(os.path.join(self.folder, "tmp"))
        self.old, self.new = (shutil.copy(PROGRAM, os.path.join(self.folder, name)) for name in ("old", "new"))
        for path in (self.old, self.new):
            os.chmod(path, 0o755)

    def tearDown(self):
        self.assertEqual(os.listdir(os.path.join(self.folder, "tmp")), [], "left behind")

    def environment(self, times="old=100,new=100", do=""):
        return {**os.environ, "AB_LOG": self.log, "AB_TIMES": times, "AB_DO": do,
                "TMPDIR": os.path.join(self.folder, "tmp")}

    def run_ab(self, *arguments, **more):
        return subprocess.run([PK, "bench-ab", *arguments], capture_output=True, timeout=300, check=False, text=True,
                              env=self.environment(**more), cwd=self.folder)

    def told(self, *arguments, status=SAME, **more):
        done = self.run_ab(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return done.stdout

    def refused(self, *arguments, says, **more):
        done = self.run_ab(*arguments, **more)
        self.assertEqual((done.returncode, done.stdout), (UNUSABLE, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Apk: [ -~]*\n\Z")
        self.assertIn(says, done.stderr)

    def rows(self, *arguments, **more):
        told = json.loads(self.told("--json=-", *arguments, **more))["comparisons"][0]
        return told["method"], {row["name"]: row for row in told["benchmarks"]}

    def launches(self):
        with open(self.log, encoding="utf-8") as log:
            return [line.split() for line in log]

    # ---- processes ----

    def test_the_order_is_abba(self):
        self.told(self.old, self.new, "--launches", "8", "--", "--more", "x y")
        launches = self.launches()
        self.assertEqual([words[0] for words in launches], ["old", "new", "new", "old"] * 4)
        for words in launches:
            self.assertEqual(words[-3:], ["--more", "x", "y"])
            self.assertIn("--min-time=0.100000", words)  # 2 s over 16 launches, a fifth of it to warm up

    def test_verdicts(self):
        method, rows = self.rows("old", "./new", "--launches=12", times="old=100,new=102", status=SLOWER)
        self.assertEqual((method, rows["f"]["verdict"], rows["f"]["old_launches"]), ("pairs", "slower", 12))
        self.assertAlmostEqual(rows["f"]["ratio"], 1.02, delta=0.001)
        for new, verdict in ((100, "same"), (100.5, "same"), (97, "faster")):
            _, rows = self.rows(self.old, self.new, "--launches=12", times=f"old=100,new={new}")
            self.assertEqual(rows["f"]["verdict"], verdict, new)
        _, rows = self.rows(self.old, self.new, "--threshold=3%", times="old=100,new=102")
        self.assertEqual(rows["f"]["verdict"], "same")

    def test_googles(self):
        _, rows = self.rows("--google", self.old, self.new, "--filter=f", times="old=100,new=105", status=SLOWER)
        self.assertEqual(rows["f"]["verdict"], "slower")
        self.assertIn("--benchmark_out_format=json", self.launches()[0])
        self.assertEqual(self.launches()[0][-2:], ["--benchmark_filter", "f"])

    def test_what_is_saved_replaces_no_link(self):
        saved, precious = os.path.join(self.folder, "saved"), os.path.join(self.folder, "precious")
        os.mkdir(saved)
        with open(precious, "w", encoding="utf-8") as file:
            file.write("precious")
        os.symlink(precious, os.path.join(saved, "new.json"))
        self.refused(self.old, self.new, "--save", saved, says="new.json: is a symbolic link")
        self.assertTrue(os.path.islink(os.path.join(saved, "new.json")))
        with open(precious, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")

    def test_what_is_saved_says_the_same(self):
        saved = os.path.join(self.folder, "saved")
        told = self.rows(self.old, self.new, "--save", saved, times="old=100,new=102", status=SLOWER)
        files = [os.path.join(saved, name) for name in ("old.json", "new.json")]
        done = subprocess.run([PK, "compare", "--threshold=1%", "--json=-", *files], capture_output=True, check=False)
        self.assertEqual(done.returncode, SLOWER)
        again = json.loads(done.stdout)["comparisons"][0]
        self.assertEqual((again["method"], {row["name"]: row for row in again["benchmarks"]}), told)
        with open(files[0], encoding="utf-8") as file:
            context = json.load(file)["context"]
        self.assertEqual(context["perfkit"]["configuration"],
                         {"seed": 1, "interleaved": True, "precision": 0.5, "clock": "wall"})

    def test_a_baseline(self):
        store = os.path.join(self.folder, "store")
        self.told(self.old, self.new, "--baseline", store)
        self.told(self.old, self.new, "--baseline", store, times="old=100,new=110", status=SLOWER)
        found = [name for _, _, names in os.walk(store) for name in names]
        self.assertEqual(len(found), 1)

    def test_a_budget(self):
        done = self.run_ab(self.old, self.new, "--budget", "1ms")
        self.assertEqual(done.returncode, SAME)
        self.assertIn("enough for 1 of 40 process runs", done.stderr)
        self.assertIn("cannot tell: too few process runs", done.stdout)

    # ---- what is wrong ----

    def test_programs_that_fail(self):
        for do, says in (("fail", "old exited with status 1: it would not"), ("kill", "old was killed by signal 6"),
                         ("silent", "old wrote no file of benchmarks"), ("nonsense", "old is not JSON")):
            self.refused("old", "new", do=do, says=says)
        self.refused("old", "new", "--timeout=0.5s", do="hang", says="has not ended in time")
        os.chmod(self.new, 0o644)
        self.refused("old", "new", says="new cannot be started: Permission denied")

    def test_wrong_arguments(self):
        self.refused(says="needs two builds")
        self.refused("old", says="needs two builds")
        self.refused("old", "new", "third", says="is a third")
        self.refused("old", "none", says="none: No such file")
        self.refused("old", "new", "--fast", says='"--fast"')
        self.refused("old", "new", "--filter", "(", says="no regular expression")
        for wrong in ("0", "7", "x", "1001", "8x"):
            self.refused("old", "new", "--launches", wrong, says="--launches takes")
        for wrong in ("0", "x", "-1s", "1year", ""):
            self.refused("old", "new", f"--time={wrong}", says="--time takes")
        self.refused("--launch", says="for pk itself")

    def test_help(self):
        told = self.told("--help")
        self.assertTrue(told.startswith("usage: pk bench-ab "))
        self.assertLessEqual(max(map(len, told.splitlines())), 90)

    def test_an_interruption_leaves_nothing(self):
        ab = subprocess.Popen([PK, "bench-ab", self.old, self.new], env=self.environment(do="hang"),
                              stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        while not os.path.exists(self.log):
            time.sleep(0.01)
        ab.send_signal(signal.SIGINT)
        self.assertIn("interrupted", ab.communicate(timeout=60)[1])
        self.assertEqual(ab.returncode, UNUSABLE)

    # ---- one process ----

    def objects(self):
        if not OBJECTS:
            self.skipTest("no shared objects here")
        return OBJECTS

    def test_objects(self):
        old, same, new, _ = self.objects()
        quick = ("--time=10ms", "--launches=12")
        method, rows = self.rows(old, new, *quick, status=SLOWER)
        self.assertEqual((method, rows["steady"]["verdict"]), ("one-process", "slower"))
        self.assertAlmostEqual(rows["steady"]["ratio"], 1.02)
        self.assertEqual(rows["scattered"]["verdict"], "cannot tell")
        self.assertIn("not on this machine", rows["skipped"]["text"])
        self.assertIn("only in the new file", rows["alone"]["text"])
        _, rows = self.rows(old, same, *quick)
        self.assertEqual((rows["steady"]["verdict"], rows["steady"]["ratio"]), ("same", 1))
        _, rows = self.rows(old, old, *quick)  # one file twice: loaded twice
        self.assertEqual(rows["steady"]["verdict"], "same")
        saved, store = os.path.join(self.folder, "saved"), os.path.join(self.folder, "store")
        self.rows(old, same, "--save", saved, "--baseline", store, *quick)
        with open(os.path.join(saved, "new.json"), encoding="utf-8") as file:
            context = json.load(file)["context"]
        self.assertRegex(context["date"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d\Z")
        self.assertRegex(context["perfkit"]["fingerprint"], r"\A[0-9a-f]{16}\Z")
        self.assertEqual(context["perfkit"]["configuration"], {"launches": 12, "time": 10000000})
        self.assertEqual(os.listdir(store), [context["perfkit"]["fingerprint"]])
        _, rows = self.rows(old, new, "--filter=st.*y$", *quick, status=SLOWER)
        self.assertEqual(list(rows), ["steady"])

    def test_objects_that_cannot_be(self):
        old, _, _, broken = self.objects()
        self.refused(old, broken, says="was killed by signal 6")
        self.refused(old, self.new, says="both have to be of one kind")
        self.refused(old, old, "--", "x", says="take no arguments")
        self.refused(old, old, "--google", says="run as processes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
