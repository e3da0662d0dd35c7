"""train.py MPIEXEC PROGRAM PK [KEEP] - the demo's trainer on several ranks: the same weights on all, and what each of its
faults does. KEEP: a folder in which the reports and traces of 8 ranks stay, one folder for each fault, so that what names
culprits can be tried on them; a process that is stopped for a while is among them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import launch

SMALL = ["--dim", "16", "--heads", "2", "--layers", "1", "--seq", "16", "--batch", "4"]
FAULTS = {"none": [], "late": ["--fault", "late=1"], "reader": ["--fault", "reader=1", "--slow-loader=5"],
          "link": ["--fault", "link=0,1"]}
LINK_NS = 20_000_000  # a lower bound, whatever else the machine does


def read(folder, rank):
    with open(os.path.join(folder, f"trace-{rank}.json"), encoding="utf-8") as file:
        return json.load(file)


def names(trace):
    return [e["name"] for e in trace["traceEvents"] if e["ph"] == "X"]


def sends(trace):
    return [round(1000 * e["dur"]) for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "MPI_Send"]


def command(program, steps, extra):
    return [program, *SMALL, "--steps", str(steps), "--quiet", "--report", "report-%r.json", "--trace", "trace-%r.json", *extra, __file__]


def check_rank(folder, rank, ranks, steps, fault):
    trace = read(folder, rank)
    about, found = trace["metadata"], names(trace)
    if (about["rank"], about["world_size"]) != (rank, ranks):
        yield f"it says rank {about['rank']} of {about['world_size']}"
    for name, count in {"MPI_Allreduce": steps + 2, "average gradients": steps, "forward": steps, "MPI_Send": steps}.items():
        if found.count(name) != count:
            yield f"{found.count(name)} of {name}, not {count}"
    if ("loader.slow" in found) != (fault == "reader" and rank == 1):
        yield f"loader.slow: {'loader.slow' in found}"
    if fault == "link" and rank == 0 and min(sends(trace)) < LINK_NS:
        yield f"what goes over the slow link takes {min(sends(trace))} ns"


def merged(pk, folder, ranks, steps):
    """Of the traces of all ranks: an arrow for each message, and from the last to come to each of the others."""
    done = subprocess.run([pk, "merge", folder, "-o", os.path.join(folder, "all.json")], capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"pk merge: {done.stderr}"
    for wanted in (f"{ranks * steps} messages", f"{steps + 2} collectives", f"ranks: 0-{ranks - 1} ({ranks} of {ranks})"):
        if wanted not in done.stdout:
            yield f"pk merge does not say '{wanted}': {done.stdout}"
    if "backwards" in done.stdout:
        yield f"an end before its beginning: {done.stdout}"


def check(mpiexec, program, pk):
    ranks, steps = 3, 12
    for fault, extra in FAULTS.items():
        with tempfile.TemporaryDirectory() as folder:
            said = launch.run(mpiexec, ranks, command(program, steps, extra), folder)
            if f"the weights of {ranks} ranks are the same" not in said:
                yield f"{fault}: it says {said}"
            for rank in range(ranks):
                yield from (f"{fault}, rank {rank}: {text}" for text in check_rank(folder, rank, ranks, steps, fault))
            if pk != "none":
                yield from (f"{fault}: {text}" for text in merged(pk, folder, ranks, steps))
    with tempfile.TemporaryDirectory() as folder:
        for wrong in ("late=3", "late", "link=0", "nonsense=1"):
            done = launch.finish(mpiexec, ranks, command(program, steps, ["--fault", wrong]), folder, fails=True)
            if "--fault takes" not in done.stderr:
                yield f"--fault {wrong}: {done.stderr[-500:]}"


# ---- reports to keep ----

def pid_of(folder, rank, running):
    """From its trace, whose head is written first."""
    while running.poll() is None:
        try:
            with open(os.path.join(folder, f"trace-{rank}.json"), encoding="utf-8") as file:
                return json.loads(file.read())["metadata"]["pid"]
        except (OSError, ValueError):
            time.sleep(0.05)
    return None


def run_stopped(mpiexec, ranks, words, folder):
    """One rank is stopped for half a second, four times."""
    env = dict(os.environ, **launch.ALLOW)
    with subprocess.Popen([mpiexec, "-n", str(ranks), *words], cwd=folder, env=env, stdin=subprocess.DEVNULL) as running:
        pid = pid_of(folder, 3, running)
        for _ in range(4 if pid else 0):
            for number in (signal.SIGSTOP, signal.SIGCONT):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    break
                time.sleep(0.5)


def keep(mpiexec, program, where):
    ranks, steps = 8, 200
    faults = {"none": [], "late": ["--fault", "late=3"], "reader": ["--fault", "reader=3"], "link": ["--fault", "link=3,4"], "stopped": []}
    for fault, extra in faults.items():
        folder = os.path.join(where, fault)
        os.makedirs(folder, exist_ok=True)
        words = command(program, steps, extra)
        if fault == "stopped":
            run_stopped(mpiexec, ranks, words, folder)
        else:
            launch.run(mpiexec, ranks, words, folder)
        print(folder)


def main(mpiexec, program, pk, *where):
    program = os.path.abspath(program)
    if where:
        keep(mpiexec, program, os.path.abspath(where[0]))
        return 0
    complaints = list(check(mpiexec, program, pk))
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
