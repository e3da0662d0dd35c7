"""compare.py Compare PK GOLDEN_FOLDER
compare.py BenchAB PK PROGRAM [OLD.so SAME.so NEW.so BROKEN.so]
compare.py AB PK PROGRAM RUNS - `pk compare` of files, `pk bench-ab` with builds whose times are made up, and `pk ab` with
commands of known length."""

import copy
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

from traces import InFolder

CASES = sys.argv[1].split(",")
PK, *GIVEN = map(os.path.abspath, sys.argv[2:])
SAME, SLOWER, UNUSABLE = 0, 1, 2


# ---- pk compare ----


def run(*arguments, **more):
    return subprocess.run([PK, "compare", *arguments], capture_output=True, timeout=300, check=False, text=True, **more)


def row(name, time, launch="a" * 32, samples=None, **more):
    ours = {"launch": launch, "clock": "wall"}
    if samples:
        ours["samples"] = samples
    return {"name": name, "run_name": name, "run_type": "iteration", "real_time": time, "cpu_time": time,
            "time_unit": "ns", "iterations": 1, "perfkit": ours} | more


def document(rows, fingerprint="0123456789abcdef", date="2026-11-20T14:00:00+00:00"):
    ours = {"format": "perfkit bench", "schema": 1, "fingerprint": fingerprint, "configuration": {"seed": 1}}
    return {"context": {"date": date, "host_name": "h", "executable": "./b", "perfkit": ours}, "benchmarks": rows}


class Compare(InFolder):
    def file(self, what, name="file.json"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            text = what if isinstance(what, (bytes, str)) else json.dumps(what)
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def refused(self, *arguments, says):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (UNUSABLE, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Apk: [ -~]*\n\Z")
        self.assertIn(says, done.stderr)

    def told(self, *arguments, status=SAME, **more):
        done = run(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return done.stdout

    def verdicts(self, *arguments, status=SAME):
        told = json.loads(self.told("--json", "-", *arguments, status=status))
        return [{b["name"]: b["verdict"] for b in c["benchmarks"]} for c in told["comparisons"]]

    # ---- recorded files ----

    def golden(self, name, *arguments, status):
        told = self.told(*arguments, status=status, cwd=GIVEN[0])
        with open(os.path.join(GIVEN[0], name), encoding="utf-8") as file:
            self.assertEqual(told, file.read(), f"{name}: pk compare {' '.join(arguments)}")
        return told

    def test_pairs(self):
        files = ["compare-pairs-old.json", "compare-pairs-new.json"]
        self.golden("compare-pairs.txt", *files, status=SLOWER)
        self.golden("compare-pairs.md", "--markdown", "-", *files, status=SLOWER)
        told = json.loads(self.golden("compare-pairs.json", "--json", "-", *files, status=SLOWER))
        self.assertEqual(told["comparisons"][0]["benchmarks"][1]["verdict"], "slower")
        suite = xml.etree.ElementTree.fromstring(self.golden("compare-pairs.xml", "--junit=-", *files, status=SLOWER))[0]
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("skipped")), ("5", "1", "1"))
        self.assertEqual([case.get("name") for case in suite if case.find("failure") is not None], ["parse"])

    def test_a_chain(self):
        self.golden("compare-chain.txt", *(f"compare-run-{i}.json" for i in (1, 2, 3)), status=SAME)
        self.golden("compare-chain.md", "--markdown=-", *(f"compare-run-{i}.json" for i in (1, 2)), status=SLOWER)

    def test_googles(self):
        self.golden("compare-google.txt", "compare-google.json", "compare-google.json", status=SAME)

    def test_nvbenchs(self):
        def state(axes, data, **more):
            return {"name": axes, "device": 0, "summaries": [
                {"tag": tag, "name": tag, "data": [{"name": "value", "type": "float64", "value": value}]}
                for tag, value in data.items()]} | more

        def document(time):
            return {"meta": {"argv": ["b"]}, "devices": [], "benchmarks": [
                {"name": "copy", "states": [
                    state("Device=0 N=2^10", {"nv/cold/sample_size": "9", "nv/cold/time/gpu/mean": str(time),
                                              "nv/cold/time/gpu/median": str(time / 1e6)}),
                    state("Device=0 N=2^11", {"nv/cold/time/gpu/mean": time / 1e5, "nv/cold/time/cpu/mean": "9"}),
                    state("Device=0 N=2^12", {}, is_skipped=True, skip_reason="too large")]},
                {"name": "host", "states": [state("", {"nv/cpu_only/time/cpu/mean": "inf"})]}]}

        files = [self.file(document(time), name) for time, name in ((2, "old.json"), (3, "new.json"))]
        rows = json.loads(self.told("--json=-", *files, status=SLOWER))["comparisons"][0]["benchmarks"]
        self.assertEqual([(r["name"], r["old"] and round(r["old"]), r["new"] and round(r["new"]), r["verdict"]) for r in rows], [
            ("copy[Device=0 N=2^10]", 2000, 3000, "slower"), ("copy[Device=0 N=2^11]", 20000, 30000, "slower"),
            ("copy[Device=0 N=2^12]", None, None, "not compared"), ("host", None, None, "not compared")])
        self.assertIn("too large", rows[2]["text"])
        broken = document(2)
        del broken["benchmarks"][0]["name"]
        self.refused(files[0], self.file(broken), says="nvbench without a name")

    # ---- single runs at different moments ----

    def pair(self, old, new, **more):
        return (self.file(document([row("f", old, samples=[old] * 20)]), "old.json"),
                self.file(document([row("f", new, samples=[new] * 20)], **more), "new.json"))

    def test_what_a_moment_may_do_is_no_verdict(self):
        for new, verdict, status in ((100, "cannot tell", 0), (120, "cannot tell", 0), (126, "cannot tell", 0),
                                     (128, "slower", 1), (78, "faster", 0), (79, "cannot tell", 0)):
            self.assertEqual(self.verdicts(*self.pair(100, new), status=status), [{"f": verdict}], new)
        self.assertEqual(self.verdicts("--moments", "5%", *self.pair(100, 110), status=SLOWER), [{"f": "slower"}])
        self.assertEqual(self.verdicts("--moments=0", *self.pair(100, 101)), [{"f": "same"}])
        self.assertEqual(self.verdicts("--moments=0", "--threshold=0.5%", *self.pair(100, 101), status=SLOWER),
                         [{"f": "slower"}])

    def test_other_machines(self):
        files = self.pair(100, 300, fingerprint="fedcba9876543210")
        self.assertEqual(self.verdicts(*files), [{"f": "cannot tell"}])
        self.assertIn("machines differ", self.told(*files))
        self.assertEqual(self.verdicts("--any-machine", *files, status=SLOWER), [{"f": "slower"}])

    def test_what_cannot_be_compared(self):
        old = self.file(document([row("a", 1), row("b", 1), row("c", 0), row("d", 1)]), "old.json")
        other = row("d", 1)
        other["perfkit"]["clock"] = "gpu"
        failed = row("b", 0, error_occurred=True, error_message="broke")
        new = self.file(document([row("a", 1), failed, row("c", 1), other, row("e", 1)]), "new.json")
        told = self.told(old, new)
        for words in ("failed in the new file: broke", "no time was measured", "different clocks",
                      "only in the new file", "4 not compared"):
            self.assertIn(words, told)
        self.refused(old, self.file(document([row("z", 1)]), "z.json"), says="has no benchmark")

    def test_cpu_time(self):
        old = self.file(document([row("f", 100, cpu_time=10)]), "old.json")
        new = self.file(document([row("f", 300, cpu_time=10)]), "new.json")
        self.assertEqual(self.verdicts(old, new, status=SLOWER), [{"f": "slower"}])
        self.assertEqual(self.verdicts("--cpu", old, new), [{"f": "cannot tell"}])

    def test_units_and_aggregates(self):
        old = document([row("f", 3000.0)])
        new = document([row("f", 2.9, time_unit="us")])
        only = document([row("f_mean", 9, run_name="f", run_type="aggregate", aggregate_name="mean"),
                         row("f_median", 3050, run_name="f", run_type="aggregate", aggregate_name="median")])
        for wish, ratio in ((new, 2900 / 3000), (only, 3050 / 3000)):
            told = json.loads(self.told("--json=-", self.file(old, "old.json"), self.file(wish, "new.json")))
            self.assertAlmostEqual(told["comparisons"][0]["benchmarks"][0]["ratio"], ratio)

    def test_output_files(self):
        files, out = self.pair(100, 300), {k: os.path.join(self.folder, k) for k in ("json", "markdown", "junit")}
        told = self.told(*files, *(f"--{k}={v}" for k, v in out.items()), status=SLOWER)
        self.assertIn("slower", told)
        for path in out.values():
            self.assertGreater(os.path.getsize(path), 100)
        self.refused_but_told(*files, "--json", os.path.join(self.folder, "none", "x"), says="No such file")
        self.refused_but_told(*files, "--json", out["json"], says="could not be written: File too large", restore_signals=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        with open(out["json"], encoding="utf-8") as before:
            self.assertEqual(json.load(before)["format"], "perfkit comparison")
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([*out, *map(os.path.basename, files)]))

    def refused_but_told(self, *arguments, says, **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, UNUSABLE)
        self.assertIn(says, done.stderr)

    def test_names_that_are_markup(self):
        files = [self.file(document([row("a|b<c>&\"\x1b[31m*\u00e9", 100)]), n) for n in ("old.json", "new.json")]
        self.assertNotIn("\x1b", self.told(*files))
        self.assertIn("a\\|b\\<c\\>", self.told("--markdown=-", *files))
        case = xml.etree.ElementTree.fromstring(self.told("--junit=-", *files))[0][0]
        self.assertEqual(case.get("name"), "a|b<c>&\" [31m*\u00e9")

    # ---- baselines ----

    def test_a_baseline(self):
        store = os.path.join(self.folder, "store")
        for i, time in enumerate((100, 103, 98, 101, 99)):
            new = self.file(document([row("f", time)], date=f"2026-11-2{i}T10:00:00+00:00"), "new.json")
            done = run("--baseline", store, "--store", new)
            self.assertEqual(done.returncode, SAME)
            self.assertEqual("no run yet" in done.stderr, i == 0)
        folder = os.path.join(store, "0123456789abcdef")
        kind = os.path.join(folder, os.listdir(folder)[0])
        self.assertEqual(len(os.listdir(kind)), 5)
        self.assertIn("against 5 stored ones", run("--baseline", store, new).stdout)
        # One more of the last minute is no further moment.
        again = self.file(document([row("f", 99, launch="b" * 32)], date="2026-11-24T10:00:30+00:00"), "again.json")
        run("--baseline", store, "--store", again)
        told = run("--baseline", store, new).stdout
        self.assertIn("against 5 stored ones", told)
        self.assertTrue(told.startswith(f"{store} -> {new}\n"), told)
        os.remove(os.path.join(kind, max(os.listdir(kind))))
        # The spread is about 2 %, so 20 % is beyond chance; and is not stored.
        slow = self.file(document([row("f", 120)], date="2026-11-26T10:00:00+00:00"), "slow.json")
        self.assertEqual(self.verdicts("--baseline", store, "--store", slow, status=SLOWER), [{"f": "slower"}])
        self.assertEqual(len(os.listdir(kind)), 5)
        unsure = self.file(document([row("f", 106)]), "unsure.json")
        told = self.told("--baseline", store, unsure)
        self.assertRegex(told, r"cannot tell: \d+ more runs of each")
        run("--baseline", store, "--store", "--keep", "2", new)
        self.assertEqual(len(os.listdir(kind)), 2)
        other = self.file(document([row("f", 300)], fingerprint="f" * 16), "other.json")
        self.assertIn("machines differ", self.told("--baseline", store, other))
        self.file(b"nonsense", os.path.join(kind, "2026-12-01.json"))
        self.refused("--baseline", store, new, says="is not JSON")

    def test_baselines_that_cannot_be(self):
        new = self.file(document([row("f", 1)], fingerprint="../../x"), "new.json")
        store = os.path.join(self.folder, "store")
        run("--baseline", store, "--store", new)
        self.assertEqual(os.listdir(store), ["_._.._x"])
        self.refused_but_told("--baseline", new, "--store", new, says="Not a directory")
        shutil.rmtree(store)

    # ---- what is wrong ----

    def test_help(self):
        for arguments in (["--help"], ["-h", "--nonsense"]):
            told = self.told(*arguments)
            self.assertTrue(told.startswith("usage: pk compare "))
            self.assertLessEqual(max(map(len, told.splitlines())), 90)

    def test_wrong_arguments(self):
        good = self.file(document([row("f", 1)]))
        self.refused(says="needs two files")
        self.refused(good, says="needs two files")
        self.refused("--fast", good, good, says='"--fast"')
        self.refused("--baseline", self.folder, good, good, says="takes one file")
        self.refused("--store", good, good, says="--store needs --baseline")
        self.refused("--baseline", self.folder, "--store", "-", says="standard input")
        self.refused(good, good, "--threshold", says="needs a value")
        self.refused(good, good, "--json=", says="--json needs the name")
        for wrong in ("2", "-1%", "x", "", "2%%", "nan", "0x1%", "1e9%", "."):
            self.refused("--threshold", wrong, good, good, says="--threshold takes")
        for wrong in ("0", "0.6", "x", ""):
            self.refused(f"--alpha={wrong}", good, good, says="--alpha takes")
        for wrong in ("0", "-1", "x", "1x", "99999"):
            self.refused("--keep", wrong, "--baseline", self.folder, good, says="--keep takes")
        self.refused(good, os.path.join(self.folder, "none.json"), says="No such file")
        self.refused(self.folder, good, says="is a directory")

    def test_wrong_files(self):
        good = self.file(document([row("f", 1)]), "good.json")
        base = document([row("f", 1, samples=[1, 2])])

        def wrong(says, change):
            changed = copy.deepcopy(base)
            change(changed)
            self.refused(good, self.file(changed), says=says)

        wrong('"time_unit"', lambda d: d["benchmarks"][0].update(time_unit="fortnights"))
        wrong('"real_time" is not a number', lambda d: d["benchmarks"][0].update(real_time="1"))
        wrong('"benchmarks"', lambda d: d.update(benchmarks={}))
        wrong("no objects", lambda d: d.update(benchmarks=[1]))
        wrong("no numbers", lambda d: d["benchmarks"][0]["perfkit"].update(samples=["x"]))
        wrong('"samples" is not an array', lambda d: d["benchmarks"][0]["perfkit"].update(samples=3))
        wrong("without a name", lambda d: d["benchmarks"][0].update(name="", run_name=""))
        wrong("schema 2", lambda d: d["context"]["perfkit"].update(schema=2))
        wrong('"perfkit" is not an object', lambda d: d["context"].update(perfkit=1))
        for text, says in ((b"", "is empty"), (b"{", "cut off"), (b"[]", "neither"), (b"nonsense", "not JSON"),
                           (b"[" * 5000, "nested too deep")):
            self.refused(good, self.file(text), says=says)

    def test_a_closed_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PK, "compare", *self.pair(1, 1)], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, UNUSABLE)


# ---- pk bench-ab ----


class BenchAB(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = os.path.join(self.folder, "log")
        os.mkdir(os.path.join(self.folder, "tmp"))
        self.old, self.new = (shutil.copy(GIVEN[0], os.path.join(self.folder, name)) for name in ("old", "new"))
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
        if not GIVEN[1:]:
            self.skipTest("no shared objects here")
        return GIVEN[1:]

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


# ---- pk ab ----


class AB(InFolder):
    def setUp(self):
        super().setUp()
        self.log = self.path("log")
        os.mkdir(self.path("tmp"))

    def tearDown(self):
        self.assertEqual(os.listdir(self.path("tmp")), [], "left behind")

    def ab(self, *arguments, times="old=100,new=100", do=""):
        environment = {**os.environ, "AB_LOG": self.log, "AB_TIMES": times, "AB_DO": do, "TMPDIR": self.path("tmp")}
        return subprocess.run([PK, "ab", *arguments], capture_output=True, timeout=300, check=False, text=True,
                              env=environment, cwd=self.folder)

    def rows(self, *arguments, status=SAME, **more):
        done = self.ab("--json=-", *arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return {row["name"]: row for row in json.loads(done.stdout)["comparisons"][0]["benchmarks"]}

    def refused(self, *arguments, says, **more):
        done = self.ab(*arguments, **more)
        self.assertEqual((done.returncode, done.stdout), (UNUSABLE, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Apk: [ -~]*\n\Z")
        self.assertIn(says, done.stderr)

    def benchmarks(self):
        """Two programs that write files of benchmarks."""
        return [shutil.copy(GIVEN[0], self.path(name)) for name in ("old", "new")]

    def test_time_and_regions(self):
        runs, saved = GIVEN[1], self.path("saved")
        rows = self.rows("--runs=14", "--save", saved, "--", runs, "ab", "300", "--", runs, "ab", "3000", status=SLOWER)
        self.assertEqual(list(rows)[:3], ["wall time", "CPU time", "step"])
        for name in ("wall time", "step", "region changed, self in a step"):
            self.assertEqual(rows[name]["verdict"], "slower", rows[name])
        self.assertNotEqual(rows["region fixed, self in a step"]["verdict"], "faster")
        self.assertGreater(rows["region changed, self in a step"]["ratio"], 1.5)
        self.assertGreater(rows["wall time"]["old"], 20 * 600e3)
        self.assertLess(rows["wall time"]["old"], 1e9)
        done = subprocess.run([PK, "compare", "--threshold=0.5%", "--json=-", *(os.path.join(saved, name) for name in (
            "old.json", "new.json"))], capture_output=True, check=False)
        again = json.loads(done.stdout)["comparisons"][0]
        self.assertEqual((again["method"], {row["name"]: row for row in again["benchmarks"]}), ("pairs", rows))
        done = self.ab("--runs=14", "--filter=^wall", "--markdown=-", "--", runs, "ab", "3000", "--", runs, "ab", "300")
        self.assertEqual((done.returncode, done.stderr), (SAME, ""))
        self.assertIn("| **faster** |", done.stdout)
        self.assertEqual(done.stdout.count("\n| "), 2)

    def test_processor_time(self):
        """Of those whom the command has waited for, too."""
        spin = "i=0; while [ $i -lt %d ]; do i=$((i + 1)); done"
        rows = self.rows("--runs=10", "--filter=CPU", "--", "sh", "-c", f"({spin % 10000}); true", "--", "sh", "-c",
                         f"({spin % 60000}); true", status=SLOWER)
        self.assertEqual(rows["CPU time"]["verdict"], "slower")

    def test_files_of_benchmarks(self):
        old, new = self.benchmarks()
        rows = self.rows("--runs=30", "--", old, "--json={}", "--", new, "--json={}", "x", times="old=100,new=102",
                         status=SLOWER)
        self.assertEqual((list(rows), rows["f"]["verdict"], rows["f"]["old_launches"]), (["f"], "slower", 30))
        self.assertAlmostEqual(rows["f"]["ratio"], 1.02, delta=0.001)
        with open(self.log, encoding="utf-8") as log:
            ran = [line.split()[0] for line in log]
        self.assertEqual((len(ran), ran.count("old")), (62, 31))  # one of each counts for nothing
        pairs = {tuple(ran[i:i + 2]) for i in range(0, len(ran), 2)}
        self.assertEqual(pairs, {("old", "new"), ("new", "old")})  # 1 of 2^30 runs of this test has one order alone
        rows = self.rows("--", old, "--benchmark_out={}", "--", new, "--benchmark_out={}", times="old=100,new=97")
        self.assertEqual(rows["f"]["verdict"], "faster")

    def test_what_fails_has_no_verdict(self):
        old, new = self.benchmarks()
        one = ["--", "true", "--", new, "--json={}"]
        for do, says in (("fail", "exited with status 1: it would not"), ("kill", "was killed by signal 6"),
                         ("silent", "wrote no file"), ("nonsense", "is not JSON")):
            self.refused(*one, do=do, says=f"the new command ({new} --json={{}}) {says}")
        self.refused("--timeout=0.3s", *one, do="hang", says="has not ended in time")
        self.refused("--", self.path("none"), "--", "true", says="the old command")
        # The twelfth run of it.
        count = "echo >> count; [ $(wc -l < count) -lt 12 ]"
        self.refused("--", "true", "--", "sh", "-c", count, says="exited with status 1")
        self.refused("--", "sh", "-c", "echo {} > $(echo $PK_REPORT_PATH | sed s/%r/0/)", "--", "true",
                     says="wrote no file")
        self.refused("--", "sh", "-c", "echo x > $(echo $PK_REPORT_PATH | sed s/%r/0/)", "--", "true",
                     says="wrote a report that")
        self.assertTrue(os.path.exists(old))

    def test_what_a_command_leaves_is_ended(self):
        begin = time.monotonic()
        self.ab("--runs=8", "--", "sh", "-c", "sleep 100 & echo $! >> pids", "--", "true")
        self.assertLess(time.monotonic() - begin, 50)
        with open(self.path("pids"), encoding="utf-8") as file:
            left = file.read().split()
        while any(os.path.exists(f"/proc/{pid}") for pid in left) and time.monotonic() - begin < 60:
            time.sleep(0.01)
        self.assertEqual([pid for pid in left if os.path.exists(f"/proc/{pid}")], [])

    def test_time(self):
        begin = time.monotonic()
        done = self.ab("--time=1s", "--", "sleep", "0.02", "--", "sleep", "0.02")
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(done.stderr, "")
        self.assertRegex(done.stdout, r"\d+ pairs of process runs")

    def test_wrong_arguments(self):
        self.refused(says="needs two commands")
        self.refused("--", "true", says="needs two commands")
        self.refused("--", "true", "--", says="needs two commands")
        self.refused("--", "--", "true", says="needs two commands")
        self.refused("true", "--", "true", "--", "true", says='"true" stands before')
        self.refused("--runs=7", "--", "true", "--", "true", says="--runs takes")
        self.refused("--time=x", "--", "true", "--", "true", says="--time takes")
        self.refused("--filter=(", "--", "true", "--", "true", says="no regular expression")
        self.refused("--fast", "--", "true", "--", "true", says='"--fast"')

    def test_an_interruption_leaves_nothing(self):
        ab = subprocess.Popen([PK, "ab", "--", "sh", "-c", "echo > here; sleep 100", "--", "true"], cwd=self.folder,
                              env={**os.environ, "TMPDIR": self.path("tmp")}, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(self.path("here")):
            time.sleep(0.01)
        ab.send_signal(signal.SIGINT)
        self.assertIn("interrupted", ab.communicate(timeout=60)[1])
        self.assertEqual(ab.returncode, UNUSABLE)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + CASES)
