"""query.py CASE,... PK RUN_TRACE GOLDEN - pk query and pk export: rows of runs, SQL on them, and files for other engines."""

import atexit
import csv
import gzip
import json
import os
import random
import re
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import unittest

CASES = sys.argv[1].split(",")
PK, RUN_TRACE, GOLDEN = map(os.path.abspath, sys.argv[2:5])


# ---- runs that never were, in a folder of their own ----

FOLDER = tempfile.mkdtemp(prefix="pk-query-")

atexit.register(shutil.rmtree, FOLDER)


def make_runs(ranks, steps):
    """0.json, 1.json, ...: a trace for each rank."""
    for rank in range(ranks):
        subprocess.run([RUN_TRACE, path(f"{rank}.json"), str(rank), str(ranks), str(steps)], check=True)


def path(*names):
    return os.path.join(FOLDER, *names)


def read(*names):
    with open(path(*names), encoding="utf-8", newline="") as file:
        return file.read()


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return path(name)


def write_trace(name, events):
    """As perfkit lays it out: each event on a line."""
    return write(name, '{"traceEvents":[\n' + ",\n".join(json.dumps(event) for event in events) + "\n]}\n")


def run(*arguments, **more):
    """pk in that folder."""
    return subprocess.run([PK, *arguments], capture_output=True, text=True, encoding="utf-8", check=False, cwd=FOLDER, **more)


def ask(sql, *files):
    """The rows of an answer, as tuples."""
    answer = run("query", "--format", "ndjson", sql, *(files or ["0.json"]))
    assert answer.returncode == 0, answer.stderr
    return [tuple(json.loads(line).values()) for line in answer.stdout.splitlines()]


# ---- pk query ----

# The rows of runs that never were, and SQL on them.

STEPS, LAYERS, RANKS = 30, 12, 3


def ranks():
    return [path(f"{rank}.json") for rank in range(RANKS)]


def events(name="0.json"):
    with open(path(name), encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


def make_table_runs():
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


# ---- the forms in which pk query answers, and pk export writes ----

QUERY_FORMS_RANKS = 3


def query_forms_ranks():
    return [path(f"{rank}.json") for rank in range(QUERY_FORMS_RANKS)]


def make_form_runs():
    make_runs(QUERY_FORMS_RANKS, 30)


class Forms(unittest.TestCase):
    SQL = "SELECT 1 AS whole, 0.1 AS real, NULL AS none, 'a,\"b\"|c' AS text UNION ALL SELECT 1234567, 2345678.9, NULL, 'd'"

    def form(self, name):
        answer = run("query", "--format", name, self.SQL, path("0.json"))
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        return answer.stdout

    def test_forms(self):
        rows = [(1, 0.1, None, 'a,"b"|c'), (1234567, 2345678.9, None, "d")]
        self.assertEqual([tuple(row.values()) for row in json.loads(self.form("json"))], rows)
        self.assertEqual([tuple(json.loads(line).values()) for line in self.form("ndjson").splitlines()], rows)
        self.assertEqual(list(csv.reader(self.form("csv").splitlines())),
                         [["whole", "real", "none", "text"], ["1", "0.1", "", 'a,"b"|c'], ["1234567", "2345678.9", "", "d"]])
        self.assertEqual(self.form("table").splitlines(), [
            "  whole       real  none  text",
            "-------  ---------  ----  -------",
            '      1        0.1        a,"b"|c',
            "1234567  2345678.9        d"])
        self.assertEqual(self.form("markdown").splitlines(), [
            "| whole | real | none | text |", "|--:|--:|---|---|", '| 1 | 0.1 |  | a,"b"\\|c |', "| 1234567 | 2345678.9 |  | d |"])

    def test_no_rows(self):
        for form, text in (("json", "[]"), ("csv", "step"), ("ndjson", ""), ("table", "step\n----")):
            answer = run("query", "--format", form, "SELECT step FROM steps WHERE step < 0", path("0.json"))
            self.assertEqual("".join(answer.stdout.split()), "".join(text.split()))

    def test_more_rows_than_a_block(self):
        lines = run("query", "SELECT id, name FROM calls", path("0.json")).stdout.splitlines()
        self.assertEqual(len(lines) - 2, ask("SELECT count(*) FROM calls")[0][0])
        self.assertEqual([line.split(None, 1)[0] for line in lines[2:]], [str(i + 1) for i in range(len(lines) - 2)])

    def test_arguments(self):
        for arguments, words in (([], "needs SQL"), (["SELECT 1"], "needs a file"), (["--format", "xml"], "not \"xml\""),
                                 (["--from"], "takes one file"), (["--nonsense"], "no option"), (["--from", path("no.sql")], "No such file")):
            answer = run("query", *arguments)
            self.assertEqual((answer.returncode, answer.stdout), (2, ""))
            self.assertIn(words, answer.stderr)

    def test_schema_is_what_there_is(self):
        named = {}
        for line in run("query", "--schema").stdout.splitlines():
            if line and line[0] != " ":
                table = named.setdefault(line.split(":")[0], [])
            elif line:
                table.append(line.split()[0])
        self.assertGreaterEqual(len(named), 12)
        for table, columns in named.items():
            answer = run("query", "--format", "csv", f"SELECT * FROM {table} LIMIT 0", path("0.json"))
            self.assertEqual(answer.stdout.strip().split(","), columns)


class Export(unittest.TestCase):
    def test_lines(self):
        out = path("out")
        self.assertEqual(run("export", "--csv", out, "--ndjson", out, "--tables", "calls,steps,files", *query_forms_ranks()).returncode, 0)
        self.assertEqual(sorted(os.listdir(out)), [f"{t}.{e}" for t in ("calls", "files", "steps") for e in ("csv", "ndjson")])
        for table in ("calls", "steps", "files"):
            wanted = ask(f"SELECT * FROM {table}", *query_forms_ranks())
            with open(f"{out}/{table}.ndjson", encoding="utf-8") as file:
                self.assertEqual([tuple(json.loads(line).values()) for line in file], wanted)
            answer = run("query", "--format", "csv", f"SELECT * FROM {table}", *query_forms_ranks())
            with open(f"{out}/{table}.csv", encoding="utf-8") as file:
                self.assertEqual(file.read(), answer.stdout)

    def test_database_is_sqlites(self):
        database = path("run.db")
        self.assertEqual(run("export", f"--sqlite={database}", path("0.json")).returncode, 0)
        connection = sqlite3.connect(database)
        self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        sql = "SELECT name, count(*), sum(duration_ns) FROM calls GROUP BY name"
        self.assertEqual(connection.execute(sql).fetchall(), ask(sql))
        connection.close()
        answer = run("query", "SELECT 1", database, path("0.json"))
        self.assertIn("one database at a time", answer.stderr)

    def test_report(self):
        out = path("from-report")
        self.assertEqual(run("export", "--csv", out, os.path.join(GOLDEN, "report-train.json")).returncode, 0)
        with open(f"{out}/calls.csv", encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 1)

    def test_what_cannot_be_written(self):
        write("in-the-way", "x")
        for arguments, words in ((["--csv", path("in-the-way")], "in-the-way"), (["--csv", path("no/where")], "No such file"),
                                 (["--sqlite", path("no/where.db")], "No such file"), (["--tables", "cals", "--csv", "x"], 'no table "cals"'),
                                 (["--csv="], "needs the name"), ([], "needs --csv"), (["--nonsense"], "no option")):
            answer = run("export", *arguments, path("0.json"))
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), arguments)
            self.assertIn(words, answer.stderr)
        self.assertEqual([name for name in os.listdir(path()) if name.startswith("no")], [])


# ---- pk query and pk export over many files ----

# File by file they say what all files together say; a folder for each rank; spans and requests.

QUERY_MANY_RANKS, QUERY_MANY_STEPS = 3, 8

# Each table gone through once, several times, and looked up in; sorted, grouped, in windows.
QUESTIONS = (
    "SELECT * FROM calls", "SELECT * FROM files", "SELECT rank, step, duration_ns FROM steps", "SELECT count(*) FROM kernels",
    "SELECT name, count(*), sum(self_ns), min(start_ns), max(id), max(parent) FROM calls GROUP BY name",
    "SELECT rank, name, percentile(duration_us, 99), median(self_ns) FROM calls GROUP BY rank, name ORDER BY rank DESC, name",
    "SELECT c.name, p.name, count(*) FROM calls c JOIN calls p ON c.parent = p.id GROUP BY 1, 2",
    "SELECT s.rank, s.step, sum(c.self_ns) FROM steps s JOIN calls c USING (file, step) GROUP BY 1, 2",
    "SELECT (SELECT max(name) FROM calls), (SELECT min(name) FROM kernels)",
    "SELECT r.name, (SELECT count(*) FROM calls c WHERE c.name = r.name AND c.rank = r.rank) FROM regions r",
    "SELECT a.step, (SELECT count(*) FROM steps b WHERE b.duration_ns > a.duration_ns) FROM steps a",
    "SELECT name FROM calls UNION SELECT name FROM kernels UNION SELECT name FROM counters UNION SELECT name FROM calls",
    "SELECT count(*) FROM steps a, steps b, steps c WHERE a.step < b.step AND b.step < c.step",
    "WITH each AS (SELECT rank, duration_ns - min(duration_ns) OVER (PARTITION BY sequence) AS waited FROM collectives)"
    " SELECT rank, sum(waited) FROM each GROUP BY rank",
    "SELECT count(DISTINCT rowid) FROM calls", "SELECT rank, step FROM steps WHERE step > 100",
    "SELECT name FROM calls ORDER BY duration_ns DESC LIMIT 5",
    "SELECT 1; SELECT count(*) FROM calls; SELECT count(*) FROM calls; SELECT max(name) FROM calls")


def query_many_ranks():
    return [f"{rank}.json" for rank in range(QUERY_MANY_RANKS)]


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))


def make_many_runs():
    make_runs(QUERY_MANY_RANKS, QUERY_MANY_STEPS)


class FileByFile(unittest.TestCase):
    def ask(self, sql, *options, files=None, **more):
        return run("query", "--format", "csv", *options, sql, *(files or query_many_ranks()), **more)

    def test_the_same_as_together(self):
        for sql in QUESTIONS:
            together = self.ask(sql)
            self.assertEqual((together.returncode, together.stderr), (0, ""), sql)
            one_by_one = self.ask(sql, "--keep", "0")
            self.assertEqual((one_by_one.returncode, one_by_one.stderr), (0, ""), sql)
            self.assertEqual(one_by_one.stdout, together.stdout, sql)

    def test_few_files_are_open(self):
        answer = self.ask("SELECT count(*) FROM steps", "--keep", "0", files=query_many_ranks() * 8, preexec_fn=few_files)
        self.assertEqual((answer.stdout, answer.stderr), (f"count(*)\n{QUERY_MANY_STEPS * QUERY_MANY_RANKS * 8}\n", ""))

    def test_a_file_that_is_bad(self):
        bad = write("bad.json", '{"traceEvents":[\n{"ph":"X"},\nnonsense\n{"ph":"X"}\n]}\n')
        for sql in ("SELECT count(*) FROM calls", "SELECT count(*) FROM steps s JOIN calls c USING (step)"):
            for name in (bad, "none.json"):
                for options in ((), ("--keep", "0")):
                    answer = self.ask(sql, *options, files=["0.json", name, "1.json"])
                    self.assertEqual((answer.returncode, answer.stdout.removeprefix("count(*)\n")), (2, ""))
                    self.assertRegex(answer.stderr, r"\Apk: (cannot read )?" + name)

    def test_what_cannot_be_read_again_is_kept(self):
        answer = self.ask("SELECT count(*) FROM steps a JOIN steps b USING (step)", "--keep", "0", files=["0.json", "-"], input=read("1.json"))
        self.assertEqual((answer.stdout, answer.stderr), (f"count(*)\n{4 * QUERY_MANY_STEPS}\n", ""))

    def test_option(self):
        for value in ("x", "-1", ""):
            self.assertIn("--keep", self.ask("SELECT 1", "--keep", value).stderr)


class Partitions(unittest.TestCase):
    TABLES = "calls,steps,collectives,files"

    def export(self, folder, *files, tables=TABLES, **more):
        answer = run("export", "--partition", folder, "--tables", tables, *files, **more)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))

    def rows(self, *names):
        return list(csv.DictReader(read(*names).splitlines()))

    def test_ranks_have_folders(self):
        self.export("parts", *reversed(query_many_ranks()))
        self.assertEqual(sorted(os.listdir(path("parts"))), ["_duckdb.sql", "rank=0", "rank=1", "rank=2"])
        for table in self.TABLES.split(","):
            asked = run("query", "--format", "csv", f"SELECT * FROM {table}", *reversed(query_many_ranks())).stdout
            for rank in range(QUERY_MANY_RANKS):
                of_rank = [row for row in csv.DictReader(asked.splitlines()) if row.pop("rank") == str(rank)]
                self.assertEqual(self.rows("parts", f"rank={rank}", f"{table}.csv"), of_rank)
                self.assertEqual(read("parts", f"rank={rank}", f"{table}.csv").splitlines()[0].split(",").count("rank"), 0)

    def test_several_files_of_a_rank_and_none(self):
        """A rank's second file continues its tables; another run of the command begins them anew."""
        nobody = write("nobody.json", '{"traceEvents":[\n{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":1,"dur":2}\n]}\n')
        for _ in range(2):
            self.export("again", "1.json", nobody, "0.json", "1.json")
        calls = self.rows("again", "rank=1", "calls.csv")
        self.assertEqual([row["file"] for row in calls], sorted(row["file"] for row in calls))
        self.assertEqual({row["file"] for row in calls}, {"1", "4"})
        self.assertEqual(len({row["id"] for row in calls}), len(calls))
        self.assertEqual(len(self.rows("again", "rank=__HIVE_DEFAULT_PARTITION__", "calls.csv")), 1)

    def test_the_same_bytes_with_few_files_open(self):
        self.export("one", *query_many_ranks() * 6, tables="calls,steps")
        self.export("two", *query_many_ranks() * 6, tables="calls,steps", preexec_fn=few_files)
        for folder, _, names in os.walk(path("one")):
            for name in names:
                same = os.path.join(path("two"), os.path.relpath(os.path.join(folder, name), path("one")))
                self.assertEqual(read(os.path.join(folder, name)), read(same))

    def test_views_name_every_column(self):
        self.export("views", "0.json", tables="steps,files")
        views = read("views", "_duckdb.sql")
        self.assertEqual(views.count("CREATE OR REPLACE VIEW"), 2)
        for table in ("steps", "files"):
            for column in read("views", "rank=0", table + ".csv").splitlines()[0].split(","):
                self.assertIn(f"'{column}': '", views)

    def test_beside_the_other_forms(self):
        answer = run("export", "--partition", "p", "--csv", "c", "--ndjson", "n", "--tables", "steps", *query_many_ranks())
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        self.assertEqual(len(read("c", "steps.csv").splitlines()), 1 + QUERY_MANY_RANKS * QUERY_MANY_STEPS)
        self.assertEqual(len(read("n", "steps.ndjson").splitlines()), QUERY_MANY_RANKS * QUERY_MANY_STEPS)
        self.assertEqual(sum(len(self.rows("p", f"rank={rank}", "steps.csv")) for rank in range(QUERY_MANY_RANKS)), QUERY_MANY_RANKS * QUERY_MANY_STEPS)

    def test_a_bad_file_leaves_no_pieces(self):
        answer = run("export", "--csv", "pieces", "--tables", "calls,steps", "0.json", "none.json")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("none.json", answer.stderr)
        self.assertFalse(os.path.exists(path("pieces")))


def span(phase, name, thread, ts, number, **arguments):
    return {"ph": phase, "cat": "span", "name": name, "pid": 9, "tid": thread, "ts": ts, "id": number, "args": arguments}


class Spans(unittest.TestCase):
    """Ends come before beginnings; one stays open; one has begun before the file."""

    FIGURES = {"outcome": "finished", "good": 1, "tokens": 5, "preemptions": 1, "first_step": 3, "steps": 4, "total_ns": 100352,
               "ttft_ns": 40960, "generated_ns": 40000, "queued_ns": 10240, "preempted_ns": 1024, "reading_ns": 20480,
               "crowded_ns": 4096, "behind_ns": 2048}
    EVENTS = (
        span("e", "chat", 12, 150.5, 1, id=4711), span("n", "chat", 12, 150.5, 1, **FIGURES), span("b", "chat", 11, 50.1, 1, id=4711),
        span("n", "queued", 12, 60.1, 1, since_ns=10000), span("b", "chat", 11, 70, 2, id=str(2**64 - 1)), span("e", "chat", 12, 20, 3, id=7),
        span("n", "chat", 12, 20, 3, **{**FIGURES, "outcome": "cancelled", "good": 0, "tokens": 1, "ttft_ns": 0, "total_ns": 10240}))

    def ask(self, sql):
        return ask(sql, write_trace("spans.json", self.EVENTS))

    def test_spans(self):
        self.assertEqual(self.ask("SELECT span, id, name, thread, end_thread, start_ns, end_ns, duration_ns, duration_us FROM spans"),
                         [(1, 4711, "chat", 11, 12, 50100, 150500, 100400, 100.4), (2, -1, "chat", 11, None, 70000, None, None, None)])

    def test_marks(self):
        self.assertEqual(self.ask("SELECT span, name, thread, time_ns, since_ns FROM span_marks"), [(1, "queued", 12, 60100, 10000)])

    def test_requests(self):
        parts = "queued_ns, preempted_ns, prefill_ns, crowded_ns, decode_ns, behind_ns"
        self.assertEqual(self.ask(f"SELECT id, start_ns, duration_ns, outcome, good, tokens, ttft_ns, tpot_ns, {parts} FROM requests"),
                         [(4711, 50100, 100400, "finished", 1, 5, 40960, 10000.0, 10240, 1024, 16384, 4096, 66560, 2048),
                          (None, 9760, 10240, "cancelled", 0, 1, None, None, 10240, 0, 0, 0, 0, 0)])
        self.assertEqual(self.ask("SELECT r.id, s.thread, (SELECT count(*) FROM span_marks m WHERE m.span = r.span) FROM requests r"
                                  " JOIN spans s USING (file, span)"), [(4711, 11, 1)])


# ---- SQL and databases from anybody ----

# pk query lets them reach rows, and nothing else.


def make_safety_runs():
    make_runs(1, 30)


class Safety(unittest.TestCase):
    def test_functions_that_know_more_than_their_arguments(self):
        """fts3_tokenizer reads a function's address, and sets one."""
        for call in ("fts3_tokenizer('simple')", "fts3_tokenizer('simple', x'0123456789abcdef')", "load_extension('x')", "fts5(1)",
                     "sqlite_compileoption_get(1)", "sqlite_compileoption_used('x')", "sqlite_log(1, 'x')", "sqlite_source_id()",
                     "changes()", "total_changes()", "last_insert_rowid()", "rtreecheck('x')", "rtreenode(1, x'00')", "rtreedepth(x'00')",
                     "matchinfo('x')", "snippet('x')", "'a' MATCH 'b'"):
            self.refused_sql(f"SELECT {call}", "no.* function")
            self.refused_sql(f"SELECT count(*) FROM calls WHERE {call} IS NULL", "no.* function")

    def refused_sql(self, sql, says, *files):
        done = run("query", sql, *(files or [path("0.json")]))
        self.assertEqual((done.returncode, done.stdout), (2, ""), sql)
        self.assertRegex(done.stderr, f"\\Apk: [^\n]*{says}", sql)

    def test_functions_that_know_only_their_arguments(self):
        """Each of SQLite's that is not among those above can be called: the list forgets none."""
        refused = {"fts3_tokenizer", "load_extension", "sqlite_compileoption_get", "sqlite_compileoption_used", "sqlite_log",
                   "sqlite_source_id", "changes", "total_changes", "last_insert_rowid", "match", "matchinfo", "snippet", "offsets",
                   "optimize", "highlight", "bm25", "subtype", "sqlite_offset", "unknown"}
        strange = re.compile("rtree|fts5|geopoly|sqlite_|icu_|decimal|ieee754|sha|edit|readfile|writefile|lsmode|shell_|usleep|strtod|dtostr")
        known = sqlite3.connect(":memory:").execute("SELECT DISTINCT name, narg, type FROM pragma_function_list").fetchall()
        calls = []
        for name, count, kind in known:
            if name not in refused and not strange.match(name) and name.isidentifier():
                given = ", ".join(["NULL"] * (count if count >= 0 else 2))
                calls.append(f"{name}({given})" + (" OVER ()" if kind == "w" else ""))
        self.assertGreater(len(calls), 60)
        for call in calls:
            done = run("query", f"SELECT 1 WHERE 0 UNION ALL SELECT {call} LIMIT 0", path("0.json"))
            self.assertNotIn("not authorized", done.stderr, call)

    def test_tables_that_are_none(self):
        for name in ("dbstat", "sqlite_dbpage", "fts3tokenize('simple', 'a')", "sqlite_stmt", "bytecode('x')"):
            for columns in ("*", "count(*)"):
                self.refused_sql(f"SELECT {columns} FROM {name}", "no such table")
        self.refused_sql("SELECT * FROM pragma_database_list", "not authorized")

    def test_a_database_of_somebody_else(self):
        """What its schema asks for is not done, be it in a view or by a virtual table."""
        made = path("strange.sqlite")
        with sqlite3.connect(made) as db:
            db.execute("CREATE TABLE plain(x)")
            db.execute("INSERT INTO plain VALUES (7)")
            db.execute("CREATE VIEW good AS SELECT x + 1 AS y FROM plain")
            db.execute("CREATE VIEW bad AS SELECT hex(fts3_tokenizer('simple')) AS y FROM plain")
            for module in ("fts3(t)", "fts4(t)", "fts5(t)", "rtree(id, a, b)", "dbstat(main)", "fts3tokenize(simple)"):
                try:
                    db.execute(f"CREATE VIRTUAL TABLE v_{module[:module.index('(')]} USING {module}")
                except sqlite3.OperationalError:
                    pass  # not in Python's SQLite
        db.close()
        self.assertEqual(ask("SELECT y FROM good", made), [(8,)])
        self.refused_sql("SELECT y FROM bad", "(not authorized to use function|unsafe use)", made)
        virtual = [name for name, in ask("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'", made)]
        self.assertIn("v_rtree", virtual)
        for name in virtual:
            self.refused_sql(f"SELECT * FROM {name}", "no such module", made)

    def test_a_text_that_is_too_long(self):
        many = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n LIMIT 70) "
        self.refused_sql(many + "SELECT length(group_concat(hex(zeroblob(500000)))) FROM n", "string or blob too big")
        self.assertEqual(ask("SELECT length(group_concat(hex(zeroblob(500)))) FROM calls"), ask("SELECT 1001 * count(*) - 1 FROM calls"))

    def test_nothing_is_changed(self):
        database = path("kept.db")
        self.assertEqual(run("export", "--sqlite", database, path("0.json")).returncode, 0)
        with open(database, "rb") as file:
            before = file.read()
        for sql in ("DELETE FROM steps", "DROP TABLE steps", "CREATE TABLE x(y)", "PRAGMA user_version = 7", "VACUUM",
                    f"ATTACH '{path('new.db')}' AS n", "INSERT INTO steps SELECT * FROM steps"):
            for file in (database, path("0.json")):
                self.assertEqual(run("query", sql, file).returncode, 2, sql)
        self.assertFalse(os.path.exists(path("new.db")))
        with open(database, "rb") as file:
            self.assertEqual(file.read(), before)


def setUpModule():
    """Each group of cases has runs of its own."""
    {"Tables": make_table_runs, "Forms": make_form_runs, "FileByFile": make_many_runs, "Safety": make_safety_runs}[CASES[0]]()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + CASES)
