"""google_benchmark.py PROGRAM [REFERENCE] - Google Benchmark's readers take what pk_bench writes.

PROGRAM is a program of pk/bench.h. Its JSON is held, member by member and type by type, against that of
REFERENCE, a program of Google Benchmark's own library (where that is installed), else against the members
recorded below from one; then compare.py reads two of our files, with its U test; then what CI services
are known to read is looked up as they do it.
"""

import json
import math
import os
import subprocess
import sys
import tempfile

# Members and types of Google Benchmark 1.7.1, recorded from a program with repetitions, a rate and a label.
NUMBER, TEXT, BOOL, LIST = "number", "text", "bool", "list"
CONTEXT = {"date": TEXT, "host_name": TEXT, "executable": TEXT, "num_cpus": NUMBER, "mhz_per_cpu": NUMBER,
           "cpu_scaling_enabled": BOOL, "caches": LIST, "load_avg": LIST, "library_build_type": TEXT}
CACHE = {"type": TEXT, "level": NUMBER, "size": NUMBER, "num_sharing": NUMBER}
ROW = {"name": TEXT, "family_index": NUMBER, "per_family_instance_index": NUMBER, "run_name": TEXT,
       "run_type": TEXT, "repetitions": NUMBER, "repetition_index": NUMBER, "threads": NUMBER,
       "iterations": NUMBER, "real_time": NUMBER, "cpu_time": NUMBER, "time_unit": TEXT}
AGGREGATE = {**{key: ROW[key] for key in ROW if key != "repetition_index"}, "aggregate_name": TEXT,
             "aggregate_unit": TEXT}
COMPARE = "/usr/share/benchmark/compare.py"
QUICK = ["--repetitions", "9", "--max-samples", "20", "--max-warmup", "1ms", "--quiet", "--filter",
         "contiguous|strided"]


def type_of(value):
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, (int, float)):
        return NUMBER
    return {str: TEXT, list: LIST}.get(type(value), "object")


def lacks(what, wanted, have):
    """Members of `wanted` that `have` is without, or has as another type."""
    return [f"{what}: {key} should be a {kind}, is {type_of(have[key]) if key in have else 'missing'}"
            for key, kind in wanted.items() if key not in have or type_of(have[key]) != kind]


def shape(rows):
    """The members that all rows have, with their types."""
    common = set.intersection(*(set(row) for row in rows))
    return {key: type_of(rows[0][key]) for key in common}


def of_type(document, kind):
    return [row for row in document["benchmarks"] if row["run_type"] == kind]


def measure(program, path):
    subprocess.run([*emulator(), program, *QUICK, "--json", path], check=True)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def emulator():
    return os.environ.get("MESON_EXE_WRAPPER", "").split()


def check_members(ours, context, cache, row, aggregate):
    complaints = lacks("context", context, ours["context"])
    for one in ours["context"]["caches"]:
        complaints += lacks("cache", cache, one)
    for one in of_type(ours, "iteration"):
        complaints += lacks(one["name"], row, one)
    for one in of_type(ours, "aggregate"):
        complaints += lacks(one["name"], aggregate, one)
    return complaints


def check_reference(ours, reference):
    """The same, against a file that the real library has just written."""
    made = subprocess.run([reference, "--benchmark_format=json", "--benchmark_repetitions=2",
                           "--benchmark_min_time=0.001"], check=True, capture_output=True, text=True)
    theirs = json.loads(made.stdout)
    caches = theirs["context"]["caches"]
    complaints = check_members(ours, shape([theirs["context"]]), shape(caches) if caches else CACHE,
                               shape(of_type(theirs, "iteration")), shape(of_type(theirs, "aggregate")))
    names = {row["aggregate_name"] for row in of_type(theirs, "aggregate")}
    mine = {row["aggregate_name"] for row in of_type(ours, "aggregate")}
    return complaints + [f"no aggregate called {name}" for name in names - mine]


def check_figures(ours):
    """What they mean: aggregates are those of the rows, repetitions are complete, units are theirs."""
    complaints = []
    for row in of_type(ours, "aggregate"):
        real = [one["real_time"] for one in of_type(ours, "iteration") if one["run_name"] == row["run_name"]]
        mean = sum(real) / len(real)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in real) / (len(real) - 1))
        should = {"mean": mean, "median": sorted(real)[len(real) // 2], "stddev": deviation,
                  "cv": deviation / mean}[row["aggregate_name"]]
        if not math.isclose(row["real_time"], should, rel_tol=1e-6):
            complaints.append(f"{row['name']}: is {row['real_time']}, should be {should}")
        if len(real) != 9 or row["repetitions"] != 9:
            complaints.append(f"{row['name']}: {len(real)} repetitions")
    complaints += [f"{row['name']}: unit {row['time_unit']}" for row in ours["benchmarks"]
                   if row["time_unit"] != "ns"]
    return complaints


def check_services(ours):
    """What CI services make of a file: name, value, unit, and a line of more."""
    for row in ours["benchmarks"]:
        entry = {"name": row["name"], "value": row["real_time"], "unit": row["time_unit"] + "/iter",
                 "extra": f"iterations: {row['iterations']}\ncpu: {row['cpu_time']} {row['time_unit']}\n"
                          f"threads: {row['threads']}"}
        if not (entry["name"] and entry["value"] >= 0):
            yield f"{row['name']}: {entry}"


def find_python():
    """compare.py needs scipy; Debian's is its own Python's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import scipy.stats"], capture_output=True).returncode == 0:
            return python
    return None


def check_compare(folder, names):
    """Complaints; None: this machine cannot tell."""
    python = find_python()
    if not os.path.exists(COMPARE) or not python:
        return None
    dump = os.path.join(folder, "dump.json")
    read = subprocess.run([python, COMPARE, "-d", dump, "benchmarks", folder + "/a.json", folder + "/b.json"],
                          capture_output=True, text=True)
    if read.returncode != 0:
        return ["compare.py: " + read.stderr[-2000:]]
    with open(dump, encoding="utf-8") as file:
        rows = {row["name"]: row for row in json.load(file)}
    complaints = [f"compare.py does not list {name}" for name in names if name not in rows]
    for name in names:
        utest = rows.get(name, {}).get("utest", {})
        if name in rows and utest.get("nr_of_repetitions") != 9:
            complaints.append(f"{name}: the U test saw {utest}")
    return complaints


def main(program, reference=None):
    with tempfile.TemporaryDirectory() as folder:
        ours = measure(program, folder + "/a.json")
        measure(program, folder + "/b.json")
        names = list(dict.fromkeys(row["run_name"] for row in ours["benchmarks"]))
        complaints = check_members(ours, CONTEXT, CACHE, ROW, AGGREGATE)
        complaints += check_figures(ours) + list(check_services(ours))
        compared = check_compare(folder, names)
        if reference:
            complaints += check_reference(ours, reference)
    complaints += compared or []
    for complaint in complaints:
        print(complaint)
    if complaints or not names:
        sys.exit(1)
    if compared is None:
        print("skipped: the rest holds, but compare.py (Debian: libbenchmark-tools, python3-scipy) is not installed")
        sys.exit(77)


if __name__ == "__main__":
    main(*sys.argv[1:])
