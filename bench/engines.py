"""engines.py memory PK FILE ... - what questions to 1, 8, 64 ... of these traces take: seconds and memory, with the rows of
all files kept, and file by file.
engines.py hta PK CHECKOUT [RANKS ...] - pk job beside HTA (Holistic Trace Analysis, facebookresearch/HolisticTraceAnalysis, of
which CHECKOUT is a copy; it needs pandas, networkx and plotly) on the same forged traces: figures, seconds, memory. HTA runs
in the Python that HTA_PYTHON names, or python3."""

import json
import os
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
QUESTIONS = {
    "calls by name": "SELECT name, count(*), sum(self_ns) FROM calls GROUP BY name",
    "p99 by rank and name": "SELECT rank, name, percentile(duration_us, 99) FROM calls GROUP BY rank, name",
    "all calls": "SELECT count(*), sum(duration_ns) FROM calls",
}


def measured(*command):
    """Its output, wall and CPU seconds, and the most memory that it had, MiB."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        said = running.stdout.read()
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        sys.exit(f"{command[0]} {command[1]} exited with {running.returncode}")
    return said, time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MIB


def memory(pk, *files):
    print(f"{'question':22} {'files':>5} {'':12} {'wall s':>7} {'CPU s':>7} {'MiB':>6}")
    for name, sql in QUESTIONS.items():
        count = 1
        while count <= len(files):
            said = []
            for how, keep in (("kept", "1000000"), ("file by file", "0")):
                out, wall, cpu, most = measured(pk, "query", "--keep", keep, "--format", "csv", sql, *files[:count])
                said.append(out)
                print(f"{name:22} {count:5} {how:12} {wall:7.1f} {cpu:7.1f} {most:6.0f}", flush=True)
            assert said[0] == said[1], "the answers differ"
            count *= 8


# ---- traces with CUPTI's events, of which everything is known ----

STEPS, KERNELS, SLOW_RANK = 50, 100, 5
# Whole microseconds, since HTA drops what is behind them. Of a step: before the first kernel ... all of it.
HEAD, KERNEL_US, SLOW_KERNEL_US, GAP_US, COPY_US, STEP_US = 300, 50, 54, 4, 200, 12000


class Forge:
    """A rank's trace: a copy, kernels, and, from the middle of them on, a collective that ends for all ranks at once."""

    def __init__(self, file, rank, ranks):
        self.file, self.rank, self.ranks = file, rank, ranks
        self.kernel_us = SLOW_KERNEL_US if rank == SLOW_RANK else KERNEL_US
        self.correlation = 0

    def put(self, **event):
        self.file.write(",\n" + json.dumps(event, separators=(",", ":")))

    def slice(self, cat, name, tid, ts, dur, pid=1, **args):
        self.put(ph="X", cat=cat, name=name, pid=pid, tid=tid, ts=round(ts, 3), dur=round(dur, 3), **({"args": args} if args else {}))

    def region(self, name, colour, ts, dur):
        """Of a kind, which a trace tells by its colour (docs/internals/trace-format.md)."""
        self.put(ph="X", cat="cpu_op", name=name, pid=1, tid=1, ts=round(ts, 3), dur=round(dur, 3), cname=colour)

    def launch(self, cat, name, stream, launched, start, dur, **args):
        self.correlation += 1
        call = "cudaMemcpyAsync" if cat == "gpu_memcpy" else "cudaLaunchKernel"
        self.slice("cuda_runtime", call, 2, launched, 3, correlation=self.correlation)
        self.slice(cat, name, stream, start, dur, pid=2, device=0, stream=stream, correlation=self.correlation, **args)

    def step(self, number):
        begin = 1000 + number * STEP_US
        self.launch("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 13, begin + 10, begin + 50, COPY_US, bytes=1 << 22)
        at = begin + HEAD
        for kernel in range(KERNELS):
            if kernel == KERNELS // 2:
                end = begin + HEAD + KERNELS * (SLOW_KERNEL_US + GAP_US) + 600
                self.launch("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 20, at - 20, at + 1, end - at - 1)
            self.launch("kernel", f"gemm_{kernel % 8}", 7, begin + 20 + kernel * 5, at, self.kernel_us)
            at += self.kernel_us + GAP_US
        self.region("forward", "thread_state_running", begin + 5, at - begin - 5)
        self.region("wait for all_reduce", "rail_response", at + 1, end - at)
        self.slice("user_annotation", f"ProfilerStep#{number}", 1, begin, STEP_US)

    def all(self):
        self.file.write('{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank": %d,"world_size":%d},"displayTimeUnit":"ns",'
                        '"traceEvents":[\n{"ph":"M","name":"process_name","pid":1,"tid":1,"ts":0,"args":{"name":"train"}}'
                        % (self.rank, self.ranks))
        for number in range(STEPS):
            self.step(number)
        self.file.write("\n]}\n")


def forge(folder, ranks):
    for rank in range(ranks):
        with open(os.path.join(folder, f"rank{rank:04}.pt.trace.json"), "w", encoding="utf-8") as file:
            Forge(file, rank, ranks).all()


# ---- what both say of them ----

HTA = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
sys.path.insert(0, sys.argv[1])
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_dir=sys.argv[2], include_last_profiler_step=True)
parts = t.get_temporal_breakdown(visualize=False).set_index("rank")
overlap = t.get_comm_comp_overlap(visualize=False).set_index("rank")
print("\\nFIGURES" + json.dumps({"slow": [int(r) for r in t.get_potential_stragglers(num_candidates=1)],
    "ranks": {int(r): {"busy": float(parts.loc[r, "kernel_time(us)"] - parts.loc[r, "idle_time(us)"]),
                       "compute": float(parts.loc[r, "compute_time(us)"]), "other": float(parts.loc[r, "non_compute_time(us)"]),
                       "overlap": float(overlap.loc[r].iloc[-1])} for r in parts.index}}))
"""


def of_hta(checkout, folder):
    """Sums over the run, us."""
    python = os.environ.get("HTA_PYTHON", "python3")
    said, wall, cpu, most = measured(python, "-B", "-c", HTA, checkout, folder)
    figures = json.loads(said.decode().split("FIGURES")[1])
    figures["ranks"] = {int(rank): of for rank, of in figures["ranks"].items()}
    for of in figures["ranks"].values():
        of["overlap"] /= 100 if of["overlap"] > 1 else 1
    return figures, wall, cpu, most


def of_pk(pk, folder):
    said, wall, cpu, most = measured(pk, "job", "--json", folder)
    job = json.loads(said)
    ranks = {}
    for d in job["devices"]:
        us = STEPS / 1000  # of the mean of a step to the sum of them
        other = d["communication"] + d["memory"]
        ranks[d["rank"]] = {"busy": (d["compute"] + other) * us, "compute": d["compute"] * us, "other": other * us,
                            "overlap": d["overlap"]}
    slow = sorted({v["rank"] for v in job["verdicts"] if isinstance(v.get("rank"), int)})
    return {"slow": slow, "ranks": ranks}, wall, cpu, most


def compare(pk, checkout, ranks):
    with tempfile.TemporaryDirectory() as folder:
        forge(folder, ranks)
        ours, theirs = of_pk(pk, folder), of_hta(checkout, folder)
    print(f"{ranks} ranks, {STEPS} steps, rank {SLOW_RANK} slow; largest difference over the ranks:")
    for figure in ("busy", "compute", "other", "overlap"):
        apart = max(abs(ours[0]["ranks"][r][figure] / theirs[0]["ranks"][r][figure] - 1) for r in range(ranks))
        print(f"  {figure:8} {100 * apart:8.4f} %   (rank 0: pk {ours[0]['ranks'][0][figure]:.4f}, HTA {theirs[0]['ranks'][0][figure]:.4f})")
    print(f"  slow     pk job {ours[0]['slow']}, HTA {theirs[0]['slow']}")
    for name, at, unit in (("wall", 1, "s"), ("CPU", 2, "s"), ("memory", 3, "MiB")):
        print(f"  {name:8} pk job {ours[at]:8.2f} {unit}, HTA {theirs[at]:8.2f} {unit}: {theirs[at] / ours[at]:.0f} times", flush=True)


def hta(pk, checkout, *ranks):
    if not os.path.exists(os.path.join(checkout, "hta", "trace_analysis.py")):
        sys.exit(f"HTA is unavailable: {checkout} is no copy of facebookresearch/HolisticTraceAnalysis")
    for count in ranks or (8, 64):
        compare(pk, checkout, int(count))


COMMANDS = {"memory": memory, "hta": hta}

if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
