"""query_forms.py PK RUN_TRACE GOLDEN - the forms in which pk query answers, and pk export writes."""

import csv
import json
import os
import sqlite3
import sys
import unittest

from query_kit import ask, make_runs, path, run, write

GOLDEN = os.path.abspath(sys.argv[3])
RANKS = 3


def ranks():
    return [path(f"{rank}.json") for rank in range(RANKS)]


def setUpModule():
    make_runs(RANKS, 30)


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
        self.assertEqual(run("export", "--csv", out, "--ndjson", out, "--tables", "calls,steps,files", *ranks()).returncode, 0)
        self.assertEqual(sorted(os.listdir(out)), [f"{t}.{e}" for t in ("calls", "files", "steps") for e in ("csv", "ndjson")])
        for table in ("calls", "steps", "files"):
            wanted = ask(f"SELECT * FROM {table}", *ranks())
            with open(f"{out}/{table}.ndjson", encoding="utf-8") as file:
                self.assertEqual([tuple(json.loads(line).values()) for line in file], wanted)
            answer = run("query", "--format", "csv", f"SELECT * FROM {table}", *ranks())
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
