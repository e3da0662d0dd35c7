"""report.py CASE,... PK GOLDEN - pk report: of reports and traces of every form, in a terminal, and of slow steps."""

import fcntl
import gzip
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
from traces import LOADER, PID, us, MS, InFolder, InStates, capture, io_reading, loop

CASES = sys.argv[1].split(",")
PK, GOLDEN = sys.argv[2:4]


# ---- the command line of `pk report`, on good files and on bad ones ----


def run(*arguments, stdin=None, **more):
    return subprocess.run([PK, *arguments], input=stdin, capture_output=True, timeout=300, check=False, **more)


# Under a sanitizer each process takes ten times as long; there tests/fuzz cuts files in one process, and more of them.
FEWER = 8 if os.environ.get("PK_TEST_NO_LIMIT") else 1


class Report(InFolder):
    def file(self, text, name="file.json"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def report(self, *arguments, **more):
        done = run("report", *arguments, **more)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        return done.stdout.decode()

    def refused(self, *arguments, says, **more):
        done = run(*arguments, **more)
        said = done.stderr.decode()
        self.assertEqual(done.returncode, 2, said)
        self.assertEqual(done.stdout, b"")
        self.assertRegex(said, r"\Apk: [ -~]*\n\Z")  # one line, of characters that do nothing
        self.assertIn(says, said)

    def of_trace(self):
        return self.report(self.file(traces.trace(), "good.json"))

    # ---- events of calls beside another run's ----

    def test_events_beside_those_of_another_run(self):
        def run_of(name, ipc, error, **more):
            row = {"region": "work", "calls": 100, "sampled": 10, "time": 9000, "ipc": ipc, "ipc_error": error, "instructions": 3e6,
                   "instructions_error": 0, "cache_misses_per_1000": 4, "cache_misses_per_1000_error": -1,
                   "branch_misses_per_1000": -1, "processor_time": -1, **more}
            return self.file(json.dumps({"format": "perfkit report", "schema": 1, "events": {"asked": 1, "rows": [row]}}), name)
        first, near, far = run_of("first.json", 2, 0.03), run_of("near.json", 2.04, 0.03), run_of("far.json", 2.2, 0.04)
        none = self.file('{"format":"perfkit report","schema":1}', "none.json")
        self.assertRegex(self.report("--against", first, far), r"\n  work +IPC +2\.20 +1\.8 % +2 +1\.5 % +\+10\.0 %\n")
        text = self.report("--against", first, near)
        self.assertRegex(text, r"\n  work +IPC +2\.04 +1\.[45] % +2 +1\.5 % +-\n")
        self.assertRegex(text, r"\n +cache misses +4 +\? +4 +\? +-\n")
        self.assertRegex(text, r"\n +instructions +3\.00M +0 % +3\.00M +0 % +-\n")
        self.assertNotIn("branch", text)
        self.assertNotIn("retiring", text)  # of files that have no slots
        shares = {"slots": 4e6, "retiring": 0.5, "retiring_error": 0.01, "bad_speculation": 0.1, "bad_speculation_error": -1,
                  "frontend_bound": 0, "frontend_bound_error": 0, "backend_bound": 0.4, "backend_bound_error": 0.02}
        text = self.report("--against", run_of("slots.json", 2, 0.03, **shares), run_of("more.json", 2, 0.03, **{**shares, "retiring": 0.6}))
        self.assertRegex(text, r"\n +retiring +60\.0 % +1\.0 % +50\.0 % +1\.0 % +\+20\.0 %\n")
        self.assertRegex(text, r"\n +bad spec\. +10\.0 % +\? +10\.0 % +\? +-\n")
        self.assertRegex(text, r"\n +front-end +0 % +0 % +0 % +0 % +-\n")
        self.assertNotIn("EVENTS", self.report("--against", none, far) + self.report("--against", first, none))
        self.assertNotIn("EVENTS", self.report("--filter", "else", "--against", first, far))

    # ---- the command itself ----

    def test_help_and_version(self):
        for arguments in (["--help"], ["-h"], ["report", "--help"], ["report", "-h", "--nonsense"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, b""), arguments)
            self.assertTrue(done.stdout.startswith(b"usage: pk "))
            self.assertLessEqual(max(map(len, done.stdout.splitlines())), 90)
        self.assertRegex(run("--version").stdout.decode(), r"\Apk \(perfkit\) \d+\.\d+\.\d+\n\Z")

    def test_wrong_arguments(self):
        good = self.file(traces.trace())
        self.refused(says="no command")
        self.refused("frobnicate", says='"frobnicate"')
        self.refused("report", says="needs a file")
        self.refused("report", "--fast", good, says='"--fast"')
        self.refused("report", good, good, says="one file at a time")
        for number in ("x", "-1", "", "4294967296", "1x", " 1"):
            self.refused("report", "--top", number, good, says="--top")
        self.refused("report", good, "--top", says="--top")
        self.refused("report", "--", "--json", says="--json: No such file")

    def test_a_full_disk_is_noticed(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for arguments in (["report", self.file(traces.trace())], ["--help"]):
                done = subprocess.run([PK, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(b"could not be written", done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1)

    # ---- report files ----

    def test_a_report_file_comes_back_the_same(self):
        for name in ("report-train.json", "report-gpu.json", "report-comm.json"):
            path = os.path.join(GOLDEN, name)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(self.report("--json", path), file.read())

    def test_a_report_file_as_text(self):
        with open(os.path.join(GOLDEN, "report-gpu.txt"), encoding="utf-8") as file:
            self.assertEqual(self.report(os.path.join(GOLDEN, "report-gpu.json")), file.read())

    def test_the_part_about_communication_as_text(self):
        with open(os.path.join(GOLDEN, "report-comm.txt"), encoding="utf-8") as file:
            part = re.search("COMMUNICATION.*?\n(?=\nCOUNTERS)", file.read(), re.DOTALL).group()
        self.assertIn("\n" + part, self.report(os.path.join(GOLDEN, "report-comm.json")))

    def test_options(self):
        path = os.path.join(GOLDEN, "report-train.json")
        self.assertIn("... and 8 more", self.report("--top", "1", path))
        self.assertNotIn(" more\n", self.report("--top=0", path))
        self.assertNotIn("loader 0 (4250)", self.report(path))
        self.assertIn("loader 0 (4250)", self.report("--threads", path))

        many = {"format": "perfkit report", "schema": 1, "regions": [{"name": f"r{i}"} for i in range(40)]}
        path = self.file(json.dumps(many))
        self.assertIn("... and 15 more\n", self.report(path))
        self.assertNotIn(" more\n", self.report("--top", "0", path))
        self.assertNotIn(" more\n", self.report("--top", "40", path))

    def test_fields_unknown_and_missing(self):
        with open(os.path.join(GOLDEN, "report-train.json"), encoding="utf-8") as file:
            report = json.load(file)
        whole = self.report(self.file(json.dumps(report)))
        report["novelty"] = report["run"]["novelty"] = [1, {"a": None}]
        self.assertEqual(self.report(self.file(json.dumps(report))), whole)
        for key in list(report):
            if key not in ("format", "schema"):
                without = {k: v for k, v in report.items() if k != key}
                self.report(self.file(json.dumps(without)))
                self.report(self.file(json.dumps({**report, key: None})))

    def test_integers_that_others_have_written_as_reals(self):
        """Some tools' 6.5e10 is our 65000000000."""
        path = os.path.join(GOLDEN, "report-gpu.json")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        reals = json.dumps(json.loads(text, parse_int=lambda digits: int(digits) if abs(int(digits)) > 2 ** 53 else float(digits)))
        self.assertIn('"schema": 1.0', reals)
        self.assertEqual(self.report(self.file(reals)), self.report(path))
        self.refused("report", self.file(reals.replace('"pid": ', '"pid": 0.5, "was": ', 1)),
                     says='"pid" is not an integer from 0 on in its range')

    def test_what_was_not_finite_stays_so(self):
        report = {"format": "perfkit report", "schema": 1, "run": {"clock_hz": None}}
        back = json.loads(self.report("--json", self.file(json.dumps(report))))
        self.assertIsNone(back["run"]["clock_hz"])
        self.assertEqual(back["run"]["clock_ppm"], 0)

    def test_report_files_that_are_wrong(self):
        def wrong(says, **members):
            report = {"format": "perfkit report", "schema": 1, **members}
            self.refused("report", self.file(json.dumps(report)), says=says)

        wrong("newer pk", schema=2)
        wrong("schema", schema="1")
        wrong("schema", schema=None)
        wrong("schema", schema=-1)
        wrong("schema", schema=1.5)
        wrong('"run" is not an object', run=[])
        wrong('"regions" is not an array', regions={})
        wrong('"regions" is not an array of objects', regions=[{}, 7])
        wrong('"name" is not a string', regions=[{"name": 7}])
        wrong('"self" is not', regions=[{"name": "a", "self": -1}])
        wrong('"self" is not', regions=[{"name": "a", "self": 1e30}])
        wrong('"count" is not', regions=[{"name": "a", "time": {"count": 0.5}}])
        wrong('"sum" is not a number', regions=[{"name": "a", "time": {"sum": "1"}}])
        wrong('"pid" is not', run={"pid": 2**32})
        wrong('"complete" is not true or false', run={"complete": 1})
        wrong('"kinds" is not an object', steps={"kinds": 3})

        for histogram, says in (([[1, 2]], '"histogram"'), ([7], '"histogram"'), ([{}], '"histogram"'),
                                ([[1, 2, -1]], '"count"'), ([[1, 2, 0.5]], '"count"'), ([["1", 2, 3]], '"from"')):
            wrong(says + " is not", regions=[{"name": "a", "histogram": histogram}])
        wrong('"start" is not', counters=[{"name": "a", "series": [[-1, 1, 0, 0, 0]]}])
        wrong('"series" is not an array', gpus=[{"series": 7}])

    def test_pictures_that_a_later_version_makes_richer(self):
        report = {"format": "perfkit report", "schema": 1, "steps": {"histogram": [[1, None, 3, "more"]]},
                  "counters": [{"name": "c", "series": [[5, 1, None, 2, 3, 4]]}]}
        back = json.loads(self.report("--json", self.file(json.dumps(report))))
        self.assertEqual(back["steps"]["histogram"], [[1, None, 3]])
        self.assertEqual(back["counters"][0]["series"], [[5, 1, None, 2, 3]])

    def test_extreme_report_files(self):
        big, names = 2**63 - 1, ["", "\u0001\u009b[31m", "x" * 100000, "\U0001F680\u0301\u202e"]
        dist = {"count": big, "sum": 1e308, "min": -1e308, "max": 1e308, "mean": -1, "stddev": 1e-320}
        report = {"format": "perfkit report", "schema": 1,
                  "run": {"wall": big, "start_unix": big, "program": names[2], "clock_hz": -1e300},
                  "regions": [{"name": n, "kind": "dance", "self": big, "time": dist} for n in names],
                  "threads": [{"name": n, "kinds": {"data": big, "io": big}, "regions": [{"name": n}]} for n in names],
                  "counters": [{"name": n, "unit": n, "value": dist, "last": -1e-300} for n in names],
                  "verdicts": [{"name": n, "severity": n, "text": n} for n in names],
                  "steps": {"count": big, "warmup": big, "steady": dist, "kinds": {"data": big, "comm": big},
                            "broken_down": 1, "series": [{"steps": s % 2, "duration": big} for s in range(99)],
                            "slowest": [{"duration": big, "parts": [{"self": big, "usual": -1e308}]}]}}
        for arguments in ([], ["--threads", "--top", "0"], ["--json"]):
            text = self.report(*arguments, self.file(json.dumps(report)))
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]" if not arguments else "\x1b")

    # ---- traces ----

    def test_a_trace_is_made_into_a_report(self):
        text = self.of_trace()
        for pattern in (r"train, pid 4242 on node07, rank 3 of 8; 2026-11-20 \d\d:\d\d:\d\d UTC",
                        r"made from its trace events\n",
                        r"! input-bound: Getting input takes 7\d\.\d % of the step",
                        r"- rebuilt: ",
                        r"STEPS: 200, the first of them warm-up\n",
                        r"\n  data +7\d\.\d %  #{30}",
                        r"\n  attention\[seq=512\] +comp +400 .*\n +400 MFLOP at ",
                        r"\n  read file +data +200  4\.40s  4\.40s .*\n +200 MB at 45\.5 MB/s\n",
                        r"\n  loss +200 +0\.025 ",
                        r"\n  loader 0 +4250 +200 "):
            self.assertRegex(text, pattern)

    def test_self_times_are_exact(self):
        report = json.loads(self.report("--json", self.file(traces.trace())))
        spent = {r["name"]: r for r in report["regions"]}
        lines = [json.loads(e) for e in traces.events()]

        def total(name):
            return sum(round(e["dur"] * 1000) for e in lines if e["name"] == name)

        inside = total("mlp") + total("attention[seq=512]")
        self.assertEqual(spent["mlp"]["self"], total("mlp"))
        self.assertEqual(spent["forward"]["time"]["sum"], total("forward"))
        self.assertEqual(spent["forward"]["self"], total("forward") - inside)
        steps = report["steps"]
        self.assertEqual(steps["kinds"]["data"] + 0, spent["next batch"]["step_self"]["sum"])
        self.assertEqual(sum(steps["kinds"].values()), steps["steady"]["sum"])
        self.assertEqual(steps["kinds"]["untracked"], 199 * 200_000)

    def test_pictures_are_whole(self):
        report = json.loads(self.report("--json", self.file(traces.trace())))
        for region in report["regions"]:
            self.assertEqual(sum(count for _, _, count in region["histogram"]), region["time"]["count"])
            self.assertLessEqual(region["histogram"][0][0], region["time"]["min"])
            self.assertGreater(region["histogram"][-1][1], region["time"]["max"])
        steps = report["steps"]
        self.assertEqual(sum(count for _, _, count in steps["histogram"]), steps["steady"]["count"])
        self.assertEqual(min(s["shortest"] for s in steps["series"]), steps["all"]["min"])
        self.assertTrue(all(s["shortest"] <= s["median"] <= s["longest"] for s in steps["series"]))
        loss = next(c for c in report["counters"] if c["name"] == "loss")
        self.assertEqual(sum(samples for _, samples, *_ in loss["series"]), loss["value"]["count"])
        self.assertEqual(min(p[2] for p in loss["series"]), loss["value"]["min"])
        self.assertEqual(max(p[4] for p in loss["series"]), loss["value"]["max"])

    def test_the_same_from_any_form(self):
        wanted, text = self.of_trace(), traces.trace()
        document = json.loads(text)
        order = sorted(traces.events(), key=lambda e: (json.loads(e)["ts"], -json.loads(e).get("dur", 0)))
        forms = {
            "gz.json.gz": gzip.compress(text.encode()),
            "one-line.json": json.dumps(document),
            "laid-out.json": json.dumps(document, indent=2),
            "by-start.json": traces.trace(order),
            "dos.json": text.replace("\n", "\r\n"),
            "commas-first.json": text.replace(",\n{\"ph\"", "\n,{\"ph\""),
            "no-end-of-line.json": text.rstrip("\n"),
        }
        for name, content in forms.items():
            self.assertEqual(self.report(self.file(content, name)), wanted, name)
        self.assertEqual(self.report("-", stdin=text.encode()), wanted)

    def test_others_traces(self):
        array = "[\n" + ",\n".join(traces.events()) + "\n]\n"
        for text in (array, json.dumps(json.loads(array))):
            self.assertRegex(self.report(self.file(text)), r"STEPS: 200")
        torch = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 7, "tid": 7,
                  "ts": 1e15 + 1000 * i, "dur": 1000} for i in range(20)]
        torch += [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7,
                   "ts": 1e15 + 1000 * i + 100, "dur": 400} for i in range(20)]
        torch += [{"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": "stream 7", "ts": 1e15, "dur": 99},
                  {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "x",
                   "ts": 1e15, "dur": 20000}]
        text = self.report(self.file(json.dumps({"traceEvents": torch})))
        self.assertRegex(text, r"ran 20\.0 ms; ")
        self.assertRegex(text, r"other +40\.0 %")
        self.assertRegex(text, r"KERNELS.*\n.*\n  sgemm +- ")
        self.assertNotRegex(text.split("REGIONS by self")[1], "sgemm")  # no thread's time

    def test_the_report_inside_a_trace(self):
        with open(os.path.join(GOLDEN, "report-train.json"), encoding="utf-8") as file:
            report = file.read()
        wanted = self.report(os.path.join(GOLDEN, "report-train.json"))
        inside = report.replace("\n", "")
        text = traces.trace(tail="\n],\"perfkitReport\":" + inside + "}\n")
        self.assertEqual(self.report(self.file(text)), wanted)
        self.assertEqual(self.report("-", stdin=text.encode()), wanted)
        self.assertEqual(self.report(self.file(json.dumps(json.loads(text)))), wanted)
        rows = traces.trace(tail="\n],\"perfkitReport\":" + report + "}\n")
        self.assertEqual(self.report(self.file(rows)), wanted)
        # Cut inside the report: the events are whole.
        cut = self.report(self.file(text[:-100]))
        self.assertIn("trace-cut:", cut)
        self.assertIn("STEPS: 200", cut)

    # ---- files that were cut, damaged, made up ----

    def test_cut_traces(self):
        text = traces.trace()
        first = text.index("ProfilerStep#0")
        for length in [first + 300 + n for n in range(0, 400, 7 * FEWER)] + [len(text) - n for n in range(2, 9)]:
            report = self.report(self.file(text[:length]))
            self.assertIn("(the file is cut off)", report)
            self.assertIn("! incomplete: ", report)
            self.assertIn("! trace-cut: ", report)
        self.assertIn("(the file is cut off)", self.report(self.file(text[:9000] + "\0" * 5000)))

    def test_cut_compressed_traces(self):
        content = gzip.compress(traces.trace().encode())
        path = self.file(content[: len(content) // 2], "cut.json.gz")
        self.assertIn("! trace-cut: ", self.report(path))
        self.refused("report", self.file(content[:12], "cut.json.gz"), says="cut.json.gz: ")
        spoilt = content[:2000] + bytes(200) + content[2200:]
        self.refused("report", self.file(spoilt, "spoilt.json.gz"), says="spoilt.json.gz: ")

    def test_cut_before_the_first_event(self):
        text = traces.HEAD
        for length in range(1, len(text), 37 * FEWER):
            self.refused("report", self.file(text[:length]), says="file.json: ")

    def test_a_damaged_line(self):
        lines = traces.events()
        lines[100] = lines[100][:30]
        text = traces.trace(lines)
        self.refused("report", self.file(text), says="line 105 is not an event")
        self.refused("report", self.file(text[:-500]), says="line 105 is not an event")  # cut, too

    def test_what_is_no_report(self):
        for text, says in (("", "is empty"), ("hello", "is not JSON: line 1"), ("\n\n", "cut off"),
                           ("{}", "neither a report"), ("7", "is not JSON"), ("[7]x", "is not JSON"),
                           ('{"traceEvents":7}', "neither a report"), ('{"format":"x"}', "neither a report"),
                           ("\xff\xfe", "is not JSON"), (b"\x00" * 1000, "a byte that is zero"),
                           (b"\x7fELF" + bytes(range(256)) * 40, "is not JSON"),
                           (b"PKARENA\0" + bytes(5000) + b"\n", "pk recover"),
                           ("[" * 100000, "nested too deep"), ('{"a":' * 100000, "nested too deep"),
                           ('{"traceEvents":[\n' + "[" * 100000, "nested too deep"),
                           ('{"a":1,"b":', "cut off")):
            with self.subTest(text=text[:20]):
                self.refused("report", self.file(text), says=says)
        self.refused("report", self.folder, says="is a directory")
        self.refused("report", os.path.join(self.folder, "absent"), says="No such file")

    def test_hostile_events(self):
        huge = '{"ph":"X","name":"a","pid":1,"tid":1,"ts":%s,"dur":%s}'
        lines = [huge % (ts, dur) for ts in ("-1", "1e999", "0", "9" * 18, "1.5", '"1"', "null", "2305843009213693.951")
                 for dur in ("-0.001", "1e300", "0", "2305843009213693.951", "[]")]
        lines = [line for line in lines if "1e999" not in line]  # no number for jansson either: a damaged line
        lines += ['{"ph":"X"}', "{}", '{"ph":7,"pid":{},"tid":[]}', '{"ph":"C","name":"c","args":{"v":1e308,"w":"x"}}',
                  '{"ph":"C","name":"c","args":[]}', '{"ph":"M","name":"thread_name"}',
                  '{"ph":"M","name":"thread_name","args":{"name":7}}',
                  '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#","ts":0,"dur":1}',
                  '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#99999999999999999999","ts":0,"dur":1}',
                  '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#7x","ts":0,"dur":1}']
        for text in (traces.trace(lines), json.dumps(json.loads(traces.trace(lines)))):
            self.report("--threads", self.file(text))
            self.report("--json", self.file(text))
        crossing = [traces.slice_of(f"r{i % 9}", 1, i * 10, i * 10 + 55) for i in range(300)]
        self.report(self.file(traces.trace(crossing)))

    def test_memory_does_not_grow_with_the_file(self):
        path = os.path.join(self.folder, "long.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(traces.HEAD + traces.named(1, "main"))
            for i in range(400_000 // FEWER):  # 40 MB; where no limit is set, any
                file.write(",\n" + traces.slice_of("tick", 1, 1000 * i, 1000 * i + 700))
            file.write("\n]}\n")
        limit = ["bash", "-c", 'ulimit -v 65536 && exec "$@"', "limit"]
        tool = limit + [PK] if not os.environ.get("PK_TEST_NO_LIMIT") else [PK]
        done = subprocess.run([*tool, "report", path], capture_output=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b" tick ", done.stdout)


# ---- what of a run `pk report` shows ----

# Threads, names, a choice of them, another run beside it, one of several processes.

LONG = "CalcHourglassControlForElems and a name that goes on for long"


def report_view_run(*arguments):
    return subprocess.run([PK, "report", *arguments], capture_output=True, timeout=300, check=False, text=True)


class View(InFolder):
    def file(self, text, name="file.json"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def report(self, *arguments):
        done = report_view_run(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, *arguments, says):
        done = report_view_run(*arguments)
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
        done = report_view_run("--threads", report)
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


# ---- what `pk report` says of a capture ----

# Why it was kept, what is missing, which paths made its step slow; and the call tree.
# PK_WRITE_GOLDEN=1 writes the expected files.


def slow_step_run(*arguments, **more):
    return subprocess.run([PK, "report", *arguments], capture_output=True, timeout=300, check=False, text=True, **more)


class SlowStep(InStates):
    pk = PK

    def usual_capture(self, **about):
        return self.file(capture(*loop([2 * MS, 2 * MS + 40_000, 2 * MS - 20_000, 43 * MS]), kernels=[41], refused=2, **about))

    def golden(self, name, found):
        path = os.path.join(GOLDEN, name)
        if os.environ.get("PK_WRITE_GOLDEN"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(found)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(found, file.read())

    # ---- the capture ----

    def test_text_and_json(self):
        path = self.usual_capture()
        self.golden("report-capture.txt", self.report("--tree", path))
        self.golden("report-capture.json", self.report("--json", "--tree", path))

    def test_a_report_of_it_says_the_same(self):
        path = self.usual_capture()
        saved = self.file(self.report("--json", "--tree", path), "saved.json")
        self.assertEqual(self.report("--tree", path), self.report("--tree", saved))

    def test_times_add_up_to_the_step(self):
        beside = json.loads(self.report("--json", self.usual_capture()))["beside"]
        own = [row for row in beside["paths"] if not row["where"]]
        self.assertEqual(sum(row["self"] for row in own), beside["took"])
        self.assertEqual((beside["step"], beside["usual_count"], beside["same_kind"]), (41, 3, True))
        self.assertEqual(own[0], {"where": "", "path": "load", "kind": "data", "calls": 1, "usual_calls": 1, "self": 43 * MS,
                                  "usual": 2 * MS, "blocked": 0, "usual_blocked": 0})
        self.assertEqual([row["path"] for row in own if row["path"].startswith("forward")],
                         ["forward", "forward > attention", "forward > mlp[layer=0]", "forward > mlp[layer=1]"])
        outside = next(row for row in own if not row["path"])
        self.assertEqual((outside["kind"], outside["self"], outside["usual"]), ("untracked", 500_000, 500_000))
        elsewhere = {(row["where"], row["path"]): (row["self"], row["usual"]) for row in beside["paths"] if row["where"]}
        self.assertEqual(elsewhere["loader", "read file"], (43 * MS, 3 * MS))
        self.assertEqual(elsewhere["GPU 0", "gemm"], (MS, MS))
        # What reaches beyond the step counts as far as it is in it.
        self.assertEqual(elsewhere["4242/4260", "monitor"], (beside["took"], beside["usual"]))

    # ---- when the thread that makes steps had no processor ----

    def test_without_a_processor_no_region_is_blamed(self):
        own, _, text = self.with_states(("no processor", MS, 31 * MS, {}), ("no processor", 32 * MS, 42 * MS, {}))
        self.assertEqual((own["(no processor)"], own["load"]), (40 * MS, 3 * MS))
        self.assertIn("No processor for 40.0 ms of the 53.7 ms, though its thread could have run: others had it. "
                      "What the program itself did took 13.7 ms, usually 12.7 ms. (no processor) +40.0 ms;", text)

    def test_stopped(self):
        own, _, text = self.with_states(("stopped", 2 * MS, 42 * MS, {}))
        self.assertEqual((own["(stopped)"], own["load"]), (40 * MS, 3 * MS))
        self.assertIn("The process was stopped or frozen for 40.0 ms of the 53.7 ms", text)

    def test_clocks_a_little_apart(self):
        """The kernel's end of it is a microsecond behind the region's, whose end the thread saw when it was back."""
        own, _, _ = self.with_states(("no processor", 3 * MS, 43 * MS + 1000, {}))
        self.assertEqual((own["(no processor)"], own["load"], own["forward > attention"]), (40 * MS, 3 * MS, 6 * MS))

    def test_what_is_no_reason(self):
        """What it waits for is the region's; another thread's processor is not this one's."""
        own, _, text = self.with_states(("blocked", MS, 42 * MS, {}), ("no processor", MS, 42 * MS, {"thread": LOADER}))
        self.assertEqual(own["load"], 43 * MS)
        self.assertNotIn("rocessor", text.split("THE CAPTURED")[0])
        self.assertIn("load +41.0 ms (41.0 ms of it waiting); all else", text)

    def test_it_computed(self):
        """What it waited for is less than half of what it took longer, or was as long as usual."""
        _, beside, text = self.with_states(("blocked", MS, 20 * MS, {}))
        self.assertIn("load +41.0 ms; all else", text)
        load = next(row for row in beside["paths"] if row["path"] == "load")
        self.assertEqual((load["blocked"], load["usual_blocked"]), (19 * MS, 0))

    def test_waiting_outside_of_all_regions(self):
        _, beside, _ = self.with_states(("blocked", 53_300_000, 53_600_000, {}))
        outside = next(row for row in beside["paths"] if not row["path"])
        self.assertEqual((outside["self"], outside["blocked"]), (500_000, 300_000))

    def test_others_have_such_a_category_too(self):
        """On a thread of their own count it is a slice as any other."""
        events, rows = loop([2 * MS, 2 * MS, 2 * MS, 43 * MS])
        start = rows[3]["start_ns"]
        events.append(f'{{"ph":"X","cat":"thread_state","name":"no processor","pid":{PID},"tid":77,"ts":{us(start)},'
                      f'"dur":40000.000,"args":{{"thread":{PID}}}}}')
        beside = json.loads(self.report("--json", self.file(capture(events, rows))))["beside"]
        paths = {(row["where"], row["path"]): row["self"] for row in beside["paths"]}
        self.assertEqual((paths["4242/77", "no processor"], paths["", "load"]), (40 * MS, 43 * MS))

    def test_how_long_but_not_where(self):
        own, beside, text = self.with_states(("no processor", -10 * MS, 90 * MS, {"off_ns": 50 * MS}))
        self.assertEqual(own["load"], 43 * MS)
        self.assertAlmostEqual(beside["unplaced"]["ready"], 26.85 * MS, delta=0.05 * MS)
        self.assertIn("No processor for about 26.9 ms of the 53.7 ms (usually 0 ns)", text)
        self.assertIn("In which regions is not known", text)

    def with_readings(self, loads, readings):
        events, rows = loop(loads)
        for row, reading in zip(rows, readings):
            if reading is not None:
                events += io_reading(row["start_ns"] + row["duration_ns"], **reading)
        path = self.file(capture(events, rows))
        beside = json.loads(self.report("--json", path))["beside"]
        return {row["name"]: row for row in beside.get("io", [])}, " ".join(self.report(path).split())

    def test_what_a_slow_step_wrote(self):
        few = {"written": 4096, "operations": 2}
        rows, text = self.with_readings([2 * MS, 2 * MS, 2 * MS, 43 * MS],
                                        [few, few, few, {"written": 2 << 30, "device_written": 2 << 30, "operations": 900}])
        self.assertEqual(rows["io.written"], {"name": "io.written", "value": 2 << 30, "steps": 1, "usual": 4096, "telling": True})
        self.assertEqual((rows["io.read"]["value"], rows["io.read"]["telling"]), (0, False))
        self.assertEqual((rows["io.operations"]["usual"], rows["io.operations"]["telling"]), (2, False))
        self.assertIn("load +41.0 ms; all else 0 ns. In it the process wrote 2.15 GB (usually 4.10 KB), dirtied 2.15 GB for devices (usually 0 B).",
                      text)

    def test_what_is_usual_is_not_told(self):
        much = {"read": 5 << 20, "operations": 5000}
        rows, text = self.with_readings([2 * MS, 2 * MS, 43 * MS], [much, much, much | {"read": 6 << 20, "operations": 5100}])
        self.assertEqual([row["telling"] for row in rows.values()], [False] * 5)
        self.assertNotIn("the process", text)
        _, text = self.with_readings([2 * MS, 2 * MS, 43 * MS], [much, much, much | {"operations": 12000}])
        self.assertIn("In it the process made 12.0K calls (usually 5.00K).", text)

    def test_readings_of_several_steps(self):
        """Of the slow step's reading, and of usual ones: each has the mean. Those that it has are no others."""
        rows, text = self.with_readings([2 * MS, 2 * MS, 2 * MS, 2 * MS, 43 * MS],
                                        [None, {"written": 8 << 20, "steps": 2}, {"written": 4 << 20}, None, {"written": 3 << 30, "steps": 2}])
        self.assertEqual((rows["io.written"]["value"], rows["io.written"]["steps"], rows["io.written"]["usual"]), (3 << 30, 2, 4 << 20))
        self.assertIn("In it and the 1 before it the process wrote 3.22 GB (usually 8.39 MB).", text)

    def test_readings_that_say_nothing(self):
        """Of the step alone, of none but it, of time between steps, and nonsense."""
        some = {"written": 1 << 30}
        for readings in ([None, None, some], [some, some, None], [some, some, some | {"steps": 3}], [some, some, some | {"steps": 0}],
                         [some, some, some | {"steps": 1e30}], [some, some, some | {"read": -5}], [some, some, some | {"read": 1e300}], [some, some, some | {"read": '"x"'}]):
            rows, text = self.with_readings([2 * MS, 2 * MS, 43 * MS], readings)
            self.assertEqual(rows, {}, readings)
            self.assertNotIn("the process", text)

    def test_steps_of_another_kind_are_not_usual(self):
        events, rows = loop([2 * MS, 90 * MS, 2 * MS, 43 * MS], kinds={39: "evaluation"})
        beside = json.loads(self.report("--json", self.file(capture(events, rows, slow_step=41, slow_ns=rows[3]["duration_ns"],
                                                                    median_ns=12_700_000))))["beside"]
        self.assertEqual((beside["step"], beside["usual_count"], beside["same_kind"]), (41, 2, True))
        text = self.report(self.file(capture(*loop([2 * MS, 43 * MS], kinds={39: "evaluation"}))))
        self.assertIn("1 usual step of the file, which are of another kind", " ".join(text.split()))

    def test_other_slow_steps_are_not_usual(self):
        beside = json.loads(self.report("--json", self.file(capture(*loop([2 * MS, 40 * MS, 43 * MS, 41 * MS])))))["beside"]
        self.assertEqual((beside["step"], beside["usual_count"], beside["usual_step"]), (40, 1, 38))

    def test_what_is_missing(self):
        events, rows = loop([2 * MS, 43 * MS])
        text = " ".join(self.report(self.file(capture(events, rows, cut=True, beginning_gone=True, full=True, records_lost=7, refused=1,
                                                      kernels=[]))).split())
        for words in ("Cut: the run ended before its last step.", "no longer in the history", "longer than capture_bytes_per_hour allowed",
                      "had no room for 7 records", "By then 1 other capture had been refused", "without kernels"):
            self.assertIn(words, text)
        self.assertNotIn("Nothing of it was cut", text)

    def test_kernels_that_came_late_are_missing(self):
        events, rows = loop([2 * MS, 43 * MS])
        text = " ".join(self.report(self.file(capture(events, rows, kernels=[], kernels_late=2))).split())
        self.assertIn("Kernels of 2 steps are missing: CUPTI had not given them back 3 s after the last step.", text)
        self.assertNotIn("Nothing of it was cut", text)

    def test_machine_and_build(self):
        events, rows = loop([2 * MS, 43 * MS])
        block = {"memory": 8 << 30, "processors": 2, "cpu": "Some CPU", "architecture": "x86_64", "kernel": "Linux 6.1", "gpu": "",
                 "driver": "", "command": "train --fast", "compiler": "gcc 12", "program_compiler": "", "build_id": "ab12",
                 "commit": "0123456789abcdef0123456789abcdef01234567", "branch": "main"}
        path = self.file(capture(events, rows, environment=block))
        self.assertEqual(json.loads(self.report("--json", path))["environment"], block)
        text = self.report(path)
        for words in ("MACHINE AND BUILD", "Some CPU", "train --fast", "commit 0123456789ab on main"):
            self.assertIn(words, text)
        for wrong in [], {}, {"memory": "much"}, {"memory": 1, "cpu": 7}:
            report = self.report("--json", self.file(capture(events, rows, environment=wrong)))
            self.assertNotIn("environment", json.loads(report))

    def test_other_reasons(self):
        for reason, words in (("steps", "asked for by number"), ("every", "every so many"), ("cycle", "A part of a cycle"),
                              ("request", "Asked for by `pk capture`"), ("call", "(pk_capture): loss is not a number.")):
            text = self.report(self.file(capture(*loop([2 * MS, 3 * MS, 2 * MS]), reason=reason, text="loss is not a number" if reason == "call" else "")))
            self.assertIn(words, text)
            self.assertIn("THE LONGEST: step 39", text)

    def test_one_step_alone(self):
        text = self.report(self.file(capture(*loop([2 * MS]), reason="request")))
        self.assertIn("no other step", text)

    def test_no_path_stands_out(self):
        events, rows = loop([2 * MS] * 3)
        wide = [traces.slice_of(f"part {i}", traces.PID, (900 + 2 * i) * MS, (902 + 2 * i) * MS - 10) for i in range(24)]
        events += [*wide, traces.step_of(41, 900 * MS, 950 * MS)]
        rows.append({"step": 41, "start_ns": 900 * MS, "duration_ns": 50 * MS, "items": 1, "kind": ""})
        text = " ".join(self.report(self.file(capture(events, rows))).split())
        self.assertIn("No path stands out", text)

    def test_from_a_pipe_without_reasons(self):
        with open(self.usual_capture(), encoding="utf-8") as file:
            text = self.report("-", stdin=file)
        self.assertIn("CAPTURE: a slow step", text)

    def test_whatever_it_says(self):
        """Names that are no names, numbers that are none."""
        events, rows = loop([2 * MS, 43 * MS])
        for about in ({"steps": 7}, {"kernels": {"a": 1}}, {"reason": None}, {"slow_step": 10 ** 30}, {"text": ["x"]}, {"first": -1},
                      {"steps": [None, {"step": "x"}, {"duration_ns": 1}]}):
            done = slow_step_run(self.file(capture(events, rows, **about)))
            self.assertEqual((done.returncode, done.stderr), (0, ""), about)

    def test_figures_of_the_run_are_not_the_steps(self):
        """A head of an older version has them: of the run so far, a hundred times as long."""
        whole = {"cpu_ns": 10**11, "overhead": {"region_ns": 20.0, "collector_ns": 10**10, "callers_ns": 10**10, "backends_ns": 0},
                 "stepping_thread": {"observed_ns": 10**11, "running_ns": 5 * 10**10, "ready_ns": 4 * 10**10}}
        text = capture(*loop([2 * MS, 2 * MS, 2 * MS, 43 * MS]))
        with_them = text.replace('"metadata":{', '"metadata":{' + json.dumps(whole)[1:-1] + ",", 1)
        self.assertNotEqual(text, with_them)
        report = json.loads(self.report("--json", self.file(with_them)))
        self.assertEqual([v["name"] for v in report["verdicts"]], ["rebuilt"])
        self.assertEqual((report["run"]["cpu"], report["overhead"]["total"]), (0, 0))
        self.assertEqual(report["steps"].get("processor", {}).get("observed", 0), 0)
        many = json.loads(self.report("--json", self.file(capture(*loop([2 * MS] * 12)))))
        self.assertIn("gpu-idle", [v["name"] for v in many["verdicts"]])

    def test_a_trace_is_reported_as_before(self):
        path = self.file(traces.trace(), "trace.json")
        text = self.report(path)
        self.assertTrue(text.startswith("perfkit 0.1.0 report\n"), text[:80])
        self.assertEqual({"capture", "beside", "tree"} & set(json.loads(self.report("--json", path))), set())

    # ---- the tree ----

    def test_the_tree_is_exact(self):
        report = json.loads(self.report("--json", "--tree", self.usual_capture()))
        rows = {(row["depth"], row["name"]): row for row in report["tree"]}
        self.assertEqual([row["depth"] for row in report["tree"]].count(0), 4)
        self.assertEqual((rows[0, "forward"]["calls"], rows[0, "forward"]["time"], rows[0, "forward"]["self"]), (4, 4 * 10_200_000, 4 * 200_000))
        self.assertEqual(rows[1, "attention"], {"name": "attention", "depth": 1, "kind": "compute", "calls": 8, "time": 24 * MS, "self": 24 * MS})
        self.assertEqual(sum(row["self"] for row in report["tree"]), sum(region["self"] for region in report["regions"]))

    def test_the_trees_limits(self):
        path = self.usual_capture()
        shallow = self.report("--tree", "--depth", "1", path).split("CALL TREE")[1]
        self.assertNotIn("attention", shallow)
        self.assertIn("more rows", shallow)
        large = self.report("--tree", "--min-share", "20", path).split("CALL TREE")[1]
        self.assertNotIn("mlp", large)
        self.assertIn("mlp", self.report("--tree", "--min-share", "0", path).split("CALL TREE")[1])
        self.assertEqual(self.report("--tree", "--top", "2", path).split("CALL TREE")[1].count("\n"), 5)

    def test_of_a_trace_with_a_report(self):
        report = json.loads(self.report("--json", self.file(traces.trace(), "bare.json")))
        whole = self.file(traces.trace(tail='\n],"perfkitReport":' + json.dumps(report) + "}\n"), "whole.json")
        self.assertIn("CALL TREE", self.report("--tree", whole))

    def test_a_report_has_none_and_says_so(self):
        done = slow_step_run("--tree", os.path.join(GOLDEN, "report-train.json"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("has no call tree: that is made of the events of a trace", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + CASES)
