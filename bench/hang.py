"""hang.py PK RUNS [TIMES] - a job of 8 ranks, one of which is stopped, spins, blocks in a read, or is gone: in how
many of TIMES runs (100) do the others' watchdogs name it, through hang_command, within hang_seconds + 2 s?

Prints a line for each way to hang and one for all. RUNS is tests/tools/runs.c as built."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

PK, RUN = (os.path.abspath(path) for path in sys.argv[1:3])
TIMES = int(sys.argv[3]) if len(sys.argv) > 3 else 100
RANKS, STEP, SECONDS = 8, 20, 2
WAYS = ("stopped", "spinning", "blocked", "gone")


def named(folder, wanted, until):
    """When the first report of a rank that waits names that one, and no other; None if none does in time."""
    while time.time() < until:
        for name in os.listdir(folder):
            if not name.startswith("said-"):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                behind = json.load(file)["behind"]
            if [b["rank"] for b in behind] == [wanted]:
                return os.stat(path).st_mtime
        time.sleep(0.02)
    return None


def run(how, victim):
    folder = tempfile.mkdtemp()
    meeting = os.path.join(folder, "meeting")
    with open(meeting, "wb") as file:
        file.write(bytes(4096))
    command = f"cd {folder} && '{PK}' where --json . > new-%r && mv new-%r said-%r.json"
    env = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
    env.update(PK_TRACE_PATH=folder + "/run-%r.json", PK_HANG_SECONDS=str(SECONDS), PK_HANG_COMMAND=command)
    ranks = [subprocess.Popen([RUN, "hang", str(rank), str(RANKS), meeting, str(victim), how, str(STEP)],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) for rank in range(RANKS)]
    ranks[0].stdout.readline()
    begun = time.time()
    at = named(folder, victim, begun + SECONDS + 10)
    for p in ranks:
        p.kill()
        p.wait()
        p.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)
    return None if at is None else at - begun


total, good, worst = 0, 0, 0.0
for i, way in enumerate(WAYS):
    times = [run(way, (7 * i + n) % RANKS) for n in range(TIMES // len(WAYS))]
    seen = [t for t in times if t is not None]
    within = sum(t <= SECONDS + 2 for t in seen)
    print(f"{way:9} named {len(seen)} of {len(times)}, within {SECONDS} + 2 s: {within}, "
          f"latest {max(seen, default=float('nan')):.2f} s", flush=True)
    total, good, worst = total + len(times), good + within, max([worst, *seen])
print(f"all       {good} of {total} within {SECONDS} + 2 s, latest {worst:.2f} s")
