"""results.py FORM DOCUMENT [FIGURES...] - docs/gpu-results.md from results.md and figures of runs on GPUs; without any: that
nothing was seen.

FIGURES has lines "key<TAB>text" (run.sh). "run" begins a run, "device" and "cuda" say on what, "test.NAME" is "begun", then
the test's outcome; what stands between the two is the test's: figures, and "wrong", what was not so. A test's later run
replaces its earlier one. Every cell of the form that begins with <!--key--> gets the figure of that key, or "?"; a section
of which nothing was measured is left out of the document. The paragraph <!--state-->...<!--end--> says what has been seen, on what and when, and what has not.
"""

import datetime
import os
import re
import subprocess
import sys

CELL = re.compile(r"(<!--([a-z0-9_.]+)-->)[^|\n]*\|")
STATE = re.compile(r"(<!--state-->).*?(<!--end-->)", re.DOTALL)
NOT_MEASURED = "?"
HERE = os.path.dirname(os.path.abspath(__file__))


def tests():
    """Their names: a line of the list has one, and what it wants and shows."""
    list_of = subprocess.run([os.path.join(HERE, "run.sh"), "--list"], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in list_of.splitlines()]


def read(paths):
    """What each test has left, by its name: its outcome, its figures, what was wrong, and of which run."""
    seen, run, now = {}, {"run": "?", "device": "?", "cuda": "?"}, None
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                key, tab, text = line.rstrip("\n").partition("\t")
                text = text.replace("|", "/")
                if not tab:
                    continue
                if key == "run":
                    run, now = {"run": text, "device": "?", "cuda": "?"}, None
                elif key in run:
                    run[key] = text
                elif key.startswith("test."):
                    begins = text == "begun" or key[5:] not in seen or seen[key[5:]] is not now
                    if begins:
                        # One that there was no time for has not unseen what was seen before.
                        if text.startswith("not run") and key[5:] in seen:
                            continue
                        now = seen[key[5:]] = {"outcome": text, "figures": {}, "wrong": [], "run": run}
                    now["outcome"] = "cut off" if text == "begun" else text
                elif now is not None and key == "wrong":
                    now["wrong"].append(text)
                elif now is not None:
                    now["figures"][key] = text
    return seen


def is_seen(test):
    return test["outcome"].startswith(("well", "failed", "cut off"))


def unseen(seen, names):
    """Names that no device has run, each with its reason if there is one."""
    reasons = {name: seen[name]["outcome"] if name in seen else "" for name in names}
    return ", ".join(f"{name} ({reason})" if reason else name for name, reason in reasons.items())


def state(seen, names, today):
    """The head of the document."""
    done = [name for name in names if name in seen and is_seen(seen[name])]
    rest = [name for name in names if name not in done]
    if not done:
        return (f"**Seen on a device: nothing, as of {today}.** No GPU has run any of these tests yet: {', '.join(names)}. All of it "
                "is unverified on a device. They run on mocks of the driver, CUPTI, NCCL, cuBLAS and PyTorch (suite `gpu`): that says "
                "that the tests work, and that perfkit does what it means to with the answers that it expects; not that devices "
                "give them.")
    paragraphs = []
    runs = []
    for name in done:
        if seen[name]["run"] not in runs:
            runs.append(seen[name]["run"])
    for run in runs:
        of = [name for name in done if seen[name]["run"] is run]
        well = [name for name in of if seen[name]["outcome"].startswith("well")]
        bad = [f"{name} ({seen[name]['outcome']})" for name in of if name not in well]
        paragraphs.append(f"**Seen on {run['device']}**, driver for CUDA {run['cuda']}, {run['run']}: well: "
                          f"{', '.join(well) or 'none'}; not: {', '.join(bad) or 'none'}.")
    paragraphs.append(f"**Not seen on a device, as of {today}:** {unseen(seen, rest) or 'none of the tests'}.")
    wrong = [f"- {name}: `{text.replace('`', '')}`" for name in done for text in seen[name]["wrong"]]
    if wrong:
        paragraphs.append("What was not so:\n\n" + "\n".join(wrong))
    return "\n\n".join(paragraphs)


def wrapped(text, width=100):
    """Paragraphs in lines of the documentation's length; a list's lines stay as they are."""
    lines = []
    for line in text.split("\n"):
        now = ""
        for word in line.split(" ") if not line.startswith("- ") else [line]:
            if now and len(now) + 1 + len(word) > width:
                lines.append(now)
                now = word
            else:
                now = f"{now} {word}" if now else word
        lines.append(now)
    return "\n".join(lines)


def measured(form):
    """The form without the sections of which nothing was, and without its keys."""
    head, *sections = re.split(r"(?m)^(?=## )", form)
    kept = [section for section in sections
            if not CELL.search(section) or any(m.group(0) != f"{m.group(1)}{NOT_MEASURED} |" for m in CELL.finditer(section))]
    return re.sub(r"<!--[a-z0-9_.]+-->\n?", "", "".join([head, *kept]))


def fill(document, seen, names, today):
    """The form with the figures; keys that it has no cell for are told."""
    figures = {key: text for test in seen.values() for key, text in test["figures"].items()}
    cells = {match.group(2) for match in CELL.finditer(document)}
    for key in sorted(set(figures) - cells):
        print(f"no cell for {key}: {figures[key]}")
    document = CELL.sub(lambda m: f"{m.group(1)}{figures.get(m.group(2), NOT_MEASURED)} |", document)
    return STATE.sub(lambda m: m.group(1) + "\n" + wrapped(state(seen, names, today)) + "\n" + m.group(2), document)


def main(form, document, *paths):
    with open(form, encoding="utf-8") as file:
        text = file.read()
    text = measured(fill(text, read(paths), tests(), datetime.date.today().isoformat()))
    with open(document, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
