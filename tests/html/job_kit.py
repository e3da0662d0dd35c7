"""job_kit.py - forged jobs, their pages, and what is in both."""

import json
import math
import os
import re
import statistics
import subprocess

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
WAITING = ("comm", "wait")


def forge(program, folder, **numbers):
    """The ranks that are slow."""
    os.mkdir(folder)
    done = subprocess.run([program, folder, *(f"{key}={value}" for key, value in numbers.items())], check=True, capture_output=True, text=True, timeout=300)
    return [int(line) for line in done.stdout.split()]


def files(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


def pk_job(pk, *arguments, **more):
    return subprocess.run([pk, "job", *arguments], capture_output=True, text=True, timeout=300, check=False, **more)


def page(pk, path, *arguments, **more):
    done = pk_job(pk, "--html", path, *arguments, **more)
    if (done.returncode, done.stdout, done.stderr) != (0, "", ""):
        raise AssertionError(done)
    return path


def without_charts(pk):
    done = pk_job(pk, "--html", "-", "/nowhere")
    return "built without" in done.stderr


def embedded(path, name):
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', file.read(), re.DOTALL).group(1))


def cells(text):
    return [64 * DIGITS.index(a) + DIGITS.index(b) for a, b in zip(text[::2], text[1::2])]


class Rank:
    """A rank's file as it is."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.report = json.load(file)
        stages, width = self.report["stages"], self.report["stages"]["width"]
        blocks = stages["loops"][0]["blocks"]
        self.rank = self.report["run"]["rank"]
        self.stages = stages["names"]
        self.blocks = [blocks[i:i + width] for i in range(0, len(blocks), width)]

    def step(self, block):
        _, steps, took, _ = self.blocks[block][:4]
        return took / steps

    def own(self, block):
        """For the same work."""
        _, _, took, items = self.blocks[block][:4]
        waited = sum(ns for stage, ns in zip(self.stages, self.blocks[block][4:]) if stage["kind"] in WAITING)
        return (took - waited) / items

    def stage(self, at):
        return sum(block[4 + at] for block in self.blocks) / sum(block[1] for block in self.blocks)


def heat_of(ranks, figure, per_row):
    """Thousandths of the median, rows of `per_row` ranks, the largest of each."""
    rows = []
    for block in range(len(ranks[0].blocks)):
        values = [figure(rank, block) for rank in ranks]
        middle = statistics.median(values)
        shown = [math.floor(1000 * value / middle + 0.5) for value in values]
        rows.append([max(shown[i:i + per_row]) for i in range(0, len(shown), per_row)])
    return [column[row] for row in range(len(rows[0])) for column in rows]


# ---- how the page writes figures (tools/html/common.js) ----

def digits(value):
    size = abs(value)
    return f"{value:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def time(ns):
    size, unit = float(ns), 0
    while abs(size) >= 999.5 and unit < 3:
        size /= 1000
        unit += 1
    return (str(int(size)) if unit == 0 and size == int(size) else digits(size)) + "\u202f" + ("ns", "µs", "ms", "s")[unit]


def percent(share):
    value, size = 100 * share, abs(100 * share)
    if 0 < size < 0.005:
        return "<0.01\u202f%"
    return f"{value:.{0 if size == 0 else 2 if size < 0.995 else 1 if size < 99.95 else 0}f}\u202f%"


def signed(share):
    return "+" + percent(share) if share > 0 else percent(share).replace("-", "−")
