"""query_doc.py PAGE PK RUN_TRACE - the SQL of docs/query.md is answered as the page shows it, to the letter."""

import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"<!-- on: ([^\n]*) -->\n```sql\n(.*?)```\n```output\n(.*?)```\n", re.S)


def make_files(pk, run_trace):
    """Those of tests/docs/given/query.sh."""
    for rank in range(4):
        subprocess.run([run_trace, f"rank{rank}.json", str(rank), "4", "60"], check=True)
    with open("report.json", "w", encoding="utf-8") as file:
        subprocess.run([pk, "report", "--json", "rank0.json"], check=True, stdout=file)


def main(page, pk, run_trace):
    pk, run_trace, wrong = os.path.abspath(pk), os.path.abspath(run_trace), 0
    with open(page, encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    if len(blocks) < 10:
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
    sys.exit(main(*sys.argv[1:]))
