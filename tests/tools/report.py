"""report.py PK GOLDEN_FOLDER - the command line of `pk report`, on good files and on bad ones."""

import gzip
import json
import os
import re
import subprocess
import sys
import unittest

import traces
from folder import InFolder

PK, GOLDEN = sys.argv[1], sys.argv[2]


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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
