"""compare.py PK GOLDEN_FOLDER - the command line of `pk compare`: verdicts, exit statuses, bad files."""

import copy
import json
import os
import resource
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from traces import InFolder

PK, GOLDEN = map(os.path.abspath, sys.argv[1:3])
SAME, SLOWER, UNUSABLE = 0, 1, 2


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
        told = self.told(*arguments, status=status, cwd=GOLDEN)
        with open(os.path.join(GOLDEN, name), encoding="utf-8") as file:
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
