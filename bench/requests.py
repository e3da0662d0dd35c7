"""requests.py PK CAPTURE_RUN [PROCESSES [TIMES]] - `pk capture` of many processes: how often the same step of all is
captured, how long that takes, and whether one that is stopped is named. Prints; asserts nothing."""

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PK, RUN = sys.argv[1], sys.argv[2]
PROCESSES = int(sys.argv[3]) if len(sys.argv) > 3 else 64
TIMES = int(sys.argv[4]) if len(sys.argv) > 4 else 100
PAUSE_MS = 50


def start(folder, rank):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
    env.update(PK_CAPTURE="request", PK_HISTORY_STEPS="64", PK_HISTORY_BYTES="1M", PK_MEMORY_BYTES="64M",
               PK_CAPTURES_PER_HOUR="3600", PK_WORLD_SIZE=str(PROCESSES), PK_RANK=str(rank), PK_BACKENDS="none",
               PK_ARENA_PATH=os.path.join(folder, "%r.arena"), PK_CAPTURE_PATH=os.path.join(folder, "%r-%s.json"))
    return subprocess.Popen([RUN, "capture", str(PAUSE_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)


def ask(folder, *arguments):
    begin = time.monotonic()
    done = subprocess.run([PK, "capture", "--json", *arguments, folder], capture_output=True, check=False)
    return json.loads(done.stdout), time.monotonic() - begin


def main():
    folder = tempfile.mkdtemp()
    ranks = [start(folder, rank) for rank in range(PROCESSES)]
    for p in ranks:
        p.stdout.readline()
    whole, took, answers = 0, [], collections.Counter()
    for _ in range(TIMES):
        said, seconds = ask(folder)
        paths = [t.get("path", "") for t in said["targets"] if t["answer"] == "captured"]
        same = sum(path.endswith(f"-{said['first']}.json") for path in paths)
        whole += same == PROCESSES
        took.append(seconds)
        answers.update(t["answer"] for t in said["targets"])
    took.sort()
    print(f"{PROCESSES} processes, steps of {PAUSE_MS} ms and what the machine adds; {TIMES} requests")
    print(f"  the same step of all: {whole} of {TIMES}; answers: {dict(answers)}")
    print(f"  seconds from the command to its end: median {took[len(took) // 2]:.2f}, longest {took[-1]:.2f}")
    ranks[PROCESSES // 2].send_signal(signal.SIGSTOP)
    said, _ = ask(folder, "--wait", "30")
    named = [t["rank"] for t in said["targets"] if t["answer"] == "stopped"]
    print(f"  rank {PROCESSES // 2} is stopped; named as stopped: {named}")
    for p in ranks:
        p.send_signal(signal.SIGCONT)
        p.kill()
        p.wait()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
