"""hta.py - HolisticTraceAnalysis (HTA) cannot be installed here: it is no package of Debian's. What its documentation
says that it reads and works out is done here instead, on the events alone, and held against what perfkit's report
says: kernels by type, time of kernels, copies and their bandwidths, busy and idle time in each step, how many launches
wait for the device."""

import re
from collections import Counter

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", "cuLaunchKernel",
            "cuLaunchKernelEx", "cudaGraphLaunch"}
STEP = re.compile(r"ProfilerStep#(\d+)")
PS = 1000  # picoseconds of truth.py in one of the report's nanoseconds


def of_device(events, device=None):
    """What HTA takes for a kernel: a slice with a stream."""
    return [e for e in events if e["ph"] == "X" and "stream" in e.get("args", {})
            and device in (None, e["args"].get("device"))]


def kind(name):
    """As HTA's breakdown by type has it."""
    if name.startswith("nccl"):
        return "communication"
    return "memory" if re.search("dma|Memcpy|Memset", name) else "computation"


def union(spans):
    """Without overlaps, in order."""
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(spans):
    return sum(end - start for start, end in spans)


def within(spans, start, end):
    return [(max(a, start), min(b, end)) for a, b in spans if a < end and b > start]


# ---- what HTA needs of the file ----

def readable(text, document):
    if "distributedInfo" in document:  # not in what somebody else has merged
        found = re.search(r'"rank":\s+(\d+)', text)
        if not found or int(found.group(1)) != document["distributedInfo"]["rank"]:
            yield "HTA's pattern does not find the rank"
        if not isinstance(document.get("baseTimeNanoseconds"), int):
            yield "no baseTimeNanoseconds"
    events = document["traceEvents"]
    if not any("args" in e for e in events):
        yield "no event has args"
    for e in events:
        if e.get("args") == {}:
            yield f"{e['name']}: args without an argument: speedscope shows them"
        if e["ph"] == "X" and not {"name", "cat", "pid", "tid", "ts", "dur"} <= e.keys():
            yield f"{e['name']}: lacks one of the columns"


# ---- what it works out ----

def kernels(document, report):
    """Breakdown by kernel."""
    times, counts = Counter(), Counter()
    for e in of_device(document["traceEvents"]):
        if e["cat"] == "kernel":
            times[e["name"]] += (e["end"] - e["start"]) // PS
            counts[e["name"]] += 1
    for row in report["kernels"]:
        told = row["time"]["count"], row["time"]["sum"]
        if told != (found := (counts[row["name"]], times[row["name"]])):
            yield f"kernel {row['name']}: {told} by the report, {found} by the events"
    if len({kind(name) for name in counts} & {"communication", "computation"}) < 2:
        yield "kernels are not told apart by their names"


def copies(document, report):
    """Bytes moved, and the series of bandwidths."""
    mine = [e for e in of_device(document["traceEvents"]) if e["cat"] == "gpu_memcpy" and "HtoD" in e["name"]]
    told = sum(gpu["copies"]["h2d"]["bytes"] for gpu in report["gpus"])
    if told != (found := sum(e["args"]["bytes"] for e in mine)):
        yield f"copies to the device: {told} bytes by the report, {found} by the events"
    for e in mine:
        rate = float(e["args"]["memory bandwidth (GB/s)"])
        if abs(rate - e["args"]["bytes"] * PS / (e["end"] - e["start"])) > 1e-9 * rate:
            yield f"{e['name']}: {rate} GB/s is not its bytes by its time"


def steps(document, report):
    """Busy and idle time: the union of all streams within each step."""
    windows = {int(STEP.fullmatch(e["name"]).group(1)): (e["start"], -(-e["end"] // PS) * PS)
               for e in document["traceEvents"] if e["ph"] == "X" and STEP.fullmatch(e["name"])}
    for gpu in report["gpus"]:
        busy = union((e["start"], e["end"]) for e in of_device(document["traceEvents"], gpu["device"]))
        used = [windows[number] for number in sorted(windows) if number >= report["steps"]["warmup"]]
        found = sum(length(within(busy, *window)) for window in used) // PS
        if gpu["per_step"]["busy"]["sum"] != found:
            yield f"GPU {gpu['device']}: busy for {gpu['per_step']['busy']['sum']} ns by the report, {found} by the events"


def queue(document):
    """How many launches wait for the device: up at a launch, down at its kernel; never below 0, and 0 at the end."""
    events, changes = document["traceEvents"], []
    launches = {e["args"]["correlation"]: e for e in events if e["ph"] == "X" and e["name"] in LAUNCHES}
    for e in of_device(events):
        launch = launches.get(e["args"]["correlation"])
        if not launch:
            yield f"{e['name']}: no launch that HTA knows has its correlation"
            return
        changes += [(launch["start"], 0, 1), (e["start"], 1, -1)]
    waiting = 0
    for _, _, change in sorted(changes):
        waiting += change
        if waiting < 0:
            yield "a kernel begins before its launch"
            return
    if waiting:
        yield f"{waiting} launches have no kernel"


def complaints(text, document):
    yield from readable(text, document)
    report = document.get("perfkitReport")
    if report and any(e.get("cat") == "kernel" for e in document["traceEvents"]):
        for rule in (kernels, copies, steps):
            yield from rule(document, report)
        yield from queue(document)
