"""selfcheck.py PK OLD TWIN SLOWER2 SLOWER5 [--minutes M] [--decisions N] [--workers N] [--google PROGRAM]
[--kernel NAME] [--write FILE] - how often `pk bench-ab` is right: OLD and TWIN are the same build, SLOWER2 and SLOWER5 do 2 and 5 % more work.

Every cell takes its turn, so whatever ends the run (M minutes, N decisions) leaves all cells equally far; workers
take turns at the same time, which loads the machine. With --write the tables replace what stands between the marks in FILE.
"""

import argparse
import collections
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

KERNELS = {"arithmetic": ("50 ns arithmetic", ["--launches=30", "--time=1s"]),
           "memory": ("50 µs memory", ["--launches=90", "--time=1.8s"])}
FILES, ROWS = 200, 50  # of the simulation
BEGIN, END = "<!-- selfcheck: begin -->", "<!-- selfcheck: end -->"

options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
options.add_argument("pk")
options.add_argument("builds", nargs=4)
options.add_argument("--minutes", type=float, default=60)
options.add_argument("--decisions", type=int, default=100)
options.add_argument("--workers", type=int, default=1)
options.add_argument("--google")
options.add_argument("--kernel", choices=KERNELS)
options.add_argument("--write")
options = options.parse_args()
chosen = [options.kernel] if options.kernel else list(KERNELS)
builds = dict(zip(("old", "A/A", "+2 %", "+5 %"), map(os.path.abspath, options.builds)))
TRUTH = {"A/A": 1.0, "+2 %": 1.02, "+5 %": 1.05}


class Cell:
    def __init__(self):
        self.decisions = self.flags = self.wrong = self.unsure = 0
        self.seconds, self.cpu, self.ratios = 0.0, 0.0, []


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2 if values else math.nan


def launch_logs(folder, name):
    """What compare_gather.c makes of each launch: the median of its rounds' ratios, as logarithms."""
    sides = []
    for side in ("old", "new"):
        with open(os.path.join(folder, side + ".json"), encoding="utf-8") as file:
            rows = json.load(file)["benchmarks"]
        sides.append({r["perfkit"]["pair"]: r["perfkit"]["samples"] for r in rows if r["name"] == name})
    for pair in sides[0].keys() & sides[1].keys():
        old, new = sides[0][pair], sides[1][pair]
        rounds = min(len(old), len(new)) // 2
        yield median(math.log((new[2 * i] + new[2 * i + 1]) / (old[2 * i] + old[2 * i + 1])) for i in range(rounds))


def launch(cell, *command):
    """What it writes to stdout; its time and CPU time go to the cell."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
        cell.seconds += time.monotonic() - began
        cell.cpu += used.ru_utime + used.ru_stime
        out.seek(0)
        return json.load(out)


def decide(cell, name, build, pool):
    with tempfile.TemporaryDirectory() as folder:
        told = launch(cell, options.pk, "bench-ab", builds["old"], builds[build], f"--filter=^{name}$", "--json=-",
                      "--quiet", "--save", folder, *KERNELS[name][1])
        if build == "A/A":
            pool[name] += launch_logs(folder, name)
    row = told["comparisons"][0]["benchmarks"][0]
    cell.decisions += 1
    cell.flags += row["verdict"] == "slower"
    cell.wrong += row["verdict"] in (("slower", "faster") if build == "A/A" else ("faster", "same"))
    cell.unsure += row["verdict"] == "cannot tell"
    cell.ratios.append(row["ratio"])


# ---- beside it: nine repetitions and a U test ----

def ranks_p(a, b):
    """Mann and Whitney's U, two-sided, exact (no ties among times), as compare.py asks of SciPy."""
    n, m = len(a), len(b)
    u = sum((x > y) + 0.5 * (x == y) for x in a for y in b)
    ways = collections.Counter({(0, 0): 1})
    for rank in range(n + m):
        for (taken, total), count in list(ways.items()):
            if taken < n:
                ways[taken + 1, total + rank] += count
    sums = {total - n * (n - 1) // 2: count for (taken, total), count in ways.items() if taken == n}
    extreme = min(u, n * m - u)
    return min(1.0, 2 * sum(c for k, c in sums.items() if k <= extreme) / sum(sums.values()))


def repetitions(cell, name):
    told = launch(cell, options.google, f"--benchmark_filter=^{name}$", "--benchmark_repetitions=9",
                  "--benchmark_min_time=0.05", "--benchmark_format=json")
    return [r["real_time"] for r in told["benchmarks"] if r["run_type"] == "iteration"]


def decide_google(cell, name):
    old, new = repetitions(cell, name), repetitions(cell, name)
    cell.decisions += 1
    cell.wrong += ranks_p(old, new) < 0.05


# ---- a file of 50 benchmarks, from the launches that were recorded ----

def simulated(folder, pool, shift, numbers):
    for side in ("old", "new"):
        rows = []
        for i in range(ROWS):
            logs = numbers.choices(pool[list(pool)[i % len(pool)]], k=20)
            times = [1000.0 if side == "old" else 1000 * math.exp(log + shift) for log in logs]
            rows += [{"name": f"b{i}", "run_type": "iteration", "real_time": t, "cpu_time": t, "time_unit": "ns",
                      "perfkit": {"launch": f"{k:032x}", "pair": k + 1, "samples": [t, t]}} for k, t in enumerate(times)]
        ours = {"format": "perfkit bench", "schema": 1, "ab": {"session": "s", "side": side, "method": "one-process"}}
        with open(os.path.join(folder, side + ".json"), "w", encoding="utf-8") as file:
            json.dump({"context": {"perfkit": ours}, "benchmarks": rows}, file)
    done = subprocess.run([options.pk, "compare", "--threshold=1%", "--json=-", os.path.join(folder, "old.json"),
                           os.path.join(folder, "new.json")], capture_output=True, check=False)
    rows = json.loads(done.stdout)["comparisons"][0]["benchmarks"]
    return any(row["verdict"] in ("slower", "faster") for row in rows)


def simulate(pool, shift):
    numbers = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        return sum(simulated(folder, pool, shift, numbers) for _ in range(FILES))


# ---- all of it ----

def work(turns, cells, pool, loads, until):
    for turn in turns:
        if time.monotonic() > until:
            break
        for name in chosen:
            for build in TRUTH:
                decide(cells[name, build], name, build, pool)
            if options.google and turn % 2 == 0:
                decide_google(cells[name, "google"], name)
        loads.append(os.getloadavg()[0])
        print(f"{len(loads)} turns, load {loads[-1]:.1f}", file=sys.stderr, flush=True)


def run():
    """Each worker has its turns and cells of its own; then they are added up."""
    until, loads = time.monotonic() + 60 * options.minutes, []
    pool = collections.defaultdict(list)
    own = [collections.defaultdict(Cell) for _ in range(options.workers)]
    workers = [threading.Thread(target=work, args=(range(i, options.decisions, options.workers), own[i], pool, loads,
                                                   until)) for i in range(options.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    cells = collections.defaultdict(Cell)
    for some in own:
        for key, cell in some.items():
            for field, value in vars(cell).items():
                setattr(cells[key], field, getattr(cells[key], field) + value)
    return cells, pool, loads


def tables(cells, pool, loads):
    lines = [f"{len(loads)} turns on {os.cpu_count()} processors under a load of {min(loads):.1f} to {max(loads):.1f} "
             f"(median {median(loads):.1f}), {options.workers} at a time.", "",
             "| kernel | builds | decisions | \"slower\" | wrong | cannot tell | ratio, median | farthest off | s per decision | of it CPU |",
             "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for (name, build), c in sorted(cells.items(), key=lambda item: (item[0][0], item[0][1] == "google", item[0][1])):
        kernel, per = KERNELS[name][0], f"{c.seconds / c.decisions:.1f} | {c.cpu / c.decisions:.1f}"
        if build == "google":
            lines.append(f"| {kernel} | A/A, Google Benchmark, 9 repetitions, U test 0.05 | {c.decisions} | | {c.wrong} | | | "
                         f"| {per} |")
            continue
        off = max(abs(r - TRUTH[build]) for r in c.ratios) * 100
        lines.append(f"| {kernel} | {build} | {c.decisions} | {c.flags} | {c.wrong} | {c.unsure} | {median(c.ratios):.4f} "
                     f"| {off:.2f} points | {per} |")
    lines += ["", f"Files of {ROWS} benchmarks, 20 launches each drawn from the {sum(map(len, pool.values()))} launches of"
              " identical builds above, compared by `pk compare`:", "",
              "| true ratio of all 50 | files | files with a \"slower\" or \"faster\" |", "|---|--:|--:|"]
    for shift, words in ((0, "1: identical builds"), (math.log(1.01), "1.01: exactly at the margin")):
        lines.append(f"| {words} | {FILES} | {simulate(pool, shift)} |")
    return "\n".join(lines) + "\n"


def write(text):
    with open(options.write, encoding="utf-8") as file:
        whole = file.read()
    before, rest = whole.split(BEGIN)
    with open(options.write, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}")


said = tables(*run())
print(said)
if options.write:
    write(said)
