"""results.py FIGURES DOCUMENT - figures of a run on a GPU into docs/gpu-results.md.

FIGURES has lines "key<TAB>text" (run.sh). In the document every cell that begins with <!--key--> gets the
figure of that key, or "not measured". The paragraph <!--state-->...<!--end--> says on what, and when.
"""

import re
import sys

CELL = re.compile(r"(<!--([a-z0-9_.]+)-->)[^|\n]*\|")
STATE = re.compile(r"(<!--state-->).*?(<!--end-->)", re.DOTALL)
NOT_MEASURED = "not measured"


def read(path):
    figures = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, text = line.rstrip("\n").partition("\t")
            figures[key] = text.replace("|", "/")
    return figures


def state(figures):
    return (f"Measured on {figures.get('device', 'an unknown device')}, driver for CUDA {figures.get('cuda', '?')}, on "
            f"{figures.get('date', '?')}. Tests that failed: {figures.get('failed', '?')}; that were skipped: "
            f"{figures.get('skipped', '?')}.")


def fill(document, figures):
    """The document with the figures; keys that it has no cell for are told."""
    cells = {match.group(2) for match in CELL.finditer(document)}
    about = {"device", "cuda", "date", "failed", "skipped"}
    for key in sorted(set(figures) - cells - about):
        print(f"no cell for {key}: {figures[key]}")
    document = CELL.sub(lambda m: f"{m.group(1)}{figures.get(m.group(2), NOT_MEASURED)} |", document)
    return STATE.sub(lambda m: m.group(1) + state(figures) + m.group(2), document)


def main(figures, document):
    with open(document, encoding="utf-8") as file:
        text = file.read()
    text = fill(text, read(figures))
    with open(document, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
