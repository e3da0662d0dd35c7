"""reading.py PK RUN_TRACE [EVENTS] - what pk takes to read traces of five million events, of a CPU's run and of a GPU's:
seconds of CPU time, of the wall, and the most memory. The traces hold no report, so each event is looked at."""

import os
import subprocess
import sys
import tempfile

PER_STEP = {"cpu": 57, "gpu": 256}  # lines, about
QUERIES = {
    "pk report": ("report",),
    "calls by name": ("query", "SELECT name, count(*), sum(self_ns) FROM calls GROUP BY name"),
    "percentiles of calls": ("query", "SELECT name, percentile(duration_ns, 99) FROM calls GROUP BY name"),
    "ten longest calls": ("query", "SELECT * FROM calls ORDER BY duration_ns DESC LIMIT 10"),
    "kernels by name": ("query", "SELECT name, count(*), sum(duration_ns) FROM kernels GROUP BY name"),
    "longest step": ("query", "SELECT max(duration_ns) FROM steps"),
}


def measure(*command):
    """Wall s, CPU s, MB."""
    before = os.times().elapsed
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: status {status}")
    child.returncode = 0
    return os.times().elapsed - before, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(pk, run_trace, events="5000000"):
    with tempfile.TemporaryDirectory() as folder:
        for kind, lines in PER_STEP.items():
            trace = os.path.join(folder, "trace.json")
            subprocess.run([run_trace, trace, "0", "4", str(int(events) // lines)] + (["cpu"] if kind == "cpu" else []), check=True)
            size = os.path.getsize(trace) / 1e9
            print(f"{kind}: {events} events, {size:.2f} GB\n  {'':22}  wall s  CPU s  CPU s/GB    MB")
            for name, arguments in QUERIES.items():
                if kind == "gpu" or "kernels" not in name:
                    wall, cpu, memory = min((measure(pk, *arguments, trace) for _ in range(3)), key=lambda m: m[1])
                    print(f"  {name:22} {wall:7.2f} {cpu:6.2f} {cpu / size:9.2f} {memory:5.0f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
