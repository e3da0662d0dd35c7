"""stacks.py PK LIBDW PROGRAM LIBRARY [STATIC] - functions that had the time, of programs whose shares are known.

PROGRAM is stacks_program.cpp; STATIC the same linked as static-pie. LIBDW is 1 if pk can name functions.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

from traces import InFolder

LIBDW = sys.argv[2] == "1"
PK, PROGRAM, LIBRARY, *STATIC = map(os.path.abspath, [sys.argv[1], *sys.argv[3:]])
HEAVY, LIGHT = "shares::worker::heavy(unsigned long)", "shares::worker::light()"
# By chance: of some 300 samples.
WITHIN = 0.12


def sampled():
    """Does the kernel give samples of one's own threads?"""
    try:
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            return int(file.read()) <= 2
    except OSError:
        return False


@unittest.skipUnless(sampled(), "the kernel gives no samples")
class Stacks(InFolder):
    def run_program(self, program, *arguments, **variables):
        environment = {**os.environ, "PK_SAMPLES": "199", "PK_REPORT_PATH": "run-%p.json", "PK_BACKENDS": "none", **variables}
        done = subprocess.run([program, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def reports(self):
        found = []
        for path in sorted(glob.glob(os.path.join(self.folder, "run-*.json"))):
            done = subprocess.run([PK, "report", "--json", path], capture_output=True, text=True, timeout=300, check=True)
            found.append(json.loads(done.stdout))
        return found

    def outside(self, report):
        if "outside" not in report:
            self.skipTest("no samples")
        return report["outside"]

    def shares(self, report):
        outside, found = self.outside(report), {}
        for row in outside["functions"]:
            name = row["function"] if row["place"] != "(kernel)" else row["caller"]
            found[name] = found.get(name, 0) + row["ns"] / outside["outside"]
        return found

    def check_shares(self, report, heavy=HEAVY):
        """Three parts and one outside of regions, one in one."""
        outside = self.outside(report)
        self.assertAlmostEqual(outside["outside"] / outside["sampled"], 0.8, delta=WITHIN)
        if LIBDW:
            found = self.shares(report)
            self.assertAlmostEqual(found.get(heavy, 0), 0.75, delta=WITHIN, msg=found)
            self.assertAlmostEqual(found.get(LIGHT, 0), 0.25, delta=WITHIN, msg=found)

    def test_shares_and_callers(self):
        self.run_program(PROGRAM)
        report, = self.reports()
        self.check_shares(report)
        if LIBDW:
            row = next(row for row in report["outside"]["functions"] if row["function"] == HEAVY)
            self.assertIn("shares::run(", row["caller"])
        path, = glob.glob(os.path.join(self.folder, "run-*.json"))
        text = subprocess.run([PK, "report", path], capture_output=True, text=True, timeout=300, check=True).stdout
        self.assertIn("OUTSIDE REGIONS: ", text)

    def test_a_library_that_is_opened_meanwhile(self):
        self.run_program(PROGRAM, LIBRARY)
        self.check_shares(self.reports()[0], "loaded_heavy")

    def test_a_forked_child(self):
        # Its child ends with perfkit's thread, which LeakSanitizer cannot stop there.
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.run_program(PROGRAM, "fork", ASAN_OPTIONS=options)
        reports = self.reports()
        self.assertEqual(len(reports), 2)
        self.check_shares(max(reports, key=lambda report: report["run"]["cpu"]))

    def test_a_stripped_program(self):
        """Its name is all that is known."""
        if not shutil.which("strip"):
            self.skipTest("no strip")
        bare = os.path.join(self.folder, "bare")
        subprocess.run(["strip", "-o", bare, PROGRAM], check=True, timeout=60)
        self.run_program(bare)
        report, = self.reports()
        outside = self.outside(report)
        self.assertAlmostEqual(outside["outside"] / outside["sampled"], 0.8, delta=WITHIN)
        self.assertGreater(self.shares(report).get("bare", 0) if LIBDW else 1, 0.9)

    @unittest.skipUnless(STATIC, "no static-pie here")
    def test_static_pie(self):
        self.run_program(STATIC[0])
        self.check_shares(self.reports()[0])

    def test_a_slow_step(self):
        """What is inlined has a name, too."""
        self.run_program(PROGRAM, "slow", PK_SAMPLES="", PK_CAPTURE="slow=3", PK_CAPTURE_PATH="slow-%s.json")
        captures = [os.path.join(self.folder, f"slow-{first}.json") for first in range(45, 51)]
        path = next((path for path in captures if os.path.exists(path)), None)
        self.assertIsNotNone(path)
        done = subprocess.run([PK, "report", "--json", path], capture_output=True, text=True, timeout=300, check=True)
        beside = json.loads(done.stdout)["beside"]
        cause = next(cause for cause in beside["causes"] if cause["region"] == "work" and not cause["waits"])
        if not cause["samples"] or not LIBDW:
            self.skipTest("no samples, or no names")
        self.assertEqual((cause["function"], cause["caller"]), ("shares::hot(unsigned long)", HEAVY))
        self.assertGreater(cause["sampled"], 0.5 * cause["ns"])

    def test_code_that_is_made_meanwhile(self):
        """It is followed to who called it, and named by perf's map."""
        self.run_program(PROGRAM, "jit", PK_SAMPLES="", PK_CAPTURE="slow=3", PK_CAPTURE_PATH="slow-%s.json")
        for report in glob.glob(os.path.join(self.folder, "run-*.json")):  # its name has the process's number
            self.addCleanup(os.remove, "/tmp/perf-%s.map" % os.path.basename(report)[4:-5])
        found = {}
        for path in glob.glob(os.path.join(self.folder, "slow-*.json")):  # of a busy machine's slow steps as well
            with open(path, encoding="utf-8") as file:
                found[path] = [event["args"]["stack"] for event in json.load(file)["traceEvents"] if event.get("args", {}).get("stack")]
        if not any(found.values()):
            self.skipTest("no samples")
        path, made = max(((path, [stack for stack in stacks if " 0+" in stack]) for path, stacks in found.items()), key=lambda of: len(of[1]))
        self.assertTrue(made)
        self.assertGreater(len(made[0].split(" 0+")[1].split()), 2)  # steps, main and what called that are behind it
        page = os.path.join(self.folder, "page.html")
        subprocess.run([PK, "report", "--html", page, path], capture_output=True, timeout=300, check=True)
        with open(page, encoding="utf-8") as file:
            self.assertIn("made::while_it_ran(int)", file.read())

    def test_none_on_request(self):
        self.run_program(PROGRAM, PK_SAMPLES="0", PK_HISTORY_STEPS="8")
        self.assertNotIn("outside", self.reports()[0])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
