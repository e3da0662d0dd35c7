"""rules.py MAKE_TRACE DOUBLE - what PyTorch's tools (HolisticTraceAnalysis) want of the events of a GPU.

docs/internals/trace-format.md, "Devices and libraries". The trace is of the mock of libcupti.
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
    regions = {e["args"]["correlation"]: e["args"].get("region") for e in by(events, *CALLS)}
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
    expected = {"kernel": 140, "gpu_memcpy": 20, "gpu_memset": 20, "cuda_runtime": 260, "cuda_driver": 20,
                "cuda_sync": 60, "ac2g": 360, "cuda_event": 0}
    for cat, count in expected.items():
        if counts[cat] != count:
            yield f"{counts[cat]} events of {cat}, not {count}"


# ---- HTA's critical path (analyzers/critical_path_analysis.py), on a trace with cupti_sync_events ----

def of_gpu(e):
    """What HTA takes for the device's end of a correlation."""
    args = e.get("args", {})
    return "correlation" in args and ("stream" in args or e["name"] in ("Event Sync", "Context Sync"))


def previous_launch(launches, pid, stream, ts):
    """The last launch on that stream of that device before; HTA knows it by the kernel's pid and stream."""
    return max((item for item in launches if item[1:3] == (pid, stream) and item[0] < ts), default=None)


def edges(events):
    """(kind of wait, name of the kernel that it waits for, name of the kernel or call that waits)."""
    slices = [e for e in events if e["ph"] == "X"]
    on_gpu = [e for e in slices if of_gpu(e)]
    kernels = {e["args"]["correlation"]: e for e in by(on_gpu, *ON_DEVICE)}
    calls = {e["args"]["correlation"]: e for e in by(slices, *CALLS) if "correlation" in e["args"]}
    launches = sorted((call["ts"], k["pid"], k["args"]["stream"], k["name"], call["tid"]) for c, k in kernels.items()
                      for call in [calls[c]] if call["name"] in LAUNCHES)
    sources = {}
    for e in by(on_gpu, "cuda_sync"):
        if e["args"].get("wait_on_stream", -1) > -1:
            key, place = e["args"].get("wait_on_cuda_event_record_corr_id", -1), (e["pid"], e["args"]["wait_on_stream"])
            if sources.setdefault(key, place) != place:
                raise ValueError(f"recording {key} was made in two places: HTA's merge fails")
    for e in by(on_gpu, "cuda_sync"):
        call = calls[e["args"]["correlation"]]
        if e["name"] in ("Event Sync", "Stream Wait Event"):
            key = e["args"]["wait_on_cuda_event_record_corr_id"]
            if calls[key]["name"] != "cudaEventRecord":
                raise ValueError(f"{e['name']}: {calls[key]['name']} has recorded its event")
            source = previous_launch(launches, *sources[key], calls[key]["ts"])
        else:
            streams = {item[2] for item in launches} if e["name"] == "Context Sync" else {e["args"]["stream"]}
            source = max((previous_launch(launches, e["pid"], stream, call["ts"]) for stream in streams),
                         key=lambda item: item or (0,))
        after = call["name"]
        if e["name"] == "Stream Wait Event":
            after = min(item for item in launches if item[0] > call["ts"] and item[4] == call["tid"]
                        and item[2] == e["args"]["stream"])[3]
        yield e["name"], source and source[3], after


def critical_path(doc):
    events = doc["traceEvents"]
    try:
        found = collections.Counter(edges(events))
    except (KeyError, ValueError) as error:
        yield f"critical path: {error!r}"
        return
    wanted = {("Stream Wait Event", "Memcpy HtoD (Pageable -> Device)", "gemm"): 20,
              ("Event Sync", "ncclDevKernel_AllReduce", "cudaEventSynchronize"): 20,
              ("Context Sync", "CUDA graph 3", "cudaDeviceSynchronize"): 20}
    if found != wanted:
        yield f"critical path: {dict(found)}, not {wanted}"
    counts = collections.Counter(e["args"]["correlation"] for e in by(events, *CALLS) if "correlation" in e["args"])
    if any(counts[e["args"]["correlation"]] != 1 for e in by(events, "cuda_sync", "cuda_event")):
        yield "a wait or an event without its one call"
    for e in by(events, "cuda_event"):
        if not {"event_id", "stream", "correlation", "device", "context"} <= set(e["args"]) or e["dur"]:
            yield f"cuda_event: {e}"
    if len(by(events, "cuda_event")) != 40:
        yield f"{len(by(events, 'cuda_event'))} events were recorded, not 40"
    for rule in (nesting, one_at_a_time):
        yield from rule(events)


def critical_can_fail(doc):
    def waits(ev, name):
        return [e for e in by(ev, "cuda_sync") if e["name"] == name]

    changes = {
        "no recording": lambda ev: waits(ev, "Event Sync")[0]["args"].pop("wait_on_cuda_event_record_corr_id"),
        "of another stream": lambda ev: waits(ev, "Event Sync")[0]["args"].update(wait_on_stream=13),
        "of the process": lambda ev: [e.update(pid=1) for e in waits(ev, "Stream Wait Event")],
        "no stream that waits": lambda ev: [e["args"].pop("stream") for e in waits(ev, "Stream Wait Event")],
    }
    return [name for name, change in changes.items() if not list(critical_path(spoilt(doc, change)))]


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


def make(make_trace, double, **settings):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        subprocess.run([make_trace, double, path], check=True, env={**os.environ, **settings})
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def main(make_trace, double):
    doc, events = make(make_trace, double), make(make_trace, double, PK_CUPTI_SYNC_EVENTS="1")
    complaints = [*check(doc), *critical_path(events)]
    complaints += [f"nothing objects to: {name}" for name in can_fail(doc) + critical_can_fail(events)]
    print("\n".join(complaints[:20]) or f"{len(doc['traceEvents'])} events as they should be")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
