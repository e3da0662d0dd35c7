"""clocks.py MPIEXEC PROGRAM PRELOAD PK - real messages between ranks whose clocks are then made to differ: each rank
becomes a node of its own, with an offset and a drift that are known, and where `pk merge` puts its events has to be as
near to the truth as it says."""

import json
import os
import random
import subprocess
import sys
import tempfile
from decimal import Decimal

import launch

RANKS = 4


def spoil(text, rank, offset, drift):
    """The trace as it would be by another clock; and its base by the true one."""
    document = json.loads(text, parse_float=Decimal)
    clock, base = document["metadata"]["clock"], document["metadata"]["clock"]["base_monotonic_ns"]
    document["metadata"]["host"] = f"node{rank}"
    clock["id"], clock["base_monotonic_ns"] = f"clock {rank}", base + offset

    def local(us):
        return us + Decimal(round(us * 1000 * Decimal(drift))) / 1000

    for event in document["traceEvents"]:
        if "dur" in event:
            event["dur"] = max(local(event["ts"] + event["dur"]) - local(event["ts"]), Decimal(0))
        event["ts"] = local(event["ts"])
    document["baseTimeNanoseconds"] += random.randint(-10**9, 10**9)  # real time is of no help
    lines = ",\n".join(json.dumps(e, default=float) for e in document["traceEvents"])
    head = json.dumps({key: value for key, value in document.items() if key not in ("traceEvents", "perfkitReport")}, default=float)
    return head[:-1] + ',\n"traceEvents":[\n' + lines + "\n]}\n", base


def starts(text, pid=None):
    return [int(Decimal(str(e["ts"])) * 1000) for e in json.loads(text, parse_float=Decimal)["traceEvents"]
            if e["ph"] == "X" and e["name"] == "clock message" and pid in (None, e["pid"])]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def check(folder, pk, seed):
    random.seed(seed)
    clocks = [(0, 0.0)] + [(random.randint(-10**12, 10**12), random.uniform(-2e-5, 2e-5)) for _ in range(RANKS - 1)]
    truth, job = {}, os.path.join(folder, f"job{seed}")
    os.mkdir(job)
    for rank, (offset, drift) in enumerate(clocks):
        text = read(os.path.join(folder, f"run-{rank}.json"))
        spoilt, base = spoil(text, rank, offset, drift)
        truth[json.loads(text)["metadata"]["pid"]] = (rank, [base + at for at in starts(text)])
        with open(os.path.join(job, f"run-{rank}.json"), "w", encoding="utf-8") as file:
            file.write(spoilt)
    done = subprocess.run([pk, "merge", job, "-o", os.path.join(job, "all.json")], capture_output=True, text=True, check=False)
    if done.returncode:
        yield done.stderr
        return
    merged = read(os.path.join(job, "all.json"))
    said = {c["host"]: c for c in json.loads(merged)["metadata"]["clocks"]}
    zero = None
    for pid, (rank, true) in sorted(truth.items(), key=lambda item: item[1]):
        seen, about = starts(merged, pid), said[f"node{rank}"]
        zero = seen[0] - true[0] if rank == 0 else zero
        if rank and (about["method"] != "messages and collectives" or about["broken"]):
            yield f"node{rank}: {about}"
            continue
        wrong = max(abs(a - t - zero) for a, t in zip(seen, true))
        if len(seen) != len(true) or wrong > about["uncertainty_ns"] + 2:  # times are rounded twice
            yield f"node{rank} is {wrong} ns from the truth: {about}"


def by_time(folder, rank):
    """When it has measured."""
    return [event["ts"] for event in json.loads(read(os.path.join(folder, f"run-{rank}.json")))["traceEvents"]
            if event["ph"] == "X" and event["name"] == "clocks of nodes"]


def again(mpiexec, steps):
    """Measured anew each second, at the same collective on all ranks."""
    settings = {"PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json", "PK_MPI_CLOCKS": "all", "PK_MPI_CLOCKS_SECONDS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 3, [steps, "slow"], folder, settings)
        times = [len(by_time(folder, rank)) for rank in range(3)]
        if times[0] < 3 or max(times[1:]) < 3:  # behind MPI_Init, between, and in MPI_Finalize
            yield f"again: the clocks of ranks are measured {times} times"


def silent(mpiexec, steps):
    """A partner whose session has ended hears nothing: the others go on, and the program ends as it should."""
    settings = {"PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json", "PK_MPI_CLOCKS": "all", "PK_MPI_CLOCKS_SECONDS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 3, [steps, "silent"], folder, settings)
        times = [len(by_time(folder, rank)) for rank in range(3)]
        if times[0] <= times[1]:
            yield f"silent: the clocks of ranks are measured {times} times"


def refused(mpiexec, steps):
    """A value that is none, and values that differ: one line, nothing is measured, nobody waits."""
    settings = {"PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json", "PK_LOG": "stderr"}
    for value, line in ("yes", "PK_MPI_CLOCKS=yes is neither"), ("$VALUE", "PK_MPI_CLOCKS differs"):
        with tempfile.TemporaryDirectory() as folder:
            script = f'VALUE=$(( ${{PMIX_RANK:-$PMI_RANK}} % 2 )); export PK_MPI_CLOCKS="{value}"; exec "$0" before'
            done = launch.finish(mpiexec, 3, ["sh", "-c", script, steps], folder, settings)
            if done.stderr.count(line) != 3 or any(starts(read(os.path.join(folder, f"run-{rank}.json"))) for rank in range(3)):
                yield f"PK_MPI_CLOCKS={value}: {done.stderr[-800:]}"


def main(mpiexec, program, preload, pk, steps):
    complaints = []
    settings = {"LD_PRELOAD": os.path.abspath(preload), "PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json"}
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, RANKS, [os.path.abspath(program)], folder, settings | {"PK_MPI_CLOCKS": "all"})
        messages = [len(starts(read(os.path.join(folder, f"run-{rank}.json")))) for rank in range(RANKS)]
        # Behind MPI_Init and in MPI_Finalize: two for each trip, with one partner or two.
        if min(messages) < 4 or max(messages) > 2 * 2 * 2 * 50:
            complaints.append(f"there are {messages} messages")
        for seed in range(5):
            complaints += check(folder, os.path.abspath(pk), seed)
    with tempfile.TemporaryDirectory() as folder:  # one node: nothing to measure
        launch.run(mpiexec, RANKS, [os.path.abspath(program)], folder, settings | {"PK_MPI_CLOCKS": "1"})
        if any(starts(read(os.path.join(folder, f"run-{rank}.json"))) for rank in range(RANKS)):
            complaints.append("there are messages within a node")
    steps = os.path.abspath(steps)
    complaints += [*again(mpiexec, steps), *silent(mpiexec, steps), *refused(mpiexec, steps)]
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
