"""machine.py PK NVML - pk machine: measures, keeps, shows, and refuses what is another machine's. Arrays are small and
rounds few: what is tested is what is said, not how fast this machine is."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PK, NVML = map(os.path.abspath, sys.argv[1:3])
QUICK = ("--rounds", "1", "--memory", "1")


class Machine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = {**os.environ, "HOME": folder.name, "LC_ALL": "C"}
        self.env.pop("XDG_CACHE_HOME", None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_pk(self, *arguments, code=0, **env):
        done = subprocess.run([PK, "machine", *arguments], capture_output=True, text=True, timeout=240, check=False,
                              env={**self.env, **env})
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr == "", code == 0, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def kept(self):
        found = [os.path.join(base, name) for base, _, names in os.walk(self.path(".cache")) for name in names]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_measured_kept_and_shown(self):
        said = self.run_pk(*QUICK)
        for word in ("host ", "cpu ", "load ", "copy ", "triad ", "double-", "single-", "STREAM", "kept in "):
            self.assertIn(word, said)
        self.assertIn("less than four times as much", said)  # arrays of a third of a MiB
        path = self.kept()
        self.assertIn(path, said)
        self.assertRegex(os.path.basename(path), r"^machine-.+\.txt$")
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], "perfkit machine 1")
        limits = {tuple(line.split()[1:3]): [int(n) for n in line.split()[3:]] for line in lines
                  if line.startswith("limit ")}
        for name in ("copy", "triad"):
            for who in ("one", "all"):
                best, median, worst, rounds = limits[name, who]
                self.assertTrue(best == median == worst > 0 and rounds == 1)
        self.assertTrue({"double", "single"} <= {name.split("-")[0] for name, _ in limits})
        shown = self.run_pk("--show")
        self.assertIn("triad", shown)
        self.assertNotIn("load ", shown)  # that was then

    def test_json(self):
        measured = json.loads(self.run_pk("--json", "-o", self.path("m"), *QUICK))
        self.assertTrue({"host", "cpu", "processors", "measured", "clock_hz", "load", "on_processor", "array_bytes",
                         "cache_bytes", "limits", "devices"} <= measured.keys())
        self.assertTrue(0 <= measured["on_processor"] <= 1.05)
        shown = json.loads(self.run_pk("--json", "--show", "-o", self.path("m")))
        self.assertEqual(shown["limits"], measured["limits"])
        self.assertFalse(os.path.exists(self.path(".cache")))

    def test_a_folder(self):
        os.mkdir(self.path("disk"))
        said = json.loads(self.run_pk("--json", "--folder", self.path("disk"), "--storage", "1", *QUICK))["storage"]
        self.assertEqual((said["folder"], said["bytes"], said["write"]["rounds"]), (self.path("disk"), 1 << 20, 5))
        self.assertEqual("read" in said, said["direct"])
        self.assertEqual(os.listdir(self.path("disk")), [])

    def test_a_folder_in_memory_is_not_read(self):
        if not os.path.isdir("/dev/shm"):
            self.skipTest("no /dev/shm")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            said = self.run_pk("--folder", folder, "--storage", "1", *QUICK)
        # Kernels from 6.6 on have O_DIRECT for memory files.
        self.assertTrue("reading was not measured" in re.sub(r"\s+", " ", said) or "(O_DIRECT)" in said)

    def test_another_machine_s_file(self):
        self.run_pk("-o", self.path("m"), *QUICK)
        with open(self.path("m"), encoding="ascii") as file:
            text = file.read()
        for name, changed, says in (("cpu", re.sub(r"(?m)^cpu .*", "cpu Z80", text), "Z80"),
                                    ("count", re.sub(r"(?m)^processors .*", "processors 4095", text), "4095"),
                                    ("cut", text[:-1], "cut off"), ("empty", "", "missing"),
                                    ("other", "{}", "cut off")):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(changed)
            said = self.run_pk("--show", "-o", self.path(name), code=2)
            self.assertIn(says, said)
            self.assertEqual(said.count("\n"), 1, said)

    def test_another_host_s_file_in_a_shared_home(self):
        self.run_pk(*QUICK)
        path = self.kept()
        with open(path, encoding="ascii") as file:
            text = file.read()
        with open(path, "w", encoding="ascii") as file:
            file.write(re.sub(r"(?m)^host .*", "host elsewhere", text))
        self.assertIn("elsewhere", self.run_pk("--show", code=2))
        self.assertIn("elsewhere", self.run_pk("--show", "-o", path))  # named: a machine like it

    def test_refused(self):
        for arguments, says in ((("--show",), "No such file"), (("x",), "takes no file"),
                                (("--rounds", "0"), "number"), (("--folder", "/nowhere"), "/nowhere"),
                                (("-o", self.folder, *QUICK), "directory")):
            self.assertIn(says, self.run_pk(*arguments, code=2))
        done = subprocess.run([PK, "machine", "--show"], capture_output=True, text=True, timeout=60, check=False, env={})
        self.assertEqual(done.returncode, 2)
        self.assertIn("-o FILE", done.stderr)

    # ---- the roofline of a trace ----

    LIMITS = ("perfkit machine 1\nhost node7\ncpu A processor of long ago\nprocessors 8\nmeasured 1795369527\n"
              "limit triad one 20000000000 1 1 1\nlimit triad all 100000000000 1 1 1\n"
              "limit double-x one 50000000000 1 1 1\nlimit double-x all 350000000000 1 1 1\n"
              "limit single-x one 100000000000 1 1 1\nlimit single-x all 700000000000 1 1 1\n")

    def trace(self, host):
        """C = A B with n = 1000 by two threads at once, half of it each in 50 ms: 40 Gflop/s together, of 2 x 50."""
        n = 1000
        halves = [{"ph": "X", "name": "matmul", "cat": "compute", "pid": 1, "tid": tid, "ts": 1000.0 + tid, "dur": 50000.0,
                   "args": {"bytes": 12 * n * n, "flops": n ** 3}} for tid in (1, 2)]
        with open(self.path("trace.json"), "w", encoding="ascii") as file:
            json.dump({"traceEvents": halves, "metadata": {"perfkit": "0.1.0", "host": host}}, file)

    def roofline(self, **env):
        done = subprocess.run([PK, "report", "--json", self.path("trace.json")], capture_output=True, text=True, timeout=60,
                              check=True, env={**self.env, **env})
        return json.loads(done.stdout).get("roofline")

    def test_a_trace_beside_its_machine(self):
        folder = self.path(".cache/perfkit")
        os.makedirs(folder)
        with open(os.path.join(folder, "machine-node7.txt"), "w", encoding="ascii") as file:
            file.write(self.LIMITS)
        self.trace("node7")
        found = self.roofline()
        matmul = found["regions"][0]
        self.assertEqual((found["host"], found["double_one"], matmul["region"]), ("node7", 50e9, "matmul"))
        for member, value in (("threads", 2), ("intensity", 1000 / 12), ("flops_per_second", 40e9), ("of_double", 0.4),
                              ("of_single", 0.2)):
            self.assertAlmostEqual(matmul[member] / value, 1, delta=1e-6, msg=member)
        self.assertFalse(matmul["memory_bound_double"])
        self.assertIsNone(self.roofline(PK_MACHINE_PATH="none"))
        text = subprocess.run([PK, "report", self.path("trace.json")], capture_output=True, text=True, timeout=60, check=True,
                              env=self.env).stdout
        self.assertIn("ROOFLINE", text)
        self.trace("node8")  # another host has no file here
        self.assertIsNone(self.roofline())
        self.assertIsNotNone(self.roofline(PK_MACHINE_PATH=os.path.join(folder, "machine-node7.txt")))  # it is named

    def test_devices_come_from_a_table(self):
        nothing = "/nowhere/libnvml.so"
        measured = self.run_pk("-o", self.path("m"), *QUICK, PK_NVML_LIBRARY=nothing)
        self.assertNotIn("device 0", measured)
        said = self.run_pk("--show", "-o", self.path("m"), PK_NVML_LIBRARY=NVML)
        self.assertRegex(said, r"device 0  NVIDIA H100 80GB HBM3\n.*table, not measured \(.*data sheet, dense\): 3\.35 TB/s")
        self.assertIn("device 1  Nobody's: not in the table", said)
        devices = json.loads(self.run_pk("--json", "--show", "-o", self.path("m"), PK_NVML_LIBRARY=NVML))["devices"]
        self.assertEqual([(d["name"], d["in_table"]) for d in devices],
                         [("NVIDIA H100 80GB HBM3", True), ("Nobody's", False)])
        self.assertEqual(devices[0]["bf16"], 989.5e12)
        with open(self.path("m"), encoding="ascii") as file:
            self.assertNotIn("H100", file.read())  # what was measured, no more


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
