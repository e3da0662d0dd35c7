"""report_doc.py ROOT - docs/internals/report-format.md names every member of the report, every verdict and the schema."""

import json
import os
import re
import sys


def members(value):
    """Every key of the objects in it, however deep."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key
            yield from members(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from members(inside)


def main(root):
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
