"""duckdb.py PAGE PK RUN_TRACE BUILD - the statements for DuckDB in docs/query.md, by DuckDB, on files of pk export.

DuckDB's library is asked through its C interface, which takes less than a program around it would."""

import ctypes
import os
import platform
import random
import re
import subprocess
import sys
import tempfile

import viewers

RANKS = 1024
PACKAGE = "@duckdb/node-bindings-linux-x64"
MARK = "<!-- not run: DuckDB's, by tests/consumer/duckdb.py -->\n"
BLOCK = re.compile(re.escape(MARK) + r"```sql\n(.*?)```\n(?:" + re.escape(MARK) + r"```output\n(.*?)```\n)?", re.S)
BESIDE = ("""SELECT rank, name, count(*) AS calls, quantile_cont(duration_us, 0.99) AS p99_us
FROM read_csv('out/rank*/calls.csv') WHERE kind = 'compute' GROUP BY ALL ORDER BY p99_us DESC, rank LIMIT 3
""", """rank,name,calls,p99_us
2,backward,60,3583.86593
2,forward,60,3581.8636799999995
3,backward,60,3099.46861
"""), ("""SELECT sequence, max(duration_ns) - min(duration_ns) AS waited_ns, arg_min(rank, duration_ns) AS last_rank
FROM read_json('lines/collectives.ndjson', format = 'newline_delimited', ignore_errors = true)
GROUP BY sequence ORDER BY waited_ns DESC LIMIT 3
""", """sequence,waited_ns,last_rank
25,999090,2
17,994337,2
23,994166,2
""")


class Result(ctypes.Structure):
    _fields_ = [("ours", ctypes.c_uint64 * 3), ("pointers", ctypes.c_void_p * 3)]


class DuckDB:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.duckdb_result_error.restype = ctypes.c_char_p
        self.library.duckdb_column_name.restype = ctypes.c_char_p
        self.library.duckdb_value_varchar.restype = ctypes.c_void_p
        self.library.duckdb_library_version.restype = ctypes.c_char_p
        for name in ("duckdb_column_count", "duckdb_row_count"):
            getattr(self.library, name).restype = ctypes.c_uint64
        self.database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.library.duckdb_open(None, ctypes.byref(self.database)) == 0
        assert self.library.duckdb_connect(self.database, ctypes.byref(self.connection)) == 0

    def cell(self, result, column, row):
        text = self.library.duckdb_value_varchar(ctypes.byref(result), ctypes.c_uint64(column), ctypes.c_uint64(row))
        value = "" if not text else ctypes.string_at(text).decode()
        self.library.duckdb_free(ctypes.c_void_p(text))
        return value

    def ask(self, sql):
        """Names and rows, with commas between them."""
        result = Result()
        if self.library.duckdb_query(self.connection, sql.encode(), ctypes.byref(result)):
            raise RuntimeError(self.library.duckdb_result_error(ctypes.byref(result)).decode())
        columns = range(self.library.duckdb_column_count(ctypes.byref(result)))
        lines = [",".join(self.library.duckdb_column_name(ctypes.byref(result), ctypes.c_uint64(i)).decode() for i in columns)]
        for row in range(self.library.duckdb_row_count(ctypes.byref(result))):
            lines.append(",".join(self.cell(result, i, row) for i in columns))
        self.library.duckdb_destroy_result(ctypes.byref(result))
        return "\n".join(lines) + "\n"


def make_files(pk, run_trace):
    """As the page does it."""
    for rank in range(4):
        subprocess.run([run_trace, f"rank{rank}.json", str(rank), "4", "60"], check=True)
        os.makedirs("out", exist_ok=True)
        subprocess.run([pk, "export", "--csv", f"out/rank{rank}", "--tables", "calls,steps,collectives", f"rank{rank}.json"], check=True)
    subprocess.run([pk, "export", "--partition", "job", "--tables", "calls,steps,collectives"] + [f"rank{r}.json" for r in range(4)], check=True)
    subprocess.run([pk, "export", "--ndjson", "lines", "--tables", "collectives"] + [f"rank{r}.json" for r in range(4)], check=True)


def check(page, pk, run_trace, engine):
    with open(page, encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    assert len(blocks) >= 4, f"{len(blocks)} statements for DuckDB in {page}"
    make_files(pk, run_trace)
    wrong = 0
    for sql, shown in (*blocks, *BESIDE):
        said = engine.ask(sql)
        if shown and said != shown:
            print(f"{sql}\nis shown to answer\n{shown}\nand answers\n{said}")
            wrong += 1
    # All that pk query says of a table is in DuckDB's, too.
    same = "SELECT count(*) AS n, sum(duration_ns) AS ns, sum(self_ns) AS self FROM "
    ours = subprocess.run([pk, "query", "--format", "csv", same + "calls"] + [f"rank{r}.json" for r in range(4)],
                          check=True, capture_output=True, text=True).stdout
    theirs = engine.ask(same + "read_csv('out/rank*/calls.csv')")
    if ours != theirs:
        print(f"pk query counts\n{ours}\nand DuckDB\n{theirs}")
        wrong += 1
    return 1 if wrong else 0


def forge_job(run_trace):
    """Traces of very many ranks, of which one is slow: two runs, with other ranks in them."""
    os.makedirs("many")
    for rank, slow in ((0, False), (2, True)):
        subprocess.run([run_trace, f"many-{rank}.json", str(rank), str(RANKS), "1", "cpu"], check=True)
        with open(f"many-{rank}.json", encoding="utf-8") as file:
            text = file.read()
        mark = f'"rank": {rank},'
        assert mark in text
        for i in range(RANKS):
            if (i == 700) == slow:
                with open(f"many/{i}.json", "w", encoding="utf-8") as file:
                    file.write(text.replace(mark, f'"rank": {i},'))


def check_job(pk, run_trace, engine):
    """All ranks by the views that stand beside their folders, and as Parquet, in little memory."""
    forge_job(run_trace)
    files = [f"many/{rank}.json" for rank in range(RANKS)]
    subprocess.run([pk, "export", "--partition", "ranks", "--tables", "calls"] + files, check=True)
    same = "SELECT count(*) AS n, sum(duration_ns) AS ns, sum(self_ns) AS self, min(rank) AS first, max(rank) AS last FROM "
    ours = subprocess.run([pk, "query", "--keep", "0", "--format", "csv", same + "calls"] + files, check=True, capture_output=True, text=True).stdout
    os.chdir("ranks")
    with open("_duckdb.sql", encoding="utf-8") as file:
        for statement in file.read().split(";\n"):
            if statement.strip():
                engine.ask(statement)
    for setting in ("memory_limit = '150MB'", "preserve_insertion_order = false"):
        engine.ask("SET " + setting)
    engine.ask("COPY (SELECT * FROM calls) TO 'calls.parquet' (FORMAT parquet)")
    slow = "SELECT arg_max(rank, ns) AS slowest, count(*) AS ranks FROM (SELECT rank, sum(self_ns) AS ns FROM 'calls.parquet' WHERE kind = 'compute' GROUP BY rank)"
    for sql, wanted in ((same + "'calls.parquet'", ours), (slow, f"slowest,ranks\n700,{RANKS}\n"),
                        ("SELECT count(DISTINCT rank) AS ranks FROM calls", f"ranks\n{RANKS}\n")):
        said = engine.ask(sql)
        assert said == wanted, f"{sql} of {RANKS} ranks is\n{said}and should be\n{wanted}"


def main(page, pk, run_trace, build):
    if platform.machine() != "x86_64":
        raise viewers.Skip(f"there is no package of DuckDB for {platform.machine()} in packages.json")
    page, pk, run_trace = (os.path.abspath(path) for path in (page, pk, run_trace))
    engine = DuckDB(viewers.package(PACKAGE, os.path.abspath(build)))
    print(f"DuckDB {engine.library.duckdb_library_version().decode()}")
    os.environ["MALLOC_PERTURB_"] = str(random.randrange(1, 256))  # as meson does; what runs from here on is ours
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            wrong = check(page, pk, run_trace, engine)
            check_job(pk, run_trace, engine)
            return wrong
        finally:
            os.chdir("/")


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except viewers.Skip as why:
        print(f"skipped: {why}")
        sys.exit(77)
