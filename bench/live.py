"""live.py PK BENCH_JOBS [RANKS [STEPS [MILLISECONDS [WINDOW [PERCENT]]]]] - `pk job --follow` of real processes without MPI, one of
which becomes slower in the middle: after how many steps it is named, who else is, and what windows and the follower take of processors."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time


def run(jobs, folder, ranks, steps, ms, late, percent, window):
    words = [jobs, "crew", folder, ranks, steps, ms, late, steps // 2, percent, window]
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)


def follow(pk, folder, crew, ranks):
    while sum(name.endswith(".jsonl") for name in os.listdir(folder)) < ranks and crew.poll() is None:
        time.sleep(0.01)
    said = subprocess.run([pk, "job", "--follow", "--every", "1", "--json", folder], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


def main(pk, jobs, ranks=128, steps=400, ms=100, window=5, percent=5):
    ranks, steps, window, late = int(ranks), int(steps), int(window), int(ranks) // 3
    cpu = {}
    for percent_now in (float(percent), 0):
        with tempfile.TemporaryDirectory() as folder:
            crew = run(jobs, folder, ranks, steps, ms, late, percent_now, window)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            verdicts = follow(pk, folder, crew, ranks)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu[percent_now] = [float(word) for word in crew.communicate()[0].split()]
        right = [v["last"] for v in verdicts if any(one["rank"] == late for one in v["late"])] if percent_now else []
        wrong = sum(any(one["rank"] != late or not percent_now for one in v["late"]) for v in verdicts)
        named = f"named {right[0] + 1 - steps // 2} steps later" if right else "nobody named" if percent_now else "healthy"
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{ranks} processes, {steps} steps of {ms} ms, windows of {window}, {percent_now:g} %: {named}; {wrong} of {len(verdicts)} "
              f"verdicts false; the follower {1e3 * took / max(len(verdicts), 1):.1f} ms of CPU a verdict; load {os.getloadavg()[0]:.0f}", flush=True)
    off = [float(word) for word in run(jobs, "-", ranks, steps, ms, -1, 0, window).communicate()[0].split()]
    share = (cpu[0][0] - off[0]) / cpu[0][1] / ranks
    print(f"processors: {cpu[0][0]:.2f} s with windows, {off[0]:.2f} s without perfkit, of {cpu[0][1]:.1f} s each: {100 * share:.3f} % of a rank")


if __name__ == "__main__":
    main(*sys.argv[1:])
