"""causes.py PK - pk report: of captures, what made a step slow, by what was recorded of its thread."""

import json
import os
import sys
import unittest

from traces import PID, us, MS, InStates, brief, capture, loop


class Causes(InStates):
    pk = os.path.abspath(sys.argv[1])

    def causes(self, *states):
        _, beside, text = self.with_states(*states)
        self.assertAlmostEqual(sum(c["ns"] for c in beside["causes"]) + beside["unexplained"], beside["took"] - beside["usual"], delta=1)
        return beside["causes"], text

    def test_without_any_record_it_is_longer_and_no_more(self):
        causes, _ = self.causes()
        self.assertEqual([(c["cause"], c["region"], c["ns"]) for c in causes], [("longer", "load", 41 * MS)])

    def test_a_lock_and_who_holds_it(self):
        causes, text = self.causes(("blocked", MS, 42 * MS, {}),
                                   ("lock", 20 * MS, 41 * MS, {"call": "futex", "by": "janitor", "by_region": "compact"}))
        first = causes[0]
        self.assertEqual((first["cause"], first["waits"], first["outside"], first["region"], first["ns"]),
                         ("lock", True, False, "load", 41 * MS))
        self.assertEqual((first["by"], first["by_region"], len(causes)), ("janitor", "compact", 1))
        self.assertIn("load +41.0 ms (41.0 ms of it waiting for a lock: janitor held it in compact); all else", text)

    def test_two_waits_share_what_a_path_waited(self):
        """What was not seen of a path's waits was as what was."""
        causes, _ = self.causes(("blocked", MS, 21 * MS, {}), ("read", 5 * MS, 6 * MS, {"call": "pread64", "object": "/data/a"}),
                                ("blocked", 22 * MS, 32 * MS, {}), ("sync", 25 * MS, 31 * MS, {"call": "fsync", "object": "/data/b"}),
                                ("blocked", 33 * MS, 36 * MS, {}))
        self.assertEqual([(c["cause"], c["object"], round(c["ns"] / MS)) for c in causes],
                         [("read", "/data/a", 22), ("sync", "/data/b", 11), ("compute", "", 8)])

    def test_short_waits_are_placed_as_one(self):
        causes, _ = self.causes(("blocked", 2 * MS, 7 * MS, {"off_ns": 4 * MS}), ("blocked", 8 * MS, 42 * MS, {}),
                                ("pipe", 20 * MS, 21 * MS, {"call": "write"}))
        self.assertEqual([(c["cause"], round(c["ns"] / MS)) for c in causes], [("pipe", 38), ("compute", 3)])

    def test_who_had_the_processor(self):
        ready = ("no processor", MS, 41 * MS, {})
        busy = {"by": "stress (pid 4711)", "ran_ns": 30 * MS, "ready_ns": 35 * MS}
        causes, text = self.causes(ready, ("neighbour", 5 * MS, 43 * MS, busy))
        self.assertEqual([(c["cause"], c["outside"], c["by"]) for c in causes][0], ("no-processor", True, "stress (pid 4711)"))
        self.assertIn("though its thread could have run: stress (pid 4711) had it, for the most part.", text)
        causes, _ = self.causes(ready, ("neighbour", 5 * MS, 43 * MS, busy | {"ran_ns": 10 * MS}))
        self.assertEqual(causes[0]["by"], "")
        causes, text = self.causes(ready, ("neighbour", 5 * MS, 43 * MS, busy), ("quota", -200 * MS, 60 * MS, {"off_ns": 39 * MS}))
        self.assertEqual(causes[0]["by"], "its cgroup's quota")
        self.assertIn("could have run: its cgroup's quota was used up.", text)

    def test_little_without_a_processor_does_not_lead(self):
        ready, read = ("no processor", MS, 4 * MS, {}), ("blocked", 5 * MS, 42 * MS, {})
        causes, _ = self.causes(ready, read, ("read", 6 * MS, 40 * MS, {"call": "pread64"}))
        self.assertEqual([(c["cause"], c["outside"]) for c in causes][:2], [("read", False), ("no-processor", True)])

    def test_its_own_threads_are_not_outside(self):
        own = {"by": "other threads of its own", "ran_ns": 30 * MS, "ready_ns": 35 * MS}
        causes, _ = self.causes(("no processor", 21 * MS, 42 * MS, {}), ("neighbour", 5 * MS, 43 * MS, own))
        self.assertEqual([(c["cause"], c["outside"], c["region"]) for c in causes][0], ("no-processor", False, ""))

    def samples(self, count, at, since=2 * MS):
        return [(at.rsplit("/", 1)[-1], since + n * MS, since + n * MS, {"at": at}) for n in range(count)]

    def test_where_its_processor_was(self):
        """Without the file that it was, by the file's name."""
        causes, text = self.causes(*self.samples(20, "/nowhere/libbusy.so+0x1234"), *self.samples(10, "/nowhere/other.so+0x1", 25 * MS))
        self.assertEqual([(c["cause"], c["function"], c["region"]) for c in causes], [("compute", "libbusy.so", "load")])
        self.assertIn("load +41.0 ms (in libbusy.so for the most part); all else", text)
        causes, _ = self.causes(*self.samples(4, "/nowhere/libbusy.so+0x1234"))
        self.assertEqual(causes[0]["function"], "")  # too few

    def stacks(self, count, stack, since=2 * MS, apart=MS):
        return [("busy", since + n * apart, since + n * apart, {"stack": stack, "ns": MS}) for n in range(count)]

    def test_what_has_more_samples_than_usual(self):
        """Files may come behind what is in them; of all that calls it, who calls it most."""
        files = [("code file", MS, 2 * MS, {"file": n, "path": f"/nowhere/{name}", "build": ""}) for n, name in ((1, "train"), (10, "libbusy.so"))]
        slow = self.stacks(30, "a+100 1+50") + self.stacks(5, "a+100 a+70 a+60", 33 * MS)
        few = self.stacks(2, "1+80 1+50", -12_600_000, MS // 5)
        causes, text = self.causes(*slow, *few, *files)
        first = causes[0]
        self.assertEqual((first["function"], first["caller"], first["samples"], first["usual_samples"]), ("libbusy.so", "train", 35, 2))
        self.assertEqual((first["sampled"], first["sampled_usual"]), (35 * MS, 0))
        self.assertIn("load +41.0 ms (35.0 ms more in libbusy.so <- train; of usual steps there are too few samples); all else", text)
        causes, text = self.causes(*slow, *self.stacks(6, "1+80 1+50", -12_600_000, MS // 5), *files)
        self.assertIn("(35.0 ms more in libbusy.so <- train, which usual steps do not have)", text)
        causes, text = self.causes(*slow, *self.stacks(6, "a+80 1+50", -12_600_000, MS // 5), *files)
        self.assertIn("(33.0 ms more in libbusy.so <- train, usually 2.00 ms)", text)
        usual = [e for step in (1, 2, 3) for e in self.stacks(30, "a+80", 100_000 - step * 12_700_000, MS // 40)]
        causes, _ = self.causes(*self.stacks(35, "a+100"), *usual, *files)
        self.assertEqual(causes[0]["function"], "")  # usual steps have as much of it

    def test_functions_of_python(self):
        """Which of the interpreter's many functions its processor was in says little."""
        path = f"/tmp/perf-{PID}.map"
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.writelines([f"{4096 + 16 * n:x} 10 eval_{n}\n" for n in range(10)] + ["7000 b py::hot:train.py\n", "8000 b py::step:train.py\n"])
        except FileExistsError:
            self.skipTest(f"{path} is somebody else's")
        self.addCleanup(os.remove, path)
        slow = [e for n in range(10) for e in self.stacks(3, f"0+{4100 + 16 * n:x} 0+7005 0+1001 0+7005 0+1001 0+8005", (2 + 3 * n) * MS)]
        causes, text = self.causes(*slow)
        self.assertEqual((causes[0]["function"], causes[0]["caller"]), ("py::hot:train.py", "py::step:train.py"))
        self.assertIn("load +41.0 ms (in py::hot:train.py <- py::step:train.py for the most part)", text)
        causes, _ = self.causes(*self.stacks(30, "0+1004 0+7005 0+8005"))
        self.assertEqual((causes[0]["function"], causes[0]["caller"]), ("eval_0", "py::hot:train.py"))

    def test_in_the_kernel(self):
        kernel = self.samples(30, "(kernel)")
        causes, text = self.causes(*kernel)
        self.assertEqual((causes[0]["cause"], causes[0]["function"]), ("compute", "(kernel)"))
        self.assertIn("(in the kernel for the most part)", text)
        causes, text = self.causes(*kernel, ("page faults", 5 * MS, 40 * MS, {"count": 5000}))
        self.assertEqual((causes[0]["cause"], causes[0]["now"]), ("page-faults", 5000))
        self.assertIn("(in the kernel, for 5.00K page faults)", text)
        causes, _ = self.causes(*kernel, ("page faults", 5 * MS, 40 * MS, {"count": 12}))
        self.assertEqual(causes[0]["cause"], "compute")
        causes, _ = self.causes(*kernel[:15], *self.samples(20, "/nowhere/busy+0x12", 20 * MS), ("page faults", 0, MS, {"count": 5000}))
        self.assertEqual((causes[0]["cause"], causes[0]["function"]), ("page-faults", "busy"))
        for state, cause, words in (("pages moved between nodes", "numa", "which moved 6.00K pages between NUMA nodes"),
                                    ("pages looked at to compact memory", "compute", "(in the kernel for the most part)"),
                                    ("huge pages split", "huge-pages", "which compacted memory or split huge pages")):
            causes, text = self.causes(*kernel, (state, 5 * MS, 40 * MS, {"count": 6000}))
            self.assertEqual(causes[0]["cause"], cause)
            self.assertIn(words, text)
        causes, _ = self.causes(*kernel, ("major page faults", 5 * MS, 40 * MS, {"count": 900}))
        self.assertEqual(causes[0]["cause"], "memory")
        pressure = ("memory pressure", 5 * MS, 40 * MS, {"off_ns": 30 * MS})  # of the machine: somebody else's, it may be
        causes, _ = self.causes(*kernel, pressure)
        self.assertEqual(causes[0]["cause"], "compute")
        causes, _ = self.causes(*kernel, pressure, ("major page faults", 5 * MS, 40 * MS, {"count": 2}))
        self.assertEqual(causes[0]["cause"], "memory")

    def test_a_region_that_is_called_as_states_are(self):
        events, rows = loop([2 * MS, 2 * MS, 2 * MS, 43 * MS])
        for row in rows:
            for n, name in enumerate(("(sample: ", "(blocked: x)", "(no processor)")):
                events.append(f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":{PID},"tid":{PID},"ts":{us(row["start_ns"] + 1000 * n)},'
                              '"dur":0.500,"args":{}}')
        beside = json.loads(self.report("--json", self.file(capture(events, rows))))["beside"]
        self.assertIn("load > (sample: ", [row["path"] for row in beside["paths"]])
        self.assertEqual(sum(row["self"] for row in beside["paths"] if not row["where"]), beside["took"])

    def test_short_waits_between_looks_are_as_those_seen(self):
        waits = [("blocked", (2 + n) * MS, (3 + n) * MS, {}) for n in range(0, 40, 2)]
        causes, _ = self.causes(*waits, ("sync", 12 * MS, 12 * MS + 1000, {"call": "fsync"}))
        self.assertEqual([(c["cause"], round(c["ns"] / MS)) for c in causes], [("compute", 21), ("sync", 20)])

    REFUSED = {"call": "perf_event_open", "object": "Operation not permitted"}

    def test_without_records_its_account_says(self):
        """How long, and looks what for; a stop is none of it."""
        account = {"ran_ns": 14_700_000, "ready_ns": 5 * MS, "kernel_ns": 0}
        causes, text = self.causes(("processor time", 0, 53_700_000, account), ("not told", 0, 53_700_000, self.REFUSED),
                                   ("socket", 3 * MS, 42 * MS, {"off_ns": 34 * MS, "call": "poll"}))
        self.assertEqual([(c["cause"], c["outside"], round(c["ns"] / MS)) for c in causes],
                         [("no-processor", True, 5), ("socket", False, 34), ("compute", False, 2)])
        self.assertIn("The kernel gave no records of switches and no samples (perf_event_open: Operation not permitted): how long", text)
        causes, _ = self.causes(("stopped", 10 * MS, 40 * MS, {}), ("processor time", 0, 53_700_000, account | {"ready_ns": 0}),
                                ("socket", 3 * MS, 42 * MS, {"off_ns": 34 * MS, "call": "poll"}))
        self.assertEqual([(c["cause"], round(c["ns"] / MS)) for c in causes], [("stopped", 30), ("socket", 7), ("compute", 4)])
        causes, _ = self.causes(("processor time", 0, 53_700_000, account | {"ready_ns": 0, "kernel_ns": 30 * MS}),
                                ("page faults", 0, 9 * MS, {"count": 5000}))
        self.assertEqual((causes[0]["cause"], causes[0]["now"]), ("page-faults", 5000))
        first = next(fields for key, fields in brief(self.report("--brief", os.path.join(self.folder, "capture.json"))) if key == "cause")
        self.assertEqual((first["cause"], first["now"], first["of"]), ("page-faults", "5000", "page faults"))

    def test_what_the_kernel_does_not_say(self):
        _, text = self.causes(("not told", 0, 9 * MS, {"call": "/proc", "object": "Permission denied"}),
                              ("not told", 0, 9 * MS, {"call": "/sys/fs/cgroup", "object": "No such file or directory"}))
        self.assertIn("/proc cannot be read (Permission denied): what the thread waited for, and who had its processor, is not known. "
                      "/sys/fs/cgroup cannot be read (No such file or directory): whether a quota", text)
        _, text = self.causes(("not told", 0, 9 * MS, {"call": "looks", "object": "overhead_max"}))
        self.assertIn("not looked at while it was late, for what that takes (overhead_max)", text)
        _, text = self.causes(("not told", 60 * MS, 70 * MS, self.REFUSED))  # of another step
        self.assertNotIn("perf_event_open", text)

    def test_what_usual_steps_had_longer(self):
        usual = [("no processor", start + MS // 2, start + MS, {}) for start in (-12_700_000, -25_400_000, -38_100_000)]
        causes, _ = self.causes(*usual, ("blocked", MS, 42 * MS, {}), ("lock", 20 * MS, 41 * MS, {"call": "futex"}))
        self.assertEqual([(c["cause"], c["ns"]) for c in causes][-1], ("less", -500_000))
        self.assertAlmostEqual(sum(c["ns"] for c in causes), 41 * MS, delta=1)

    def test_a_lower_clock(self):
        """As many cycles take longer; what is more than that is the program's."""
        lower = {"khz": 1500000, "usual_khz": 3000000}
        causes, text = self.causes(("lower clock", 5 * MS, 40 * MS, lower | {"by": "heat"}))
        self.assertEqual([(c["cause"], c["outside"], c["region"], c["ns"]) for c in causes],
                         [("lower-clock", True, "", 21_500_000), ("longer", False, "load", 19_500_000)])
        self.assertEqual((causes[0]["now"], causes[0]["usual"], causes[0]["object"], causes[0]["by"]), (1.5e9, 3e9, "Hz", "heat"))
        self.assertIn("Its processor went at 1.50 GHz, usually at 3.00 GHz (held down for heat): for that, the same work took 21.5 ms longer.",
                      text)
        first = next(fields for key, fields in brief(self.report("--brief", os.path.join(self.folder, "capture.json"))) if key == "cause")
        self.assertEqual((first["now"], first["of"], first.get("object")), ("1.5e+09", "Hz", None))
        causes, _ = self.causes(("lower clock", 5 * MS, 40 * MS, {"khz": 100000, "usual_khz": 3000000}))
        self.assertEqual([(c["cause"], c["ns"]) for c in causes], [("lower-clock", 41 * MS)])
        waits = ("blocked", MS, 42 * MS, {})  # what waited did not work slower
        causes, _ = self.causes(("lower clock", 5 * MS, 40 * MS, lower), waits)
        self.assertEqual([(c["cause"], c["ns"]) for c in causes], [("wait", 41 * MS)])

    def test_the_machine_was_suspended(self):
        """At some moment between two looks, and no step ends while it sleeps; the region around it is not to blame."""
        for start, end in ((-30 * MS, 41 * MS), (3 * MS, 74 * MS), (2 * MS, 41 * MS)):
            causes, text = self.causes(("suspended", start, end, {"off_ns": 38 * MS}))
            self.assertEqual([(c["cause"], c["outside"], c["ns"]) for c in causes][0], ("suspended", True, 38 * MS))
            self.assertEqual([(c["cause"], c["region"], c["ns"]) for c in causes][1:], [("longer", "load", 3 * MS)])
            self.assertIn("The machine was suspended for 38.0 ms of the 53.7 ms. What the program itself did took 15.7 ms, usually 12.7 ms.", text)
            self.assertIn("(suspended) +38.0 ms; all else +3.00 ms.", text)
        causes, text = self.causes(("not told", 0, 9 * MS, {"call": "suspended", "object": "3600 s"}))
        self.assertIn("suspended in it or right beside it, for 3600 s, which its clock does not count: nothing here has that.", text)

    def test_outside_comes_first(self):
        causes, _ = self.causes(("stopped", 2 * MS, 12 * MS, {}), ("blocked", 13 * MS, 42 * MS, {}))
        self.assertEqual([(c["cause"], c["outside"]) for c in causes][:2], [("stopped", True), ("wait", False)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
