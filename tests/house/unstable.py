"""unstable.py SOURCE MESON - what `./dev test` makes of tests that fail, once or always (tests/tally.py, tests/again.py)."""

import glob
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = MESON = ""
# FILE TIMES - fails so many times. FILE has a line for each time that it ran.
SCRIPT = """
touch "$1"; runs=$(wc -l <"$1")
echo run >>"$1"
for i in $(seq 300); do echo "line $i"; done
[ "$runs" -ge "$2" ] && exit 0
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
test_all gcc
"""


def says(script, *arguments):
    answer = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "tests", script), *arguments], check=True,
                            capture_output=True, text=True)
    return answer.stdout.splitlines()


class Luck(unittest.TestCase):
    def run_tests(self, **failures):
        """Tests of these names, each of which fails so many times; and their logs."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = os.path.join(folder.name, "script.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        with open(os.path.join(folder.name, "meson.build"), "w", encoding="utf-8") as file:
            file.write("project('perfkit')\nsh = find_program('sh')\n")
            for name, times in failures.items():
                # of another suite there is one of the same name
                for suite, most in (("some", times), ("other", 0)):
                    state = os.path.join(folder.name, f"{suite}-{name}")
                    file.write(f"test('{name} [it]', sh, suite: '{suite}', args: ['{script}', '{state}', '{most}'])\n")
        self.folder, build = folder.name, os.path.join(folder.name, "build/check/gcc")
        subprocess.run([MESON, "setup", build, folder.name], check=True, stdout=subprocess.DEVNULL)
        self.command = [MESON, "test", "-C", build, "--no-rebuild"]
        subprocess.run([*self.command, "--logbase", "first"], check=False, stdout=subprocess.DEVNULL)
        return glob.glob(os.path.join(build, "meson-logs", "first*.json"))

    def again(self, logs):
        return says("again.py", "first", *logs, "--", *self.command)

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

    def dev(self):
        """The end of what it says, and its exit status."""
        for name in ("dev", "tests", "examples"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(self.folder, name))
        answer = subprocess.run(["bash", "-c", DEV, os.path.join(self.folder, "dev")], capture_output=True, text=True, check=False)
        self.assertEqual(answer.stderr, "")
        return answer.stdout.splitlines(), answer.returncode

    def test_dev_counts_what_is_unstable(self):
        self.run_tests(luck=1, other=2)
        os.remove(os.path.join(self.folder, "some-luck"))
        lines, status = self.dev()
        self.assertEqual((lines[-1], status), ("4 passed, 0 failed, 0 skipped, 2 unstable", 0))
        self.assertRegex(lines[-2], "^UNSTABLE: 2 tests")
        self.assertEqual(sum(line.startswith("UNSTABLE gcc: perfkit:some /") for line in lines), 2)

    def test_dev_counts_what_has_failed(self):
        self.run_tests(good=0, bad=9)
        lines, status = self.dev()
        self.assertEqual((lines[-1], status), ("3 passed, 1 failed, 0 skipped, 0 unstable", 1))

    def test_what_cannot_run_again_has_failed(self):
        logs = self.run_tests(luck=1)
        self.command = ["false"]
        self.assertEqual(self.again(logs)[-1], "0 1")


if __name__ == "__main__":
    SOURCE, MESON = sys.argv[1:3]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Luck)
    sys.exit(not unittest.TextTestRunner(stream=sys.stderr).run(suite).wasSuccessful())
