"""prove.py ROOT - every figure of the tests on a GPU has its cell in docs/gpu-results.md, and gets there."""

import glob
import os
import re
import sys

import results

KEY = re.compile(r'gpu_figure\(\s*"([^"]+)"')


def check(root):
    with open(os.path.join(root, "docs", "gpu-results.md"), encoding="utf-8") as file:
        document = file.read()
    cells = {match.group(2) for match in results.CELL.finditer(document)}
    keys = set()
    for path in glob.glob(os.path.join(root, "tests", "gpu", "*.c")):
        with open(path, encoding="utf-8") as file:
            keys |= set(KEY.findall(file.read()))
    yield from (f"no cell for {key}" for key in sorted(keys - cells - {"device", "cuda"}))
    figures = {key: f"figure of {key}" for key in cells} | {"device": "a device"}
    filled = results.fill(document, figures)
    yield from (f"{key} is not filled in" for key in cells if f"figure of {key} |" not in filled)
    if "on a device," not in filled or results.fill(filled, figures) != filled:
        yield "the state is not filled in, or not again"
    if results.NOT_MEASURED in filled or results.fill(filled, {}).count(results.NOT_MEASURED) != len(cells):
        yield "cells without a figure do not say so"


if __name__ == "__main__":
    complaints = list(check(sys.argv[1]))
    print("\n".join(complaints))
    sys.exit(1 if complaints else 0)
