"""rules.py MAKE_TRACE DOUBLE - what PyTorch's tools (HolisticTraceAnalysis) want of the events of a GPU.

docs/trace-format.md, "Devices and libraries". The trace is of the mock of libcupti.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile

ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
CALLS = {"cuda_runtime", "cuda_driver"}
LAUNCHES = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch", "cuLaunchKernel"}
KERNEL = {"device", "stream", "correlation", "queued", "registers per thread", "shared memory", "grid", "block"}


def by(events, *cats):
    return [e for e in events if e.get("cat") in cats]


def device_events(events):
    for e in by(events, *ON_DEVICE):
        args = e["args"]
        if e["cat"] == "kernel" and "graph id" not in args and not KERNEL <= set(args):
            yield f"{e['name']} lacks {KERNEL - set(args)}"
        if not (type(args.get("stream")) is int and args["stream"] > 0):
            yield f"{e['name']}: stream is no number above 0"
        if e["cat"] != "kernel" and ("bytes" not in args or "memory bandwidth (GB/s)" not in args):
            yield f"{e['name']} does not say how many bytes"
        if e["pid"] == e["tid"] or not 0 < e["pid"] < 2 ** 32:
            yield f"{e['name']}: pid {e['pid']}, tid {e['tid']}"
        if "region" not in args or "External id" not in args:
            yield f"{e['name']} is in no region"
    if not any(e["name"].startswith("nccl") for e in by(events, "kernel")):
        yield "no communication kernel: names are mangled"


def host_events(events):
    for e in by(events, *CALLS, "cuda_sync", "overhead", "cpu_op", "user_annotation"):
        if "stream" in e.get("args", {}):
            yield f"{e['name']} has a stream: HTA takes it for a kernel"
    for e in by(events, "cuda_sync"):
        if "cuda_sync_kind" not in e["args"] or "correlation" in e["args"]:
            yield f"{e['name']}: no kind, or a correlation"


def links(events):
    calls = collections.Counter(e["args"]["correlation"] for e in by(events, *CALLS)
                                if "correlation" in e["args"])
    names = {e["args"]["correlation"]: e["name"] for e in by(events, *CALLS)}
    starts = {e["args"]["correlation"]: e["ts"] for e in by(events, *CALLS)}
    regions = {e["args"]["correlation"]: e["args"]["region"] for e in by(events, *CALLS)}
    for correlation, count in calls.items():
        if count != 1:
            yield f"{count} calls have correlation {correlation}"
    for e in by(events, *ON_DEVICE):
        correlation = e["args"]["correlation"]
        if calls[correlation] != 1 or names[correlation] not in LAUNCHES:
            yield f"{e['name']}: launched by {names.get(correlation)}"
        elif starts[correlation] > e["ts"] or regions[correlation] != e["args"]["region"]:
            yield f"{e['name']} begins before its launch, or is of another region"


def flows(events, rank):
    starts = collections.Counter(e["id"] for e in events if e["ph"] == "s")
    ends = collections.Counter(e["id"] for e in events if e["ph"] == "f")
    if starts != ends or set(starts.values()) != {1}:
        yield "an arrow without its other end, or two of one id"
    if any(e["id"] >> 32 != rank or e["id"] >= 2 ** 53 for e in events if e["ph"] in "sf"):
        yield "an arrow's id is another rank's"
    if any(e.get("bp") != "e" for e in events if e["ph"] == "f"):
        yield "an arrow that does not end at the slice around it"
    correlations = {e["args"]["correlation"] for e in by(events, *ON_DEVICE)}
    if {i & 0xFFFFFFFF for i in starts} != correlations:
        yield "a launch without an arrow"


def nesting(events):
    """On one track slices lie beside each other or within each other."""
    tracks = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            tracks[e["pid"], e["tid"]].append((round(e["ts"] * 1000), -round(e["dur"] * 1000), e["name"]))
    for slices in tracks.values():
        open_until = []
        for start, minus, name in sorted(slices):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            if open_until and start - minus > open_until[-1]:
                yield f"{name} ends behind what it begins in"
            open_until.append(start - minus)


def one_at_a_time(events):
    """On one track of a device nothing begins before the one before has ended."""
    tracks = collections.defaultdict(list)
    for e in by(events, *ON_DEVICE):
        start = round(e["ts"] * 1000)
        tracks[e["pid"], e["tid"]].append((start, start + round(e["dur"] * 1000), e["name"]))
    for slices in tracks.values():
        slices.sort()
        for before, after in zip(slices, slices[1:]):
            if after[0] < before[1]:
                yield f"{after[2]} begins before {before[2]} has ended"


def document(doc):
    devices = doc.get("deviceProperties", [])
    for key in ("id", "name", "totalGlobalMem", "computeMajor", "maxThreadsPerMultiprocessor", "warpSize", "numSms"):
        if len(devices) != 2 or key not in devices[0]:
            yield f"deviceProperties: no {key}"
    fate = doc.get("cupti", {})
    if any(fate.get(key) for key in ("unknown", "bad_time", "broken_buffers", "unlinked", "lost")):
        yield f"records went astray: {fate}"
    if fate.get("covered") != 100:
        yield f"{fate.get('covered')} of 100 calls of the driver lay within one of the runtime"


def check(doc):
    events = doc["traceEvents"]
    for rule in (device_events, host_events, links, nesting, one_at_a_time):
        yield from rule(events)
    yield from flows(events, doc["distributedInfo"]["rank"])
    yield from document(doc)
    counts = collections.Counter(e.get("cat") for e in events)
    expected = {"kernel": 140, "gpu_memcpy": 20, "gpu_memset": 20, "cuda_runtime": 180, "cuda_driver": 20,
                "cuda_sync": 20, "ac2g": 360}
    for cat, count in expected.items():
        if counts[cat] != count:
            yield f"{counts[cat]} events of {cat}, not {count}"


def spoilt(doc, change):
    copy = json.loads(json.dumps(doc))
    change(copy["traceEvents"])
    return copy


def can_fail(doc):
    """Each rule finds what it is for."""
    def first(events, cat):
        return by(events, cat)[0]

    changes = {
        "stream on a call": lambda ev: first(ev, "cuda_runtime")["args"].update(stream=7),
        "no stream": lambda ev: first(ev, "kernel")["args"].pop("stream"),
        "twice": lambda ev: ev.append(first(ev, "cuda_runtime")),
        "no arrow": lambda ev: ev.remove(next(e for e in ev if e["ph"] == "f")),
        "other region": lambda ev: first(ev, "kernel")["args"].update(region="load"),
        "overlap": lambda ev: min(by(ev, "gpu_memcpy"), key=lambda e: e["ts"]).update(dur=1e9),
    }
    return [name for name, change in changes.items() if not list(check(spoilt(doc, change)))]


def main(make_trace, double):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        subprocess.run([make_trace, double, path], check=True)
        with open(path, encoding="utf-8") as file:
            doc = json.load(file)
    complaints = list(check(doc))
    complaints += [f"nothing objects to: {name}" for name in can_fail(doc)]
    print("\n".join(complaints[:20]) or f"{len(doc['traceEvents'])} events as they should be")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
