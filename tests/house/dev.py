"""dev.py suites SOURCE BUILD
dev.py affected SOURCE BUILD
dev.py test SOURCE MESON - what `./dev` does with tests: it names every suite (suites), finds what an edit can affect
(affected; tests/affected.py), and says what came of tests, also of those that fail once or always, and of words that it
does not know (test; tests/tally.py)."""

import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = MESON = ""

# ---- suites ----


def suites(source, build):
    """`./dev help` names every suite that there is, by what meson knows of the tests."""
    with open(os.path.join(build, "meson-info", "intro-tests.json"), encoding="utf-8") as file:
        there = {suite.split(":")[-1] for test in json.load(file) for suite in test["suite"]}
    said = subprocess.run(["bash", os.path.join(source, "dev"), "help"], check=True, capture_output=True,
                          text=True).stdout
    named = set(said.split("Suites", 1)[1].split(":", 1)[1].split("What is missing")[0].split())
    for suite in sorted(there - named):
        print(f"./dev help does not name the suite {suite}")
    return bool(there - named)  # without some headers there are fewer suites than it names


# ---- affected ----

EXPECTED = {
    "lib/core/registry.c": ["all", "suite house", "suite unit", "suite tools"],
    "lib/comm/mpi/messages.c": ["all", "suite house", "suite mpi"],
    "tests/unit/test_text.c": ["build tests/unit/unit-test_text", "suite house", "test test_text"],
    "tests/golden/report-gpu.txt": ["all", "suite house", "suite unit"],
    "tests/house/rooms.py": ["all", "suite house", "suite proof"],
    "tests/tally.py": ["all", "suite house", "suite proof"],
    "dev": ["all", "suite house", "suite proof"],
    "docs/guide.md": ["suite house", "page docs/guide.md"],
}


# What the blocks of a page may call is built before they are run; and no test beside that.
CALLED = {"build tools/pk", "build examples/steps", "build tests/tools/tools-run_trace"}


def affected(source, build):
    wrong = 0
    for file, expected in EXPECTED.items():
        said = subprocess.run([sys.executable, "-B", os.path.join(source, "tests/affected.py"), source, build, file],
                              check=True, capture_output=True, text=True).stdout.splitlines()
        if file.endswith(".md"):
            called = [line for line in said if line.startswith("build ")]
            said = [line for line in said if line not in called]
            if not CALLED <= set(called) or [line for line in called if line.startswith("build tests/unit/")]:
                wrong += 1
                print(f"{file}: builds {called}")
        if said != expected or not os.path.exists(os.path.join(source, file)):
            wrong += 1
            print(f"{file}: {said}, not {expected}")
    return wrong > 0


# ---- test ----

# FILE - fails as many times as FILE.fails says. FILE has a line for each time that it ran.
SCRIPT = """
read -r fails <"$1.fails"; runs=$(wc -l <"$1")
echo run >>"$1"
for i in $(seq 300); do echo "line $i"; done
[ "$runs" -ge "$fails" ] && exit 0
echo 'this is why' >&2
exit 3
"""
# The end of ./dev test, with a configuration that is built.
DEV = """
. "$0" help >/dev/null
need() { :; }
cached() { :; }
charts() { :; }
add_locale() { :; }
build_all() { touch build/check/gcc.said; echo 0 >build/check/gcc.status; }
test_them gcc
"""
# The beginning of ./dev test: as far as it looks what it needs.
BEGIN = """
. "$0" help >/dev/null
need() { echo "it begins"; exit 0; }
test_them "$@"
"""


def says(script, *arguments):
    answer = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "tests", script), *arguments], check=True,
                            capture_output=True, text=True)
    return answer.stdout.splitlines()


class Luck(unittest.TestCase):
    NAMES = ("good", "luck", "bad", "other", "a", "b", "c", "d")

    @classmethod
    def setUpClass(cls):
        """Tests of these names in the suite some, which fail as often as prepare says; and good ones in the suite other."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.build = folder.name, os.path.join(folder.name, "build/check/gcc")
        script = os.path.join(folder.name, "script.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        with open(os.path.join(folder.name, "meson.build"), "w", encoding="utf-8") as file:
            file.write("project('perfkit')\nsh = find_program('sh')\n")
            for name in cls.NAMES:
                for suite in ("some", "other"):
                    state = os.path.join(folder.name, f"{suite}-{name}")
                    file.write(f"test('{name} [it]', sh, suite: '{suite}', args: ['{script}', '{state}'])\n")
        for name in ("dev", "tests", "examples"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(folder.name, name))
        subprocess.run([MESON, "setup", cls.build, folder.name], check=True, stdout=subprocess.DEVNULL)

    def prepare(self, **failures):
        """Nothing has run so far, and these tests will fail so many times."""
        for name in self.NAMES:
            for suite, most in (("some", failures.get(name, 0)), ("other", 0)):
                state = os.path.join(self.folder, f"{suite}-{name}")
                with open(state, "w", encoding="utf-8"):
                    pass
                with open(state + ".fails", "w", encoding="utf-8") as file:
                    file.write(f"{most}\n")

    def run_tests(self, **failures):
        """The logs of tests of these names, each of which fails so many times."""
        self.prepare(**failures)
        self.command = [MESON, "test", "-C", self.build, "--no-rebuild"]
        names = [f"{name} [it]" for name in failures]
        for log in glob.glob(os.path.join(self.build, "meson-logs", "*")):
            os.remove(log)
        subprocess.run([*self.command, "--logbase", "first", *names], check=False, stdout=subprocess.DEVNULL)
        return glob.glob(os.path.join(self.build, "meson-logs", "first*.json"))

    def again(self, logs):
        return says("tally.py", "first", *logs, "--", *self.command)

    def count_runs(self, state):
        with open(os.path.join(self.folder, state), encoding="utf-8") as file:
            return len(file.readlines())

    def test_all_is_well(self):
        logs = self.run_tests(good=0)
        self.assertEqual(says("tally.py", "first", *logs), ["2 0 0"])
        self.assertEqual(self.again(logs), ["0 0"])
        self.assertEqual(self.count_runs("some-good"), 1)

    def test_one_that_failed_once_is_unstable(self):
        logs = self.run_tests(good=0, luck=1)
        first = says("tally.py", "first", *logs)
        self.assertEqual((first[0], first[-1]), ("first: perfkit:some / luck [it]: FAIL, exit status 3", "3 1 0"))
        self.assertIn("    this is why", first)
        self.assertIn("    line 300", first)
        self.assertNotIn("    line 240", first)
        again = self.again(logs)
        self.assertEqual(again[-1], "1 0")
        self.assertRegex(again[0], r"^UNSTABLE first: perfkit:some / luck \[it\]: passed")
        self.assertLess({"    line 1", "    line 300", "    this is why"}, set(again))
        self.assertEqual([self.count_runs(state) for state in ("some-luck", "other-luck", "some-good")], [2, 1, 1])

    def test_one_that_fails_again_has_failed(self):
        logs = self.run_tests(bad=2, luck=1)
        again = self.again(logs)
        self.assertEqual(again[-1], "1 1")
        self.assertIn("first: perfkit:some / bad [it]: failed again, alone:", again)
        self.assertEqual(self.count_runs("some-bad"), 2)

    def test_more_than_three_have_failed(self):
        logs = self.run_tests(a=1, b=1, c=1, d=1)
        again = self.again(logs)
        self.assertEqual(again, ["first: 4 tests have failed, more than 3: none of them runs again", "0 4"])
        self.assertEqual(self.count_runs("some-a"), 1)

    def dev(self, **failures):
        """The end of what it says, and its exit status."""
        self.prepare(**failures)
        answer = subprocess.run(["bash", "-c", DEV, os.path.join(self.folder, "dev")], capture_output=True, text=True, check=False)
        self.assertEqual(answer.stderr, "")
        return answer.stdout.splitlines(), answer.returncode

    def test_dev_counts_what_is_unstable(self):
        lines, status = self.dev(luck=1, other=1)
        self.assertEqual((lines[-1], status), ("16 passed, 0 failed, 0 skipped, 2 unstable", 0))
        self.assertRegex(lines[-2], "^UNSTABLE: 2 tests")
        self.assertEqual(sum(line.startswith("UNSTABLE gcc: perfkit:some /") for line in lines), 2)

    def test_dev_counts_what_has_failed(self):
        lines, status = self.dev(bad=9)
        self.assertEqual((lines[-1], status), ("15 passed, 1 failed, 0 skipped, 0 unstable", 1))

    def begin(self, *words):
        answer = subprocess.run(["bash", "-c", BEGIN, os.path.join(self.folder, "dev"), *words], capture_output=True,
                                text=True, check=False)
        return answer.stdout, answer.stderr, answer.returncode

    def test_dev_knows_configurations_and_suites(self):
        for words in [], ["all"], ["unit"], ["gcc", "asan", "unit", "house"], ["parts", "notsan"]:
            self.assertEqual(self.begin(*words), ("it begins\n", "", 0))

    def test_dev_says_at_once_what_it_does_not_know(self):
        end = " (./dev help names them)\n"
        self.assertEqual(self.begin("bogus"), ("", "dev: test: neither a configuration nor a suite: bogus" + end, 2))
        self.assertEqual(self.begin("gcc", "a.b", "unit", "uni"),
                         ("", "dev: test: neither a configuration nor a suite: a.b uni" + end, 2))

    def test_what_cannot_run_again_has_failed(self):
        logs = self.run_tests(luck=1)
        self.command = ["false"]
        self.assertEqual(self.again(logs)[-1], "0 1")


def test(source, meson):
    global SOURCE, MESON
    SOURCE, MESON = source, meson
    luck = unittest.defaultTestLoader.loadTestsFromTestCase(Luck)
    return not unittest.TextTestRunner(stream=sys.stderr).run(luck).wasSuccessful()


if __name__ == "__main__":
    sys.exit({"suites": suites, "affected": affected, "test": test}[sys.argv[1]](*sys.argv[2:]))
