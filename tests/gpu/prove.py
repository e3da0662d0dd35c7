"""prove.py ROOT - docs/gpu-results.md is what results.py makes of its form and the figures that are kept, and every figure has
its cell in the form."""

import glob
import os
import re
import sys
import tempfile

import results

KEY = re.compile(r'gpu_figure\(\s*"([^"]+)"|figure\("([a-z0-9_.]+)"')
DATE = re.compile(r"as of \d{4}-\d\d-\d\d")
NAMES = ["status", "pairs", "capture"]


def keys_of(root):
    keys = set()
    for path in glob.glob(os.path.join(root, "tests", "gpu", "*.[cp]*")):
        with open(path, encoding="utf-8") as file:
            keys |= {first or second for first, second in KEY.findall(file.read())}
    return keys


def form_of(root):
    with open(os.path.join(root, "tests", "gpu", "results.md"), encoding="utf-8") as file:
        return file.read()


def check_document(root):
    form = form_of(root)
    with open(os.path.join(root, "docs", "gpu-results.md"), encoding="utf-8") as file:
        document = file.read()
    cells = {match.group(2) for match in results.CELL.finditer(form)}
    yield from (f"no cell for {key}" for key in sorted(keys_of(root) - cells))
    kept = sorted(glob.glob(os.path.join(root, "tests", "gpu", "figures", "*.tsv")))
    again = results.measured(results.fill(form, results.read(kept), results.tests(), "2000-01-01"))
    if DATE.sub("", again) != DATE.sub("", document):
        yield "docs/gpu-results.md is not what results.py makes of tests/gpu/results.md and figures: ./dev gpu-results"
    for name in results.tests():
        if f"`{name}`" not in form:
            yield f"tests/gpu/results.md does not name the test {name}"


def read(*texts):
    paths = []
    for text in texts:
        with tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False) as file:
            file.write(text)
        paths.append(file.name)
    seen = results.read(paths)
    for path in paths:
        os.unlink(path)
    return seen


HEAD = "run\t2030-01-02 03:04 UTC, commit abc\ndevice\t1 x A device\ncuda\t13.0\n"


def check_reading():
    first = read(HEAD + "test.status\tbegun\na.b\tone\ntest.status\twell, 1 s\ntest.pairs\tbegun\nc.d\ttwo\nwrong\tx.c:1: not so\n")
    if first["status"]["figures"] != {"a.b": "one"} or first["pairs"]["outcome"] != "cut off":
        yield f"a run that was cut off: {first}"
    head = results.state(first, NAMES, "2030-01-03")
    for words in ("Seen on 1 x A device", "2030-01-02 03:04 UTC, commit abc", "well: status; not: pairs (cut off)",
                  "as of 2030-01-03:** capture.", "- pairs: `x.c:1: not so`"):
        if words not in head:
            yield f"the head does not say {words!r}: {head}"
    later = read(HEAD + "test.status\tbegun\na.b\tone\ne.f\tgone\ntest.status\twell, 1 s\n",
                 HEAD.replace("A device", "Another") + "test.status\tbegun\na.b\tthree\ntest.status\tfailed (1), 2 s\n"
                 "test.pairs\tbegun\ntest.pairs\tskipped: no such thing\ntest.capture\tnot run: 3 s were left, it wants 10\n")
    if later["status"]["figures"] != {"a.b": "three"} or later["status"]["run"]["device"] != "1 x Another":
        yield f"a later run does not replace an earlier one: {later}"
    head = results.state(later, NAMES, "2030-01-03")
    if "not: status (failed (1), 2 s)" not in head or "pairs (skipped: no such thing), capture (not run: 3 s" not in head:
        yield f"what was skipped and not run: {head}"
    kept = read(HEAD + "test.status\tbegun\na.b\tone\ntest.status\twell, 1 s\ntest.status\tnot run: 1 s was left, it wants 5\n")
    if kept["status"]["figures"] != {"a.b": "one"}:
        yield f"a test that there was no time for has removed what was measured: {kept}"


def check_filling(root):
    document = form_of(root)
    cells = {match.group(2) for match in results.CELL.finditer(document)}
    seen = read(HEAD + "test.status\tbegun\n" + "".join(f"{key}\tfigure of {key}\n" for key in cells) + "test.status\twell, 1 s\n")
    filled = results.fill(document, seen, NAMES, "2030-01-03")
    yield from (f"{key} is not filled in" for key in cells if f"figure of {key} |" not in filled)
    if results.fill(filled, seen, NAMES, "2030-01-03") != filled:
        yield "the second time makes something else"
    empty = results.fill(filled, {}, NAMES, "2030-01-03")
    if results.NOT_MEASURED in filled or empty.count(results.NOT_MEASURED) != len(cells) or "nothing, as of 2030-01-03" not in empty:
        yield "cells without a figure do not say so"
    whole, none = results.measured(filled), results.measured(empty)
    if "figure of bench.cold" not in whole or "## Kernels by pk_bench" in none or "## How to run" not in none or "<!--" in whole.replace(
            "<!-- ", ""):
        yield "sections without a figure are not left out, or others are"


if __name__ == "__main__":
    complaints = [*check_document(sys.argv[1]), *check_reading(), *check_filling(sys.argv[1])]
    print("\n".join(complaints))
    sys.exit(1 if complaints else 0)
