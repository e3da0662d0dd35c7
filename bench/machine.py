"""machine.py PK STREAM - pk machine's triad beside STREAM's, compiled here, in turns; and its peak beside the processor's
formula, clock x operations a cycle, where these are known. Best of the turns each; the bars are 5 % and 3 %."""

import json
import os
import subprocess
import sys
import tempfile

PK, STREAM = sys.argv[1:3]
TURNS = 3
# Doubles a cycle by fused multiply-adds: units x lanes x 2. By "cpu family:model" of /proc/cpuinfo, in hexadecimal.
UNITS = {"6:4f": 16, "6:55": 32, "6:6a": 32, "6:8f": 32, "6:cf": 32, "17:31": 16, "19:1": 16, "19:11": 16, "19:a0": 16,
         "1a:2": 32}


def machine(path):
    done = subprocess.run([PK, "machine", "--json", "-o", path], capture_output=True, text=True, check=True, timeout=500)
    return json.loads(done.stdout)


def stream(mib, threads):
    done = subprocess.run([STREAM, str(mib), str(threads)], capture_output=True, text=True, check=True, timeout=500)
    return float(done.stdout)


def family_and_model():
    words = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            words.setdefault(name.strip(), value.strip())
    if "cpu family" not in words:
        return ""
    return f"{int(words['cpu family']):x}:{int(words['model']):x}"


def best(runs, name, who):
    """Of a limit, or of those whose names begin so, if it ends in "-"; 0: there is none."""
    return max((limit["best"] for run in runs for limit in run["limits"] if limit["threads"] == who
                and (limit["name"].startswith(name) if name.endswith("-") else limit["name"] == name)), default=0)


def main():
    runs, theirs = [], {"one": 0.0, "all": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(TURNS):
            runs.append(machine(os.path.join(folder, "m")))
            mib = runs[-1]["array_bytes"] >> 20
            theirs["one"] = max(theirs["one"], stream(mib, 1))
            theirs["all"] = max(theirs["all"], stream(mib, runs[-1]["processors_allowed"]))
    for who in ("one", "all"):
        plain, streamed = best(runs, "triad", who), best(runs, "triad-streamed", who)
        print(f"triad, {who}: pk machine {plain / 1e9:.1f} GB/s, STREAM's loop {theirs[who] / 1e9:.1f} GB/s: "
              f"{plain / theirs[who] - 1:+.1%} (streamed {streamed / 1e9:.1f})")
    clock, units = max(run["clock_hz"] for run in runs), UNITS.get(family_and_model())
    peak = best(runs, "double-", "one")
    print(f"double, one: {peak / 1e9:.1f} Gflop/s at {clock / 1e9:.3f} GHz: {peak / clock:.1f} a cycle"
          + (f", by formula {units}: {peak / clock / units - 1:+.1%}" if units else ", no formula for this processor")
          if clock else f"double, one: {peak / 1e9:.1f} Gflop/s; the clock is not known")
    print(f"threads had a processor for {min(run['on_processor'] for run in runs):.1%} of the rounds")


main()
