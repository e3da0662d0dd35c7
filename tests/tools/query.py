"""query.py PK RUN_TRACE GOLDEN - pk query: the rows of runs that never were, and SQL on them."""

import gzip
import json
import os
import random
import statistics
import sys
import unittest

from query_kit import ask, make_runs, path, run, write, write_trace

GOLDEN = os.path.abspath(sys.argv[3])
STEPS, LAYERS, RANKS = 30, 12, 3


def ranks():
    return [path(f"{rank}.json") for rank in range(RANKS)]


def events(name="0.json"):
    with open(path(name), encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


def setUpModule():
    make_runs(RANKS, STEPS)


class Tables(unittest.TestCase):
    """Against the trace's own JSON."""

    def test_calls(self):
        found = ask("SELECT thread, name, start_ns, duration_ns, bytes FROM calls ORDER BY id")
        written = [(e["tid"], e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000), e.get("args", {}).get("bytes"))
                   for e in events() if e["ph"] == "X" and e["cat"] == "cpu_op"]
        self.assertEqual(found, written)

    def test_nesting(self):
        """Parents, depths and self times, against all pairs of calls."""
        calls = ask("SELECT id, parent, depth, thread, start_ns, end_ns, self_ns FROM calls WHERE step < 2")
        for call in calls:
            around = [c for c in calls if c is not call and c[3] == call[3] and c[4] <= call[4] and call[5] <= c[5]]
            inside = [c for c in calls if c[1] == call[0]]
            self.assertEqual(call[2], len(around))
            self.assertEqual(call[1], max(around, key=lambda c: c[4])[0] if around else None)
            self.assertEqual(call[6], call[5] - call[4] - sum(c[5] - c[4] for c in inside))

    def test_nesting_at_the_same_moment(self):
        """Of two calls that begin or end together the longer one is around the other; of two alike, the later one."""
        calls = [("b", 0, 4), ("a", 0, 10), ("d", 14, 6), ("e", 14, 6), ("c", 10, 10), ("f", 20, 0), ("g", 20, 1)]
        events = [{"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": 1, "ts": s, "dur": d} for n, s, d in calls]
        found = ask("SELECT c.name, p.name AS parent, c.depth, c.self_ns / 1000 FROM calls c LEFT JOIN calls p ON p.id = c.parent ORDER BY c.name",
                    write_trace("ties.json", events))
        self.assertEqual(found, [("a", None, 0, 6), ("b", "a", 1, 4), ("c", None, 0, 4), ("d", "e", 2, 6), ("e", "c", 1, 0),
                                 ("f", "g", 1, 0), ("g", None, 0, 1)])

    def test_kernels_and_copies(self):
        kernels = [e for e in events() if e.get("cat") == "kernel"]
        found = ask("SELECT name, device, stream, duration_ns, correlation, region, registers, shared_bytes, queued_ns FROM kernels")
        self.assertEqual(found, [(e["name"], 0, 7, round(e["dur"] * 1000), e["args"]["correlation"], e["args"]["region"],
                                  96, 16384, e["args"]["queued"]) for e in kernels])
        self.assertEqual(ask("SELECT DISTINCT direction, bytes, stream FROM memcpys"), [("h2d", 8000000, 13)])
        self.assertEqual(ask("SELECT count(*) FROM memcpys"), [(STEPS,)])
        self.assertEqual(ask("SELECT kind, count(*) FROM activities GROUP BY 1"), [("runtime", len(kernels))])

    def test_collectives(self):
        one, = ask("SELECT communicator, library, operation, dtype, ranks, sequence, bytes, duration_ns, exposed_ns, algbw_gbps, busbw_gbps,"
                   " region FROM collectives WHERE sequence = 3")
        self.assertEqual(one[:7], ("world", "NCCL", "all_reduce", "BFloat16", RANKS, 3, 64 << 20))
        self.assertEqual(one[8], one[7] // 2)
        self.assertAlmostEqual(one[9], (64 << 20) / one[7])
        self.assertAlmostEqual(one[10], one[9] * 2 * (RANKS - 1) / RANKS)
        self.assertEqual(one[11], "backward")

    def test_messages(self):
        """They are no collectives, and know whom they are with."""
        self.assertEqual(ask("SELECT DISTINCT operation FROM collectives", *ranks()), [("all_reduce",)])
        found = ask("SELECT operation, peer, tag, count(*), sum(bytes) FROM messages WHERE rank = 1 GROUP BY 1, 2, 3", *ranks())
        tenth = (STEPS + 9) // 10
        self.assertEqual(found, [("recv", 0, 1, STEPS, STEPS << 20), ("send", 0, 2, tenth, tenth << 18),
                                 ("send", 2, 1, STEPS, STEPS << 20)])
        sent, came = (ask(f"SELECT rank, peer, tag, sequence > 0, bytes FROM messages WHERE operation = '{op}'", *ranks())
                      for op in ("send", "recv"))
        self.assertEqual(sorted((a, b, *rest) for a, b, *rest in sent), sorted((a, b, *rest) for b, a, *rest in came))
        one, = ask("SELECT communicator, library, dtype, ranks, duration_ns, gbps FROM messages WHERE sequence = 1")
        self.assertEqual(one[:4], ("MPI_COMM_WORLD messages", "MPI", "Byte", RANKS))
        self.assertAlmostEqual(one[5], (1 << 20) / one[4])

    def test_points(self):
        self.assertEqual(ask("SELECT name, unit, count(*) FROM counters GROUP BY 1"),
                         [("gpu0.memory", "bytes", STEPS), ("loader.queue", "batches", STEPS), ("loss", None, STEPS)])
        self.assertEqual(ask("SELECT max(value) FROM counters WHERE name = 'loss'"), [(2.0,)])

    def test_steps(self):
        self.assertEqual(ask("SELECT step, items, thread, warmup FROM steps"),
                         [(i, 32, 1000, int(i < 2)) for i in range(STEPS)])
        # Each moment lies in the step around it, and in none when it lies in none.
        self.assertEqual(ask("SELECT count(*) FROM calls c JOIN steps s USING (step)"
                             " WHERE c.start_ns < s.start_ns OR c.start_ns >= s.end_ns"), [(0,)])
        self.assertEqual(ask("SELECT count(*) FROM calls WHERE step IS NULL"), [(0,)])

    def test_files_and_ranks(self):
        found = ask("SELECT file, rank, ranks, pid, host, program, complete, cut FROM files", *ranks())
        self.assertEqual(found, [(i + 1, i, RANKS, 1000 + 10 * i, f"node{i // 2}", "train", 1, 0) for i in range(RANKS)])
        self.assertEqual(ask("SELECT rank, count(*), max(step) FROM calls GROUP BY rank", *ranks()),
                         [(i, STEPS * (4 * LAYERS + 6) + STEPS // 25, STEPS - 1) for i in range(RANKS)])
        apart, = ask("SELECT max(start_unix_ns - start_ns) - min(start_unix_ns - start_ns) FROM steps", *ranks())
        self.assertEqual(apart, (250000 * (RANKS - 1),))

    def test_what_the_report_says(self):
        report = json.loads(run("report", "--json", path("0.json")).stdout)
        self.assertEqual(ask("SELECT name, kind, calls, total_ns, self_ns, p99_ns FROM regions"),
                         [(r["name"], r["kind"], r["time"]["count"], r["time"]["sum"], r["self"], r["time"]["p99"])
                          for r in report["regions"]])
        self.assertEqual(ask("SELECT name, severity FROM verdicts"), [(v["name"], v["severity"]) for v in report["verdicts"]])
        self.assertEqual(ask("SELECT thread, name, recorded, compute_ns FROM threads"),
                         [(t["tid"], t["name"], t["recorded"], t["kinds"]["compute"]) for t in report["threads"]])
        self.assertEqual(ask("SELECT kernels, busy_ns FROM devices"),
                         [(report["gpus"][0]["kernels"], report["gpus"][0]["per_step"]["busy"]["mean"])])


class Files(unittest.TestCase):
    COUNTS = "SELECT (SELECT count(*) FROM calls), (SELECT count(*) FROM kernels), (SELECT sum(duration_ns) FROM calls)"

    def test_compressed_and_cut(self):
        with open(path("0.json"), "rb") as file:
            whole = file.read()
        with gzip.open(path("0.json.gz"), "wb") as file:
            file.write(whole)
        self.assertEqual(ask(self.COUNTS, path("0.json.gz")), ask(self.COUNTS))
        lines = whole.split(b"\n")
        with open(path("cut.json"), "wb") as file:
            file.write(b"\n".join(lines[:1000]) + b"\n" + lines[1000][:40])
        self.assertEqual(ask("SELECT cut, (SELECT count(*) FROM calls) > 0 FROM files", path("cut.json")), [(1, 1)])
        with open(path("cut.json.gz"), "wb") as file:
            file.write(gzip.compress(whole)[:-5000])
        self.assertEqual(ask("SELECT cut, (SELECT count(*) FROM calls) > 0 FROM files", path("cut.json.gz")), [(1, 1)])

    def test_layout_does_not_matter(self):
        with open(path("0.json"), encoding="utf-8") as file:
            trace = json.load(file)
        pretty = write("pretty.json", json.dumps(trace, indent=1))
        self.assertEqual(ask(self.COUNTS, pretty), ask(self.COUNTS))
        order = trace["traceEvents"]
        random.Random(5).shuffle(order)
        mixed = write_trace("mixed.json", order)
        self.assertEqual(ask(self.COUNTS, mixed), ask(self.COUNTS))
        nested = "SELECT name, depth, self_ns, step, thread FROM calls ORDER BY start_ns, end_ns DESC, name"
        self.assertEqual(ask(nested, mixed), ask(nested))

    def test_blanks(self):
        """Between tokens they are nothing, however many; in a name each counts; and what they part stays two."""
        names = ["a  b", " \t ", 'c"  d', "e\\", "  f"]
        for blanks in ("", " ", "\t \t", " " * 341, " " * 1023 + "\n" + "\t" * 2049):
            trace = json.dumps({"traceEvents": [
                {"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5}
                for i, name in enumerate(names)]}, separators=(blanks + "," + blanks, blanks + ":" + blanks))
            file = write("blanks.json", blanks + trace + blanks)
            self.assertEqual(ask("SELECT name FROM calls ORDER BY start_ns", file), [(name,) for name in names])
        answer = run("query", "SELECT 1", write("apart.json", '{"traceEvents": [\n\n 1   2]}'))
        self.assertEqual((answer.returncode, answer.stdout), (2, ""))
        self.assertIn("is not JSON: line 3: ", answer.stderr)

    def test_joined(self):
        both = [e | {"ts": e.get("ts", 0) + 1000 * rank} for rank in (0, 1) for e in events(f"{rank}.json")]
        joined = write_trace("joined.json", both)  # of two processes
        calls = "SELECT thread, name, step, count(*) FROM calls GROUP BY thread, name, step"
        self.assertEqual(sorted(ask(calls, joined)), sorted(ask(calls) + ask(calls, path("1.json"))))

    def test_standard_input(self):
        with open(path("0.json"), encoding="utf-8") as file:
            text = file.read()
        answer = run("query", "--format", "csv", self.COUNTS, "-", input=text)
        self.assertEqual(answer.stdout.splitlines()[1], ",".join(map(str, ask(self.COUNTS)[0])))
        answer = run("query", "SELECT * FROM regions", "-", input=text)
        self.assertEqual((answer.returncode, answer.stdout), (2, ""))
        self.assertIn("cannot be read a second time", answer.stderr)

    def test_report(self):
        report = os.path.join(GOLDEN, "report-train.json")
        with open(report, encoding="utf-8") as file:
            content = json.load(file)
        self.assertEqual(ask("SELECT name, calls FROM regions", report),
                         [(r["name"], r["time"]["count"]) for r in content["regions"]])
        self.assertEqual(ask("SELECT count(*), min(duration_ns) > 0 FROM steps", report), [(len(content["steps"]["series"]), 1)])
        self.assertEqual(ask("SELECT program FROM files", report), [(content["run"]["program"],)])
        answer = run("query", "SELECT * FROM calls", report)
        self.assertEqual(answer.returncode, 2)
        self.assertIn('has no "calls"', answer.stderr)

    def test_files_that_are_none(self):
        for name, text, words in (("none.json", None, "No such file"), ("empty.json", "", "is empty"),
                                  ("text.json", "hello\n", "is not JSON"), ("other.json", "{}", "neither a report"),
                                  ("torn.json", '{"traceEvents":[\n{"ph":"X"},\nx\n{"ph":"X"}\n]}', "is damaged: line 3")):
            if text is not None:
                write(name, text)
            answer = run("query", "SELECT * FROM calls", path(name))
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), name)
            self.assertIn(words, answer.stderr)


class Sql(unittest.TestCase):
    def test_percentiles(self):
        values = [row[0] for row in ask("SELECT duration_ns FROM calls WHERE name = 'mlp'")]
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        found, = ask("SELECT percentile(duration_ns, 1), percentile(duration_ns, 99), percentile_cont(duration_ns, 0.25), median(duration_ns),"
                     " stddev(duration_ns), stddev_pop(duration_ns), percentile(duration_ns, 0), percentile(duration_ns, 100)"
                     " FROM calls WHERE name = 'mlp'")
        wanted = (cuts[0], cuts[98], cuts[24], statistics.median(values), statistics.stdev(values), statistics.pstdev(values),
                  min(values), max(values))
        for a, b in zip(found, wanted):
            self.assertAlmostEqual(a, b, delta=b * 1e-12)
        self.assertEqual(ask("SELECT percentile(bytes, 50), stddev(bytes), median(3) FROM calls WHERE name = 'mlp'"), [(None, None, 3.0)])

    def test_windows(self):
        values = [row[0] for row in ask("SELECT duration_ns FROM steps ORDER BY step")]
        found = ask("SELECT median(duration_ns) OVER w, stddev_pop(duration_ns) OVER w, lag(duration_ns) OVER (ORDER BY step) FROM steps"
                    " WINDOW w AS (ORDER BY step ROWS 4 PRECEDING)")
        for i, row in enumerate(found):
            window = values[max(0, i - 4):i + 1]
            self.assertEqual(row[0], statistics.median(window))
            self.assertAlmostEqual(row[1], statistics.pstdev(window), delta=1e-3)
            self.assertEqual(row[2], values[i - 1] if i else None)

    def test_spreads_far_from_zero(self):
        """Nothing is lost in a difference of large sums, nor stays behind when a window has left a large value."""
        values = [8e10 + (1000 if i % 2 else -1000) for i in range(1000)]
        rows = ", ".join(f"({i}, {value})" for i, value in enumerate(values))
        self.assertEqual(ask(f"SELECT stddev_pop(column2) FROM (VALUES {rows})"), [(1000.0,)])
        values[3] = 1e15
        rows = ", ".join(f"({i}, {value})" for i, value in enumerate(values))
        found = ask(f"SELECT stddev_pop(column2) OVER (ORDER BY column1 ROWS 9 PRECEDING) FROM (VALUES {rows})")
        self.assertEqual({row[0] for row in found[13:]}, {1000.0})

    def test_patterns(self):
        self.assertEqual(ask("SELECT DISTINCT name FROM calls WHERE name LIKE '%BACKWARD' ORDER BY 1"),
                         [("attention backward",), ("backward",), ("mlp backward",)])
        self.assertEqual(ask("SELECT DISTINCT name FROM kernels WHERE name REGEXP '^flash_(fwd|bwd)' ORDER BY name DESC"),
                         [("flash_fwd_kernel<128, 64>",), ("flash_bwd_kernel<128, 64>",)])

    def test_the_same_as_from_a_database(self):
        """The ways of our tables (orders, joins) against those of SQLite's own."""
        database = path("all.db")
        self.assertEqual(run("export", "--sqlite", database, *ranks()).returncode, 0)
        for sql in (
                "SELECT rank, name, count(*), sum(duration_ns) FROM calls GROUP BY rank, name",
                "SELECT name, kind, step, id FROM calls ORDER BY name DESC, step, id DESC LIMIT 500",
                "SELECT kind, count(DISTINCT name) FROM calls GROUP BY kind ORDER BY kind DESC",
                "SELECT bytes, id FROM calls ORDER BY bytes, id LIMIT 300",
                "SELECT bytes, id FROM calls ORDER BY bytes DESC, id LIMIT 300",
                "SELECT c.name, p.name AS parent, count(*), sum(c.self_ns) FROM calls c LEFT JOIN calls p ON c.parent = p.id GROUP BY 1, 2",
                "SELECT s.rank, s.step, sum(c.duration_ns) FROM steps s JOIN calls c ON c.rank = s.rank AND c.step = s.step GROUP BY 1, 2",
                "SELECT k.name, a.name AS call, count(*) FROM kernels k JOIN activities a ON a.correlation = k.correlation AND a.rank = k.rank GROUP BY 1, 2",
                "SELECT r.name, (SELECT count(*) FROM calls c WHERE c.name = r.name AND c.rank = r.rank) = r.calls FROM regions r ORDER BY r.rank, r.name",
                "SELECT r.name, (SELECT count(*) FROM calls c WHERE c.kind = r.kind) FROM regions r ORDER BY 1, 2",
                "SELECT value, count(*) FROM counters GROUP BY value ORDER BY value",
                "SELECT DISTINCT rank, device, stream FROM kernels ORDER BY 1, 2, 3",
                "SELECT max(step), min(start_ns) FROM calls WHERE step BETWEEN 3 AND 7 AND rank IN (0, 2)",
                "SELECT count(*) FROM steps s JOIN calls c ON c.step = s.step * 1.0 WHERE s.step + 0.5 > 10",
                "SELECT count(*) FROM steps s JOIN calls c ON c.step = CAST(s.step AS TEXT)",
                "SELECT count(*) FROM calls c JOIN (SELECT 'mlp' n UNION ALL SELECT 'nobody' UNION ALL SELECT NULL) x ON c.name = x.n",
                "SELECT a.rank, a.step, a.duration_ns - b.duration_ns FROM steps a JOIN steps b USING (step) WHERE a.rank = 0 AND b.rank = 2",
                "SELECT step, rank, rank() OVER (PARTITION BY step ORDER BY duration_ns) FROM steps ORDER BY 1, 2"):
            self.assertEqual(ask(sql, *ranks()), ask(sql, database), sql)

    def test_several_statements_and_sql_from_files(self):
        sql = write("two.sql", "-- what a run is\nSELECT program FROM files;\n\nSELECT 1 + 1 AS two;\n")
        answer = run("query", "--from", sql, "--format=csv", path("0.json"))
        self.assertEqual(answer.stdout, "program\ntrain\ntwo\n2\n")
        with open(sql, encoding="utf-8") as file:
            self.assertEqual(run("query", "--from", "-", "--format=csv", path("0.json"), input=file.read()).stdout, answer.stdout)

    def test_wrong_sql(self):
        for sql, words in (("SELECT duratoin_ns\nFROM calls", "no such column: duratoin_ns (pk query --schema lists them)\n  in line 1:\n"
                            "  SELECT duratoin_ns\n         ^\n"),
                           ("SELECT name\nFRM calls", "in line 2:\n  FRM calls\n      ^\n"),
                           ("SELECT * FROM call", "no such table: call (pk query --schema"),
                           ("SELECT percentile(duration_ns, 101) FROM calls", "a number from 0 to 100"),
                           ("SELECT percentile(name, 50) FROM calls", "a percentile is of numbers"),
                           ("SELECT 'x' REGEXP '(' FROM calls", "REGEXP: "),
                           ("-- nothing", "there is no statement"), ("SELECT (", "incomplete input")):
            answer = run("query", sql, path("0.json"))
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), sql)
            self.assertIn(words, answer.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
