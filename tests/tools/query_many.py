"""query_many.py PK RUN_TRACE - pk query and pk export over many files: file by file they say what all files together say;
a folder for each rank; spans and requests."""

import csv
import os
import resource
import sys
import unittest

from query_kit import ask, make_runs, path, read, run, write, write_trace

RANKS, STEPS = 3, 8

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


def ranks():
    return [f"{rank}.json" for rank in range(RANKS)]


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))


def setUpModule():
    make_runs(RANKS, STEPS)


class FileByFile(unittest.TestCase):
    def ask(self, sql, *options, files=None, **more):
        return run("query", "--format", "csv", *options, sql, *(files or ranks()), **more)

    def test_the_same_as_together(self):
        for sql in QUESTIONS:
            together = self.ask(sql)
            self.assertEqual((together.returncode, together.stderr), (0, ""), sql)
            one_by_one = self.ask(sql, "--keep", "0")
            self.assertEqual((one_by_one.returncode, one_by_one.stderr), (0, ""), sql)
            self.assertEqual(one_by_one.stdout, together.stdout, sql)

    def test_few_files_are_open(self):
        answer = self.ask("SELECT count(*) FROM steps", "--keep", "0", files=ranks() * 8, preexec_fn=few_files)
        self.assertEqual((answer.stdout, answer.stderr), (f"count(*)\n{STEPS * RANKS * 8}\n", ""))

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
        self.assertEqual((answer.stdout, answer.stderr), (f"count(*)\n{4 * STEPS}\n", ""))

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
        self.export("parts", *reversed(ranks()))
        self.assertEqual(sorted(os.listdir(path("parts"))), ["_duckdb.sql", "rank=0", "rank=1", "rank=2"])
        for table in self.TABLES.split(","):
            asked = run("query", "--format", "csv", f"SELECT * FROM {table}", *reversed(ranks())).stdout
            for rank in range(RANKS):
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
        self.export("one", *ranks() * 6, tables="calls,steps")
        self.export("two", *ranks() * 6, tables="calls,steps", preexec_fn=few_files)
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
        answer = run("export", "--partition", "p", "--csv", "c", "--ndjson", "n", "--tables", "steps", *ranks())
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        self.assertEqual(len(read("c", "steps.csv").splitlines()), 1 + RANKS * STEPS)
        self.assertEqual(len(read("n", "steps.ndjson").splitlines()), RANKS * STEPS)
        self.assertEqual(sum(len(self.rows("p", f"rank={rank}", "steps.csv")) for rank in range(RANKS)), RANKS * STEPS)

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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
