"""query_kit.py - runs that never were in a folder of their own, and pk query and pk export of them. PK and RUN_TRACE are the
program's first arguments."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

PK, RUN_TRACE = map(os.path.abspath, sys.argv[1:3])
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
