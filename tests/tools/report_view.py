"""report_view.py PK GOLDEN_FOLDER - what of a run `pk report` shows: threads, names, a choice of them, another run
beside it, one of several processes."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unittest

import traces
from folder import InFolder

PK, GOLDEN = sys.argv[1], sys.argv[2]
LONG = "CalcHourglassControlForElems and a name that goes on for long"


def run(*arguments):
    return subprocess.run([PK, "report", *arguments], capture_output=True, timeout=300, check=False, text=True)


class View(InFolder):
    def file(self, text, name="file.json"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def report(self, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, *arguments, says):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(says, done.stderr)

    def with_report(self, **changes):
        """A trace with a report in it that knows nothing of the threads' regions."""
        report = json.loads(self.report("--json", self.file(traces.trace())))
        for thread in report["threads"]:
            thread.pop("regions", None)
        report.update(changes)
        return self.file(traces.trace(tail='\n],"perfkitReport":' + json.dumps(report) + "}\n"), "whole.json")

    # ---- threads ----

    def test_threads_of_a_trace_with_a_report(self):
        path = self.with_report()
        self.assertNotIn("loader 0 (4250)", self.report(path))
        text = self.report("--threads", path)
        self.assertRegex(text, r"\n  loader 0 \(4250\)\n  region .*\n  read file +data +200 ")
        self.assertRegex(text, r"\n  main \(4242\)\n  region .*\n  next batch +data +200 ")
        # All else is the report's own.
        self.assertTrue(text.replace(text[text.index("\n  main (4242)"):text.index("\nRECORDING")], "\n").startswith(
            self.report(path)[:400]))
        threads = json.loads(self.report("--json", "--threads", path))["threads"]
        self.assertEqual({t["name"]: sum(r["time"]["count"] for r in t["regions"]) for t in threads},
                         {t["name"]: t["recorded"] for t in threads})

    def test_threads_of_a_report_alone(self):
        report = self.file(self.report("--json", self.file(traces.trace())), "report.json")
        done = run("--threads", report)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no regions by thread", done.stderr)

    # ---- names ----

    def long_names(self):
        many = {"format": "perfkit report", "schema": 1,
                "regions": [{"name": n, "kind": "compute", "self": 50} for n in (LONG, "short")]}
        return self.file(json.dumps(many), "long.json")

    def test_cut_names_keep_what_differs(self):
        """Four layers whose names begin and end alike were four times the same row."""
        layers = [f"backward.transformer.layer[{i}].attention.matmul_backward" for i in (3, 4, 11, 111)]
        path = self.file(json.dumps({"format": "perfkit report", "schema": 1, "regions": [
            {"name": n, "kind": "compute", "self": 50} for n in (*layers, "forward")]}), "layers.json")
        text = self.report(path)
        rows = re.findall(r"^  (backw\S* *)comp ", text, re.MULTILINE)
        self.assertEqual([re.findall(r"\d+", row) for row in rows], [["3"], ["4"], ["11"], ["111"]], text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_width(self):
        path = self.long_names()
        narrow = self.report(path)
        self.assertNotIn(LONG, narrow)
        self.assertLessEqual(max(map(len, narrow.splitlines())), 80)
        self.assertEqual(self.report("--width", "80", path), narrow)
        wide = self.report("--width=200", path)
        self.assertIn(f"\n  {LONG} comp ", wide)
        self.assertRegex(wide, f"\n  short {{{len(LONG) - 5}}} comp ")  # no wider than the names are
        self.assertLessEqual(max(map(len, self.report("--width", "100", path).splitlines())), 100)
        for number in ("79", "x", "", "-1"):
            self.refused("--width", number, path, says="--width takes a number from 80 on")

    def test_width_of_the_terminal(self):
        for columns, whole in ((200, True), (80, False), (20, False)):
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            done = subprocess.run([PK, "report", self.long_names()], stdout=theirs, timeout=60, check=False)
            os.close(theirs)
            said = b""
            try:
                while chunk := os.read(ours, 65536):
                    said += chunk
            except OSError:  # nobody has it open any more
                pass
            os.close(ours)
            self.assertEqual((done.returncode, LONG in said.decode()), (0, whole))

    def test_filter(self):
        path = self.file(traces.trace())
        text = self.report("--filter", "^(next|read)", path)
        regions = re.search(r"REGIONS.*?\n\n", text, re.DOTALL).group()
        self.assertEqual(len(regions.strip().splitlines()) - 2 - regions.count(" at "), 2)
        whole = re.search(r"\n  next batch .*\n", self.report(path)).group()
        self.assertIn(whole, text)  # with the same shares
        self.assertIn("none of ", self.report("--filter=^nothing$", path))
        self.refused("--filter", "(", path, says='--filter "("')
        self.refused("--filter", path, says="needs a file")
        self.refused("--json", "--filter", "x", path, says="--filter is for the text")

    # ---- another run ----

    def test_another_run(self):
        report = json.loads(self.report("--json", self.file(traces.trace())))
        other = json.loads(json.dumps(report))
        for region in other["regions"]:
            if region["name"] == "next batch":
                region["time"]["p50"] /= 2
                region["self"] //= 2
                region["step_self"] = {k: v / 2 if k == "mean" else v for k, v in region.get("step_self", {}).items()}
        other["regions"] = [r for r in other["regions"] if r["name"] != "read file"]
        other["steps"]["steady"]["p50"] /= 2
        mine, old = self.file(json.dumps(report), "new.json"), self.file(json.dumps(other), "old.json")
        text = self.report("--against", old, mine)
        self.assertTrue(text.startswith(f"BESIDE {old}\n"))
        self.assertRegex(text, r"\n  step, median .*\+100\.0 %\n")
        self.assertRegex(text, r"\n  step, p95 .*\+0\.0 %\n")
        self.assertRegex(text, r"\n  next batch .*\+100\.0 % ")
        self.assertRegex(text, r"\n  read file .* - .* - +- +cannot tell\n")
        rows = text.split("\nREGIONS")[1].splitlines()[2:]
        self.assertTrue(rows[0].startswith(("  next batch", "  read file")))
        self.assertNotIn("next batch", self.report("--against", old, "--filter", "read", mine))
        same = self.report("--against", mine, mine)
        self.assertEqual(set(re.findall(r"\n  .{21} +[^ ]+ [^ ]+ +[^ ]+ [^ ]+ +([-+][0-9.]+ %)", same)), {"+0.0 %"})
        self.refused("--json", "--against", old, mine, says="--against or --json?")
        self.refused("--against", "/nowhere.json", mine, says="/nowhere.json: No such file")

    # ---- several processes ----

    def joined(self, pids):
        """As the recipe of earlier guides did: all events in one file, and nothing else."""
        events = []
        for i, pid in enumerate(pids):
            named = {"ph": "M", "cat": "__metadata", "name": "process_name", "pid": pid, "tid": pid, "ts": 0, "args": {"name": "train"}}
            more = [dict(json.loads(e), pid=pid) for e in traces.events()]
            for e in more:
                e["ts"] += 1000.0 * i
                for at, key in ((e, "tid"), (e.get("args", {}), "thread")):
                    if at.get(key) == traces.PID:
                        at[key] = pid
            events += [named, *more]
        return {"displayTimeUnit": "ns", "traceEvents": events}

    def test_one_of_several_processes(self):
        alone = json.loads(self.report("--json", self.file(json.dumps(self.joined([10])))))
        both = self.joined([10, 20])
        lines = '{"traceEvents":[\n' + ",\n".join(json.dumps(e) for e in both["traceEvents"]) + "\n]}\n"
        for text in (json.dumps(both), lines):
            report = json.loads(self.report("--json", self.file(text)))
            for part in ("steps", "regions", "threads", "counters"):
                self.assertEqual(report[part], alone[part], part)
            said, = (v["text"] for v in report["verdicts"] if v["name"] == "rebuilt")
            self.assertIn("several processes", said)
        said, = (v["text"] for v in alone["verdicts"] if v["name"] == "rebuilt")
        self.assertNotIn("processes", said)

    def test_processes_of_one_pid(self):
        report = json.loads(self.report("--json", self.file(json.dumps(self.joined([1, 1])))))
        said, = (v["text"] for v in report["verdicts"] if v["name"] == "rebuilt")
        self.assertIn("several processes of one pid", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
