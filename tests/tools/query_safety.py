"""query_safety.py PK RUN_TRACE - SQL and databases from anybody: pk query lets them reach rows, and nothing else."""

import os
import re
import sqlite3
import sys
import unittest

from query_kit import ask, make_runs, path, run


def setUpModule():
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
