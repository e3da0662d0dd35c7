"""launch.py - how this folder starts ranks (Open MPI and MPICH, as root and not, on fewer processors than ranks), and what
traces and reports say that they did, in the words of ledger.h."""

import collections
import json
import os
import re
import subprocess
import sys

# Open MPI warns of what containers forbid; MPICH takes no notice. Ranks that wait let others have the processor: other
# tests run beside them.
ALLOW = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
         "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "OMPI_MCA_mpi_yield_when_idle": "1", "UCX_LOG_LEVEL": "info"}

# UCX, below MPICH, writes to stdout what it has to say: with the level above in every run, and without it where
# something is missing (/sys). That is not what the program prints.
UCX = re.compile(r"^\[[\d.]+\] \[[^\]\n]*\] .*\bUCX +[A-Z]+ .*\n", re.MULTILINE)


def finish(mpiexec, ranks, command, folder, settings=None, fails=False):
    """Runs the ranks; what became of them. Ends the test if they fail, or if they do not although they should."""
    env = dict(os.environ, **ALLOW)
    for name in [name for name in env if name.startswith("PK_")]:
        del env[name]
    words = ["env"] + [f"{name}={value}" for name, value in (settings or {}).items()]
    done = subprocess.run([mpiexec, "-n", str(ranks), *words, *command], cwd=folder, env=env, timeout=250,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        print("skipped: this MPI does not support MPI_THREAD_MULTIPLE")
        sys.exit(77)
    if (done.returncode != 0) != fails:
        need_ranks(mpiexec)
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    done.stdout = UCX.sub("", done.stdout)
    return done


def run(*args, **options):
    """What the ranks print."""
    return finish(*args, **options).stdout


def need_ranks(mpiexec):
    """Ends with 77 where this machine's MPI cannot start processes at all. Asked once something has failed: it takes
    half a second."""
    env = dict(os.environ, **ALLOW)
    done = subprocess.run([mpiexec, "-n", "2", "true"], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=60)
    if done.returncode != 0:
        print(f"skipped: {mpiexec} starts no processes here: {done.stderr.strip()[-500:]}")
        sys.exit(77)


# ---- what ranks did ----


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def expected(folder, rank):
    """Calls by name, and operations."""
    calls, operations = collections.Counter(), collections.Counter()
    with open(os.path.join(folder, f"expected-{rank}"), encoding="utf-8") as file:
        for line in file:
            words = line.rstrip("\n").split("\t")
            if words[0] != "request":
                calls[words[0]] += 1
            if len(words) > 1:
                operations[(*words[:3], *map(int, words[3:]))] += 1
    return calls, operations


def operation(event):
    """(call or "request", operation, communicator, bytes, peer, tag)"""
    args = event["args"]
    peers = [args[key] for key in ("Root", "Dst Rank", "Src Rank") if key in args]
    call = event["name"] if event["ph"] == "X" else "request"
    return (call, args["Collective name"], args["Process Group Name"], args.get("bytes", 0),
            peers[0] if peers else -1, args.get("Tag", -1))


def operations_of(trace):
    """Events that are operations, in the order of their beginnings."""
    found = [event for event in trace["traceEvents"]
             if event["ph"] in "Xb" and "Collective name" in event.get("args", {})]
    return sorted(found, key=lambda event: event["ts"])


def calls_of(trace):
    """How often each function of MPI was called."""
    return collections.Counter(event["name"] for event in trace["traceEvents"]
                               if event["ph"] == "X" and event["name"].startswith("MPI_"))


def differences(what, wanted, found):
    """Sentences about two Counters that should be the same."""
    for key in sorted(set(wanted) | set(found), key=str):
        if wanted[key] != found[key]:
            yield f"{what}: {key}: {found[key]} times, expected {wanted[key]}"


def check_report(report, operations):
    """The communicators' figures against the operations that they are of."""
    for comm in report["comm"]["communicators"]:
        mine = [event for event in operations if event["args"]["Process Group Name"] == comm["name"]]
        for key, value in (("calls", len(mine)), ("bytes", sum(e["args"].get("bytes", 0) for e in mine))):
            if comm[key] != value:
                yield f"report: {comm['name']}: {key} is {comm[key]}, the trace has {value}"
        if comm["library"] != "MPI":
            yield f"report: {comm['name']} is of {comm['library']}"
        if not comm["enqueued"] == comm["started"] == comm["completed"] == comm["calls"]:
            yield f"report: {comm['name']}: not all has completed: {comm}"
        if comm["exposed"] > comm["time"]:
            yield f"report: {comm['name']}: waited longer than it took: {comm}"
    if report["comm"]["unmeasured"]:
        yield "report: there are operations that it does not have"


def sequences(operations, comm):
    """(number, operation) of a communicator, as its ranks have to agree on."""
    mine = [e["args"] for e in operations if e["args"]["Process Group Name"] == comm]
    return sorted((args["Seq"], args["Collective name"]) for args in mine)
