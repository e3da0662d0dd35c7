"""truth.py - what a trace has to show: worked out from its events by integers, and held against the counts in its
report, which do not come from its events but from the distributions."""

import json
from collections import Counter
from decimal import Decimal

REGION = {"cpu_op"}


def picoseconds(text):
    """Exact: three digits behind the point are nanoseconds, and perfkit writes up to six."""
    return int(Decimal(text) * 1000000)


def load(text):
    """The document, its times as integers."""
    document = json.loads(text, parse_float=Decimal)
    for event in document["traceEvents"]:
        event["start"] = picoseconds(event["ts"])
        event["end"] = event["start"] + picoseconds(event.get("dur", 0))
    return document


def names_of(events, what):
    """(pid, tid) or pid -> its name."""
    return {(e["pid"], e["tid"]) if what == "thread_name" else e["pid"]: e["args"]["name"]
            for e in events if e["ph"] == "M" and e["name"] == what}


def tree(events, instants):
    """(event, parent, depth) of all slices of one track; an instant is one of no duration, if it counts."""
    open_ones = []
    for e in sorted((e for e in events if e["ph"] == "X" or (instants and e["ph"] == "i")),
                    key=lambda e: (e["start"], -e["end"])):
        while open_ones and open_ones[-1]["end"] <= e["start"]:
            open_ones.pop()
        yield e, open_ones[-1]["name"] if open_ones else None, len(open_ones)
        if e["ph"] == "X":
            open_ones.append(e)


def slices(document, instants):
    """[track, name, parent, depth, count], as viewers tell of them."""
    events, rows = document["traceEvents"], Counter()
    threads = names_of(events, "thread_name")
    for track in {(e["pid"], e["tid"]) for e in events if e["ph"] in "Xi"}:
        mine = [e for e in events if (e["pid"], e["tid"]) == track and e.get("s") != "p"]
        for e, parent, depth in tree(mine, instants):
            rows[threads.get(track), e["name"], parent, depth] += 1
    return rows


def others(document):
    """What lies on tracks of processes: operations that overlap, marks of the session."""
    return Counter(e["name"] for e in document["traceEvents"]
                   if e["ph"] == "b" or (e["ph"] == "i" and e.get("s") == "p"))


def flows(document, by_start=False):
    """(slice where the arrow starts, slice where it ends): those around its ends, innermost. by_start: the slice that
    began first stands in front, as Perfetto has it: a receive that began before its send."""
    tracks, ends = {}, {}
    for e in document["traceEvents"]:
        if e["ph"] == "X":
            tracks.setdefault((e["pid"], e["tid"]), []).append(e)
        elif e["ph"] in "sf":
            ends.setdefault((e["cat"], e["id"]), {})[e["ph"]] = e

    def around(e):
        inside = [x for x in tracks[e["pid"], e["tid"]] if x["start"] <= e["start"] < x["end"]]
        return max(inside, key=lambda x: x["start"]) if inside else {"name": None, "start": e["start"]}

    def of(pair):
        both = [around(pair["s"]), around(pair["f"])]
        return tuple(x["name"] for x in (sorted(both, key=lambda x: x["start"]) if by_start else both))

    return Counter(of(pair) for pair in ends.values())


def values(document):
    return sorted((f"{e['name']} {key}", float(value)) for e in document["traceEvents"] if e["ph"] == "C"
                  for key, value in e["args"].items())


# ---- against the report ----

def pairs(document, report):
    """(what, by the report, by the events)"""
    events = document["traceEvents"]
    names = Counter(e["name"] for e in events if e["ph"] == "X" and e["cat"] in REGION)
    for region in report["regions"]:
        if region["time"]["count"]:
            yield f"region {region['name']}", region["time"]["count"], names.pop(region["name"], 0)
    yield "regions that the report does not have", 0, sum(names.values())
    yield "steps", report["steps"]["count"], sum(e["name"].startswith("ProfilerStep#") for e in events)
    samples = Counter(e["name"] for e in events if e["ph"] == "C")
    for counter in report["counters"]:
        yield f"counter {counter['name']}", counter["value"]["count"], samples.pop(counter["name"], 0)
    yield "counters that the report does not have", 0, sum(samples.values())
    yield from device_pairs(events, report)
    yield "events of threads", report["counts"]["written"], sum(
        e["ph"] == "C" or (e["ph"] in "Xi" and e["cat"] in REGION) or e["name"].startswith("ProfilerStep#")
        or (e["ph"] == "b" and e["name"].startswith("MPI ")) for e in events)


def device_pairs(events, report):
    for name, count in sum_by_name(report["kernels"]).items():
        yield f"kernel {name}", count, sum(e.get("cat") == "kernel" and e["name"] == name for e in events)
    spans = sum(gpu["spans"] for gpu in report["gpus"])
    yield "stream spans", spans, sum(e.get("cat") == "gpu_user_annotation" for e in events)
    operations = Counter(e["args"]["Process Group Name"] for e in events
                         if e["ph"] in "Xb" and "Collective name" in e.get("args", {}))
    for comm in report["comm"]["communicators"]:
        yield f"communicator {comm['name']}", comm["calls"], operations.pop(comm["name"], 0)
    yield "operations that the report does not have", 0, sum(operations.values())


def sum_by_name(rows):
    counts = Counter()
    for row in rows:
        counts[row["name"]] += row["time"]["count"]
    return counts


def against_report(document, report):
    counts = report["counts"]
    if counts["dropped"] or counts["unwritten"] or counts["points_dropped"]:
        yield f"not all was recorded: {counts}"
    for what, told, shown in pairs(document, report):
        if told != shown:
            yield f"{what}: {told} by the report, {shown} in the events"
