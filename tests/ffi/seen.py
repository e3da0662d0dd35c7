"""What the trace of a mixed program has to show, whatever language it is in.

Ten times, on one thread: the region "outer" (compute; 100 bytes, 10 flops), in it "in C" of a C library (data), in
that "back", to which C calls back (io); the counter "number" and the end of a step of 32 items. Then "outer[n=3]",
in it "first", which goes over into "second", with the
mark "moment" inside, a note 7 under "first" and one "seven" under "moment". On a thread named "second thread":
"elsewhere". Where there is the mock of a driver, "span" on two CUDA streams. Nothing else. The process is rank 1
of 2.
"""

import collections
import json
import subprocess

COLOURS = {"thread_state_running": "compute", "rail_load": "data", "thread_state_iowait": "io", None: "other"}
SLICES = {  # path: kind, calls
    "outer": ("compute", 10), "outer/in C": ("data", 10), "outer/in C/back": ("io", 10), "outer[n=3]": ("compute", 1),
    "outer[n=3]/first": ("other", 1), "outer[n=3]/second": ("other", 1), "elsewhere": ("other", 1)}


def paths(events):
    """Each slice with those that are open around it on its thread, outermost first."""
    threads = collections.defaultdict(list)
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        around = threads[event["tid"]]
        while around and around[-1]["ts"] + around[-1]["dur"] <= event["ts"]:
            around.pop()
        around.append(event)
        yield "/".join(e["name"] for e in around), event


def check_slices(regions):
    found = collections.Counter((path, COLOURS[event.get("cname")]) for path, event in paths(regions))
    wanted = collections.Counter({(path, kind): count for path, (kind, count) in SLICES.items()})
    for key in sorted(found.keys() | wanted.keys()):
        if found[key] != wanted[key]:
            yield f"slice {key}: {found[key]} times, expected {wanted[key]}"
    for event in regions:
        if event["name"] == "outer" and event.get("args") != {"bytes": 100, "flops": 10}:
            yield f"work: {event}"
        if event["name"] == "outer[n=3]" and event.get("args") != {"n": 3}:
            yield f"a variant's value: {event}"
        if event["name"] == "second" and event.get("args") != {"first": 7, "moment": "seven"}:
            yield f"notes: {event}"


def check_events(events):
    steps = [e for e in events if e["ph"] == "X" and e["name"].startswith("ProfilerStep#")]
    if [e["args"]["items"] for e in steps] != [32] * 10:
        yield f"steps: {steps}"
    values = [e["args"] for e in events if e["ph"] == "C" and e["name"] == "number"]
    if values != [{"pieces": i} for i in range(10)]:
        yield f"counter: {values}"
    if [e["name"] for e in events if e["ph"] == "i"] != ["moment"]:
        yield "there is not one mark"
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    threads = {e["name"]: names.get(e["tid"]) for e in events if e["ph"] == "X"}
    if threads["elsewhere"] != "second thread" or threads["outer"] == "second thread":
        yield f"threads: {threads}"


def check_report(pk, trace):
    said = subprocess.run([pk, "report", "--json", trace], capture_output=True, text=True, check=True).stdout
    report = json.loads(said)
    found = {region["name"]: (region["kind"], region["time"]["count"]) for region in report["regions"]
             if region["name"] != "span"}
    wanted = {path.rsplit("/", 1)[-1]: what for path, what in SLICES.items()}
    if found != wanted:
        yield f"the report has {found}, expected {wanted}"
    if report["counts"]["dropped"] or report["counts"]["unbalanced"]:
        yield f"the report's counts: {report['counts']}"


def complaints(pk, trace, spans):
    with open(trace, encoding="utf-8") as file:
        document = json.load(file)
    events, job = document["traceEvents"], document["distributedInfo"]
    regions = [e for e in events if e["ph"] == "X" and e.get("cat") == "cpu_op"]
    place = [] if (job["rank"], job["world_size"]) == (1, 2) else [f"the place in the job: {job}"]
    found = [e["tid"] for e in events if e["ph"] == "X" and e["name"] == "span"]
    if len(found) != spans or len(set(found)) != spans:
        place.append(f"spans on streams: {len(found)}, on {len(set(found))} of them; expected {spans}")
    return [*place, *check_slices(regions), *check_events(events), *check_report(pk, trace)]


def life(path):
    """Phases: the training goes on from 100 in the phase that restores, and after the ten steps a checkpoint of 4,096
    bytes is complete in the one that saves, with 105 behind it."""
    with open(path, encoding="utf-8") as file:
        runs = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in file]
    ended = [run for run in runs if run["why"] == "end" and run["saves"] != "0"]
    if len(ended) != 1:
        return [f"{len(ended)} runs with a checkpoint have ended in {path}"]
    wrong = [f"goodput: {word} is {ended[0][word]}, expected {value}" for word, value in (
        ("saves", "1"), ("save_bytes", "4096"), ("saved", "105"), ("at", "110"), ("steps", "10")) if ended[0][word] != value]
    return wrong + [f"goodput: no time in {part}" for part in ("restore", "checkpoint") if ended[0]["part." + part] == "0"]
