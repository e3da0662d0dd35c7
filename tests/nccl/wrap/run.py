"""run.py [--old] PK DOUBLE PROGRAM [LIBRARY] - the program alone, then with the library preloaded (or, without
one, linked with it): the same results bit by bit, and in trace, report and `pk report` of the trace every operation
of its ledger once."""

import collections
import json
import os
import subprocess
import sys
import tempfile

ON = {"PK_NCCL_START": "1", "PK_TRACE_PATH": "run.json", "PK_REPORT_PATH": "report.json",
      "PK_BACKENDS": "cuda", "PK_LOG": "stderr"}


def run(program, double, folder, **settings):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PK_")}
    done = subprocess.run([program, double, folder], cwd=folder, timeout=120, capture_output=True, text=True,
                          env={**environment, **settings})
    if done.returncode or done.stdout:
        sys.exit(f"{program}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def wanted(folder):
    lines = (line.split("|") for line in read(folder, "ledger").splitlines())
    return collections.Counter((comm, op, *map(int, rest)) for comm, op, *rest in lines)


def found(trace):
    keys = []
    for event in trace["traceEvents"]:
        if event.get("cat") == "collective":
            args = event["args"]
            keys.append((args["Process Group Name"], args["Collective name"], args.get("bytes", 0),
                         args.get("calls", 1), args.get("communicators", 1)))
            if args["timed by"] != "stream" or args["device"] != 0 or event["dur"] < 0:
                sys.exit(f"not as it should be: {event}")
    return collections.Counter(keys)


def totals(operations):
    """Calls and bytes by communicator and operation."""
    sums = collections.defaultdict(lambda: [0, 0])
    for (comm, op, size, calls, _), count in operations.items():
        sums[comm, op][0] += count * calls
        sums[comm, op][1] += count * calls * size
    return dict(sums)


def reported(report):
    sums = collections.defaultdict(lambda: [0, 0])
    names = [row["name"] for row in report["comm"]["communicators"]]
    for row in report["comm"]["collectives"]:
        key = names[row["communicator"]].split(" #")[0], row["operation"]
        sums[key][0] += row["time"]["count"]
        sums[key][1] += row["bytes"]
    return dict(sums)


def compare(what, left, right):
    return [f"{what}: {key}: {left.get(key)} wanted, {right.get(key)} found"
            for key in sorted({*left, *right}, key=str) if left.get(key) != right.get(key)]


def rebuilt(pk, folder):
    if pk == "none":
        return None
    with open(os.path.join(folder, "events.json"), "w", encoding="utf-8") as file: # without the report in it
        json.dump({"traceEvents": json.loads(read(folder, "run.json"))["traceEvents"]}, file)
    text = subprocess.run([pk, "report", "--json", "events.json"], cwd=folder, check=True, capture_output=True).stdout
    return reported(json.loads(text))


def check(pk, folder):
    operations = wanted(folder)
    trace, report = json.loads(read(folder, "run.json")), json.loads(read(folder, "report.json"))
    complaints = compare("trace", operations, found(trace))
    complaints += compare("report", totals(operations), reported(report))
    again = rebuilt(pk, folder)
    if again is not None:
        complaints += compare("pk report", totals(operations), again)
    for row in report["comm"]["communicators"]:
        if row["on_stream"] != row["time"]:
            complaints.append(f"not timed on streams: {row}")
    regions = {event["name"] for event in trace["traceEvents"] if event["ph"] == "X"}
    complaints += [f"no region {name}" for name in ("ncclCommSplit", "ncclCommDestroy") if name not in regions]
    return complaints


def main(*arguments):
    old = arguments[0] == "--old"
    pk = arguments[old] if arguments[old] == "none" else os.path.abspath(arguments[old])
    double, program, *libraries = map(os.path.abspath, arguments[old + 1:])
    with tempfile.TemporaryDirectory() as folder:
        said = run(program, double, folder)
        alone = read(folder, "result")
        if libraries:
            ON["LD_PRELOAD"] = libraries[0]
            if run(program, double, folder, LD_PRELOAD=libraries[0], PK_CUDA_LIBRARY=double) != said:
                sys.exit("perfkit off: another stderr")
        off = read(folder, "result")
        if os.path.exists(os.path.join(folder, "run.json")):
            sys.exit("perfkit off: a trace")
        said = run(program, double, folder, PK_CUDA_LIBRARY=double, **ON)
        complaints = check(pk, folder)
        if not alone == off == read(folder, "result"):
            complaints.append(f"other results:\n{alone}\n---\n{read(folder, 'result')}")
        if old == ("AlltoAll: 0" in alone):
            complaints.append("this NCCL is not as old as it should be")
    print("\n".join(complaints))
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main(*sys.argv[1:])
