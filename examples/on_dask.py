"""on_dask.py - a statement of pk query, as it stands, on Dask: a job's files on many machines, none with all rows.

    python3 on_dask.py SCHEDULER TABLE KEY STATEMENT FILE...     for instance: tcp://head:8786 steps rank "SELECT ..." runs/*.json

Needs dask.distributed, files that the workers can read under the same names, and pk there (PK says where). TABLE is the one
that STATEMENT reads, KEY the columns (with commas) by which its rows may be apart: what the statement groups or partitions by.

    files --- pk export, a group of files at a time ---> rows of TABLE, cut by a hash of KEY ---> to the cut's worker:
    a database of the cut's rows --- pk query STATEMENT ---> its answer; here: MERGE, SQL on the table `answers`

With KEY "rank" nothing is moved: each group of files is asked, and the answers are put together.
"""

import csv
import io
import os
import sqlite3
import subprocess
import sys
import tempfile
import zlib


def pk(*arguments):
    done = subprocess.run([os.environ.get("PK", "pk"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"pk {arguments[0]}: status {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def query(statement, files):
    return pk("query", "--keep", "0", "--format", "csv", statement, *files)


def row_bytes(rows):
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return zlib.compress(text.getvalue().encode(), 1)


def cut(table, key, cuts, files):
    """The rows of these files, in so many parts."""
    parts = [[] for _ in range(cuts)]
    with tempfile.TemporaryDirectory() as folder:
        pk("export", "--partition", folder, "--tables", table, *files)
        for where in sorted(os.listdir(folder)):
            path = os.path.join(folder, where, table + ".csv")
            if not where.startswith("rank=") or not os.path.exists(path):
                continue
            with open(path, newline="") as file:
                rows, rank = csv.reader(file), where[len("rank="):]
                names = next(rows) + ["rank"]
                order, by = sorted(range(len(names)), key=names.__getitem__), [names.index(column) for column in key]
                for row in rows:
                    row.append(rank)
                    part = zlib.crc32("\0".join(row[i] for i in by).encode()) % cuts
                    parts[part].append([row[i] for i in order])
    return [row_bytes(rows) for rows in parts]


def columns_of(table, file, folder):
    """An empty table of that name, in a database that pk query reads."""
    path = os.path.join(folder, "cut.db")
    pk("export", "--sqlite", path, "--tables", table, file)
    with sqlite3.connect(path) as database:
        database.execute(f"DELETE FROM {table}")
        return path, sorted(name for _, name, *_ in database.execute(f"PRAGMA table_info({table})"))


def answer(table, statement, file, number, *groups):
    """What the statement says of one cut."""
    with tempfile.TemporaryDirectory() as folder:
        path, columns = columns_of(table, file, folder)
        database = sqlite3.connect(path)
        into = f"INSERT INTO {table}({','.join(columns)}) VALUES({','.join('?' * len(columns))})"
        for parts in groups:
            rows = csv.reader(io.StringIO(zlib.decompress(parts[number]).decode()))
            database.executemany(into, ([value or None for value in row] for row in rows))
        database.commit()
        database.close()
        return query(statement, [path])


def merged(answers, merge):
    database, names, count = sqlite3.connect(":memory:"), None, 0
    for text in answers:
        head, *rows = list(csv.reader(io.StringIO(text)))
        if names is None:
            names = head
            database.execute(f"CREATE TABLE answers({', '.join(chr(34) + name + chr(34) + ' NUMERIC' for name in names)})")
        database.executemany(f"INSERT INTO answers VALUES({','.join('?' * len(names))})",
                             ([value or None for value in row] for row in rows))
    return [tuple(row) for row in database.execute(merge)]


def ask(client, table, key, statement, files, merge="SELECT * FROM answers", group=64, cuts=8):
    key = key.split(",")
    groups = [files[i:i + group] for i in range(0, len(files), group)]
    if key == ["rank"]:
        return merged(client.gather(client.map(lambda part: query(statement, part), groups, pure=False)), merge)
    parts = client.map(lambda part: cut(table, key, cuts, part), groups, pure=False)
    asked = [client.submit(answer, table, statement, files[0], number, *parts, pure=False) for number in range(cuts)]
    return merged(client.gather(asked), merge)


if __name__ == "__main__":
    from dask.distributed import Client

    with Client(sys.argv[1]) as to:
        for line in ask(to, *sys.argv[2:5], [os.path.abspath(path) for path in sys.argv[5:]]):
            print(*line, sep=",")
