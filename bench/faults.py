"""faults.py PK RUNS NAME MPIEXEC TRAINER STENCIL [NAME MPIEXEC TRAINER STENCIL]... - real faults: 8 ranks of the demo's
trainer and of the stencil, one of them late by 5 %, or with a slow reader, or stopped, or with a slow link, and none at
all. In how many of RUNS does `pk job`, or `pk where` while they run, name it, and nobody else?

A run has as many steps as usual, or as many as take PK_FAULTS_SECONDS (6), but 52 at least, which is 50 after warm-up:
where ranks that wait spin, and there are more of them than processors, a step takes time slices of all of them. A trial
of 52 steps without a fault says how long one takes, and each line how many there were.

PK_FAULTS=late,link takes these faults alone; PK_FAULTS_KEEP=FOLDER keeps the reports of runs that went wrong (of a
stopped process what `pk where` said), PK_FAULTS_KEEP_ALL=1 those of all. A line for each program, MPI and fault as it
is done."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 8
KEEP, KEEP_ALL = os.environ.get("PK_FAULTS_KEEP"), os.environ.get("PK_FAULTS_KEEP_ALL")
SECONDS, STEPS_LEAST = float(os.environ.get("PK_FAULTS_SECONDS", 6)), 52
FAULTS = ("none", "late", "reader", "link", "stopped")
ALLOW = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}

# A delay of 5 % takes as much computing as a real step has; the other faults show in short ones.
TRAIN = {"late": ["--dim", "64", "--layers", "2", "--seq", "64"]}
TRAIN_SHORT = ["--dim", "16", "--layers", "1", "--seq", "16"]
STENCIL = {"late": ["--cells", "512", "--work", "100"]}
STENCIL_SHORT = ["--cells", "512", "--work", "20"]
STEPS, STEPS_SHORT = {"late": 100}, 200


def culprits(program, fault, run):
    """Another one in each run; of a link both ends, which are neighbours in a ring, or on a plate of 4 x 2 blocks."""
    one = (3 * run + 1) % RANKS
    if fault != "link":
        return [one]
    if program == "train":
        return [one, (one + 1) % RANKS]
    return [one, one ^ 1 if run % 2 else one + 2 if one + 2 < RANKS else one - 2]


def command(program, binary, fault, who, steps):
    """who empty: as long as with that fault, and without it."""
    told = ["--fault", f"{fault}={','.join(map(str, who))}"] if who and fault not in ("none", "stopped") else []
    told += ["--steps", str(steps), "--report", "report-%r.json"]
    if program == "stencil":
        return [binary, *told, *STENCIL.get(fault, STENCIL_SHORT)]
    return [binary, *told, *TRAIN.get(fault, TRAIN_SHORT), "--heads", "2", "--batch", "4", "--quiet", os.path.abspath(__file__)]


def start(mpi, words, folder):
    return subprocess.Popen([mpi, "-n", str(RANKS), *words], cwd=folder, env=dict(os.environ, **ALLOW), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def steps_of(mpi, program, binary, fault):
    """So many that a run takes SECONDS, as a trial says."""
    folder = os.path.realpath(tempfile.mkdtemp())
    since = time.time()
    try:
        with start(mpi, command(program, binary, fault, [], STEPS_LEAST), folder):
            pass
    finally:
        shutil.rmtree(folder)
    possible = int(SECONDS / (time.time() - since) * STEPS_LEAST)
    return max(STEPS_LEAST, min(STEPS.get(fault, STEPS_SHORT), possible))


# ---- while they run ----

def ranks_of(binary, folder):
    """The processes of this run, by rank."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") != binary or os.readlink(f"/proc/{pid}/cwd") != folder:
                continue
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
        except OSError:
            continue
        rank = words.get(b"OMPI_COMM_WORLD_RANK", words.get(b"PMI_RANK"))
        if rank is not None:
            found[int(rank)] = pid
    return found


def where(pk, pids):
    said = subprocess.run([pk, "where", "--json", *pids.values()], capture_output=True, text=True, check=False)
    return json.loads(said.stdout) if said.stdout.startswith("{") else {}


def named_by_where(pk, running, binary, folder, victim):
    pids, steps = {}, []
    while running.poll() is None and (len(steps) < RANKS or min(steps) < 3):
        time.sleep(0.05)
        pids = ranks_of(binary, folder)
        steps = [target["steps"] for target in where(pk, pids).get("targets", [])] if len(pids) == RANKS else []
    if running.poll() is not None:
        return None
    os.kill(int(pids[victim]), signal.SIGSTOP)
    try:
        time.sleep(0.5)
        seen = where(pk, pids)
    finally:
        os.kill(int(pids[victim]), signal.SIGCONT)
    with open(os.path.join(folder, "where.json"), "w", encoding="utf-8") as file:
        json.dump(seen, file)
    return [(row["rank"], row["why"]) for row in seen.get("behind", [])]


# ---- afterwards ----

def verdicts(pk, folder):
    said = subprocess.run([pk, "job", "--json", folder], capture_output=True, text=True, check=False)
    job = json.loads(said.stdout)
    late = [("late", v["rank"], v.get("stage")) for v in job["verdicts"] if v["name"] == "late-rank"]
    slow = [("link", link["from"], link["to"]) for link in job["waits"].get("links", []) if link["slow"]]
    return late, slow


def judge(fault, who, late, slow):
    """Named, and nobody else accused."""
    if fault == "none":
        return True, not late and not slow
    if fault == "link":
        right = ("link", *who)
        return right in slow, not late and [link for link in slow if link != right] == []
    named = [v for v in late if v[1] == who[0]]
    return bool(named), len(late) == len(named) and not slow


def keep(folder, name, right):
    if KEEP and (KEEP_ALL or not all(right)):
        shutil.copytree(folder, os.path.join(KEEP, name), dirs_exist_ok=True)


def run(pk, mpi, program, binary, fault, number, steps):
    who = culprits(program, fault, number)
    folder = os.path.realpath(tempfile.mkdtemp())
    try:
        with start(mpi, command(program, binary, fault, who, steps), folder) as running:
            behind = named_by_where(pk, running, binary, folder, who[0]) if fault == "stopped" else None
        if fault == "stopped":
            right, said = ((who[0], "stopped") in (behind or []), len(behind or []) <= 1), behind
        else:
            late, slow = verdicts(pk, folder)
            right, said = judge(fault, who, late, slow), late + slow
        keep(folder, f"{program}-{os.path.basename(mpi)}-{fault}-{number}", right)
        return *right, who, said
    finally:
        shutil.rmtree(folder)


def all_runs(pk, times, name, mpi, program, binary, fault):
    named = alone = 0
    steps = steps_of(mpi, program, binary, fault)
    since = time.time()
    for number in range(times):
        one, only, who, said = run(pk, mpi, program, binary, fault, number, steps)
        named += one
        alone += only
        if not one or not only:
            print(f"  {program} {name} {fault}: it was {who}, and {said} was said", flush=True)
    print(f"{program:8} {name:8} {fault:8} named {named} of {times}, others accused in {times - alone}; "
          f"{steps} steps, {(time.time() - since) / times:.1f} s each, load {os.getloadavg()[0]:.0f}", flush=True)


def main(pk, times, *mpis):
    wanted = os.environ.get("PK_FAULTS", ",".join(FAULTS)).split(",")
    for fault in (f for f in FAULTS if f in wanted):
        for i in range(0, len(mpis), 4):
            name, mpi, trainer, stencil = mpis[i:i + 4]
            all_runs(os.path.abspath(pk), int(times), name, mpi, "train", os.path.realpath(trainer), fault)
            all_runs(os.path.abspath(pk), int(times), name, mpi, "stencil", os.path.realpath(stencil), fault)


if __name__ == "__main__":
    main(*sys.argv[1:])
