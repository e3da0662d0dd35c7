"""rules.py - what readers of traces want of each field, for those that the tests cannot run:
HolisticTraceAnalysis (HTA), PyTorch's tools, streaming readers. See docs/internals/trace-format.md."""

import json
import re
from collections import Counter, defaultdict
from decimal import Decimal

CATEGORIES = {
    "X": {"cpu_op", "user_annotation"},
    "C": {"counter"},
    "i": {"cpu_op"},
    "M": {"__metadata"},
}
PROCESS = ("process_name", "process_labels", "process_sort_index")
THREAD = ("thread_name", "thread_sort_index")
STEP = re.compile(r"ProfilerStep#(0|[1-9][0-9]*)")
HALF_NS = Decimal("0.0005")
EVENTS = '"traceEvents":[\n'


def document(text, top):
    """The object around the events."""
    keys = list(top)
    if set(keys) & {"samples", "stackFrames"}:
        yield "a key that makes speedscope take the file for something else"
    if keys[-2:] != ["traceEvents", "perfkitReport"] and keys[-1] != "traceEvents":
        yield "more than perfkit's report stands behind the events: streaming readers miss it"
    if top["displayTimeUnit"] != "ns":
        yield "displayTimeUnit is not ns: catapult mis-nests what is shorter than a microsecond"
    if top["schemaVersion"] != 1 or not isinstance(top["metadata"], dict):
        yield "schemaVersion is not 1, or metadata is no object"
    if not isinstance(top["baseTimeNanoseconds"], int):
        yield "baseTimeNanoseconds is no integer: HTA cannot place the trace in time"
    found = re.search(r'"rank":\s+(\d+)', text)
    if not found or int(found.group(1)) != top["distributedInfo"]["rank"]:
        yield "HTA's pattern does not find the rank"
    if re.search(r"\\u[dD][89a-fA-F]", text):
        yield "a surrogate escape: Perfetto rejects the file"
    if text.startswith("\ufeff") or not text.endswith("}\n"):
        yield "a byte order mark, or something behind the document"


def lines(text):
    """One event per line, a comma at the end of each but the last."""
    body = text[text.index(EVENTS) + len(EVENTS):].split("\n]", 1)[0].split("\n")
    for number, line in enumerate(body, 1):
        if line.endswith(",") != (number < len(body)):
            yield f"line {number} of the events: the comma is wrong: {line[:80]}"
        elif not isinstance(json.loads(line.rstrip(",")), dict):
            yield f"line {number} of the events is no event: {line[:80]}"


def is_number(value):
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def is_time(ts):
    """Nanoseconds; slices that were moved in by up to 64 ns have as many picoseconds, too."""
    return ts.as_tuple().exponent == -3 or (ts.as_tuple().exponent == -6 and 0 < ts * 10 ** 6 % 1000 <= 64)


def event(e, first):
    """One event by itself."""
    ph, args, ts = e["ph"], e.get("args"), e["ts"]
    if ph not in CATEGORIES:
        yield "a phase that perfkit does not use"
        return
    if e.get("cat") not in CATEGORIES[ph] and not (first and "cat" not in e):
        yield "cat is unknown, or missing, and then catapult's streaming reader passes over it"
    if first and ("cat" in e or e["name"] != "process_name"):
        yield "the first event has a cat: speedscope may take the file for a CPU profile"
    if not all(type(e[key]) is int and 0 < e[key] < 2 ** 32 for key in ("pid", "tid")):
        yield "pid and tid have to be numbers from 1 to 2^32 - 1"
    if not e["name"]:
        yield "no name"
    if not isinstance(ts, Decimal) or not is_time(ts) or not 0 <= ts < 2 ** 40:
        yield "ts has to be microseconds with three digits, from 0, exact in doubles"
    if args is not None and not args:
        yield "args without an argument"
    if ph in "XiC" and args and not all(is_number(value) for value in args.values()):
        yield "an argument that is no finite number"
    if "id" in e:
        yield "an id, which makes each counter one of its own"


def span(e):
    """What PyTorch's tools and Perfetto want of a slice on the CPU."""
    dur = e["dur"]
    if not isinstance(dur, Decimal) or dur <= 0 or dur.as_tuple().exponent > -3:
        yield "dur has to be microseconds with three digits or more, and not quite 0"
    if {"stream", "correlation"} & set(e.get("args", ())):
        yield "stream or correlation on the CPU: HTA takes it for a kernel"
    if (e["cat"] == "user_annotation") != bool(STEP.fullmatch(e["name"])):
        yield "steps are ProfilerStep#N in user_annotation, and nothing else is"


def counters(events):
    """Viewers make a series of each key, and want it in each sample."""
    keys = {}
    for e in events:
        if e["ph"] == "C" and keys.setdefault(e["name"], set(e["args"])) != set(e["args"]):
            yield f"counter {e['name']}: not the same series in each sample"


def tracks(events):
    """Every track has a name and a place; every process too, once."""
    told = Counter((e["name"], e["tid"] if e["name"] in THREAD else 0)
                   for e in events if e["ph"] == "M")
    for e in events:
        if e["ph"] == "M" and (e["name"] not in PROCESS + THREAD or "args" not in e):
            yield f"{e['name']}: not known to viewers, or without args, which crashes catapult"
    for tid in {e["tid"] for e in events}:
        for name in THREAD:
            if not told[name, tid] and tid != events[0]["tid"]:
                yield f"track {tid} has no {name}"
    for name in PROCESS:
        if told[name, 0] != 1:
            yield f"{name} is told {told[name, 0]} times"
    if len({e["pid"] for e in events}) != 1:
        yield "more than one pid"


def nesting(track):
    """Slices of one track, each inside the one around it. What ends with its parent ends a little
    earlier, and what is followed by another ends before that begins, or speedscope's arithmetic
    nests them wrongly; what begins with its parent begins later, or viewers go by the order in the
    file. Slices of no duration are left out."""
    spans = sorted((e["ts"], -e["dur"], e["ts"] + e["dur"], e["name"])
                   for e in track if e["dur"] >= HALF_NS)
    around = []
    for start, _, end, name in spans:
        while around and around[-1][0] <= start:
            if around.pop()[0] == start:
                yield f"{name} at {start} begins where another ends"
        if around and end >= around[-1][0]:
            yield f"{name} at {start} ends with or behind {around[-1][2]} around it"
        if around and start == around[-1][1]:
            yield f"{name} at {start} begins with {around[-1][2]} around it"
        around.append((end, start, name))
        if len(around) > 512:
            yield f"{name} at {start} is nested deeper than Perfetto goes"


def steps(events):
    """Numbered from 0 without a gap, on a track of their own."""
    found = [e for e in events if e.get("cat") == "user_annotation"]
    if sorted(int(e["name"].split("#")[1]) for e in found) != list(range(len(found))):
        yield "the steps' numbers have a gap"
    if {e["tid"] for e in found} & {e["tid"] for e in events if e.get("cat") == "cpu_op"}:
        yield "steps share a track with regions"


def counts(events, metadata):
    """What the head says of the events, once it is complete."""
    there, told = Counter(e["ph"] for e in events), metadata["counts"]
    if not metadata["complete"]:
        return
    if told["written"] != there["X"] + there["C"] + there["i"]:
        yield f"the head counts {told['written']} events, there are {there}"
    if told["recorded"] + told["dropped"] != told["begun"]:
        yield "recorded + dropped != begun"


def complaints(text):
    """All that is wrong with the trace of that text."""
    top = json.loads(text, parse_float=Decimal, parse_constant=lambda name: name)
    events, by_track = top["traceEvents"], defaultdict(list)
    yield from document(text, top)
    yield from lines(text)
    for place, e in enumerate(events):
        found = list(event(e, place == 0))
        if e["ph"] == "X":
            found += span(e)
            by_track[e["tid"]].append(e)
        yield from (f"{complaint}: {json.dumps(e, default=str)}" for complaint in found)
    for track in by_track.values():
        yield from nesting(track)
    for rule in (counters, tracks, steps):
        yield from rule(events)
    yield from counts(events, top["metadata"])
    if not any("args" in e for e in events):
        yield "no event has args: HTA fails"
