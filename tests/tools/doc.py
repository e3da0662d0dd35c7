"""doc.py report ROOT, doc.py query PAGE PK RUN_TRACE - pages against what they describe."""

import json
import os
import re
import subprocess
import sys
import tempfile


# ---- report ----

# Docs/internals/report-format.md names every member of the report, every verdict and the schema.


def members(value):
    """Every key of the objects in it, however deep."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key
            yield from members(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from members(inside)


def report(root):
    def read(*path):
        with open(os.path.join(root, *path), encoding="utf-8") as file:
            return file.read()

    page = read("docs", "internals", "report-format.md")
    named = set(re.findall(r"`\"?([\w-]+)\"?`", page))
    written = {member for name in ("report-train.json", "report-gpu.json", "report-comm.json", "report-capture.json")
               for member in members(json.loads(read("tests", "golden", name)))}
    rules = [name for name in sorted(os.listdir(os.path.join(root, "lib", "measure", "verdict"))) if name.endswith(".c")]
    given = set(re.findall(r'"([a-z]+(?:-[a-z]+)+|waiting|unsteady|drifting|overhead|untracked|unbalanced|incomplete|rebuilt)"',
                           "".join(read("lib", "measure", "verdict", name) for name in rules)
                           + read("tools", "rebuild", "rebuild.c")))
    schema = re.search(r"#define PKI_REPORT_SCHEMA (\d+)", read("lib", "measure", "summary.h")).group(1)
    missing = sorted((written | given) - named)
    for name in missing:
        print(f"docs/internals/report-format.md does not name {name}")
    if f'`"schema"` is **{schema}**' not in page:
        print(f"docs/internals/report-format.md does not say that the schema is {schema}")
        missing.append("schema")
    if len(written) < 90 or len(given) < 25:
        print(f"found only {len(written)} members and {len(given)} verdicts: this test looks in the wrong place")
        return 1
    return 1 if missing else 0


# ---- query ----

# The SQL of docs/query.md is answered as the page shows it, to the letter.

BLOCK = re.compile(r"<!-- on: ([^\n]*) -->\n```sql\n(.*?)```\n```output\n(.*?)```\n", re.S)


def make_files(pk, run_trace):
    """Those of tests/docs/given/pages.sh."""
    for rank in range(4):
        subprocess.run([run_trace, f"rank{rank}.json", str(rank), "4", "60"], check=True)
    with open("report.json", "w", encoding="utf-8") as file:
        subprocess.run([pk, "report", "--json", "rank0.json"], check=True, stdout=file)


def query(page, pk, run_trace):
    pk, run_trace, wrong = os.path.abspath(pk), os.path.abspath(run_trace), 0
    with open(page, encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    if len(blocks) < 9:
        print(f"{page}: found {len(blocks)} questions only: this test looks in the wrong place")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_files(pk, run_trace)
        for files, sql, shown in blocks:
            answer = subprocess.run([pk, "query", sql, *files.split()], capture_output=True, text=True, encoding="utf-8", check=False)
            if answer.stdout != shown or answer.returncode:
                print(f"{sql}is shown to answer\n{shown}and answers\n{answer.stdout}{answer.stderr}")
                wrong += 1
        os.chdir("/")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit({"report": report, "query": query}[sys.argv[1]](*sys.argv[2:]))
