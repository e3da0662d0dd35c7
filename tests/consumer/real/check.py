"""check.py WHO BUILD NAME=PATH... - the traces of real programs, as a viewer sees them. What it has to see is worked
out from the events (truth.py), and these are held against the report's counts. NAME=PATH are the programs of make.py.
WHO is truth, perfetto, speedscope, catapult or hta. Exit status 77: this viewer is unavailable."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import hta  # noqa: E402
import make  # noqa: E402
import truth  # noqa: E402
import viewers  # noqa: E402

COUNTED = ("cpu_op", "counter", "collective")  # by the report, each; and steps
NOT_EXACT = 1e-12  # counters' values, as parsers of others read them


def differences(what, wanted, seen):
    for key in sorted(wanted.keys() | seen.keys(), key=str):
        if wanted.get(key, 0) != seen.get(key, 0):
            yield f"{what} {key}: recorded {wanted.get(key, 0)}, shown {seen.get(key, 0)}"


def added(rows):
    counts = {}
    for *key, count in rows:
        key = tuple(key) if len(key) > 1 else key[0]
        counts[key] = counts.get(key, 0) + count
    return counts


def compare(document, seen, who):
    """Everything in which a viewer's view differs from what is in the trace."""
    yield from seen["errors"]
    if "slices" not in seen:
        return
    instants = who in viewers.MARKS_ARE_SLICES
    yield from differences("slices", truth.slices(document, instants), added(seen["slices"]))
    events = document["traceEvents"]
    if set(seen["processes"]) != (shown := set(truth.names_of(events, "process_name").values())):
        yield f"processes: recorded {shown}, shown {seen['processes']}"
    threads = truth.names_of(events, "thread_name")
    used = {threads[e["pid"], e["tid"]] for e in events if e["ph"] == "X"}
    if missing := used - set(seen["tracks"]):
        yield f"no tracks named {missing}"
    if who == "speedscope":  # shows neither arrows nor curves nor what overlaps
        return
    yield from differences("overlapping", truth.others(document), added(seen["others"]))
    yield from differences("arrows", truth.flows(document, who == "perfetto"), added(seen["flows"]))
    yield from compare_values(truth.values(document), sorted(map(tuple, seen["values"])))
    if "total" in seen and seen["total"] != sum(row[-1] for row in seen["slices"] + seen["others"]):
        yield "there are slices that belong to nobody"


def compare_values(wanted, seen):
    if len(wanted) != len(seen):
        yield f"counters: {len(wanted)} values recorded, {len(seen)} shown"
    for (name, a), (other, b) in zip(wanted, seen):
        if name != other or abs(a - b) > NOT_EXACT * max(abs(a), 1):
            yield f"counter {name}: recorded {a}, shown {other}: {b}"
            return


def check_truth(path, document, tools):
    report = document.get("perfkitReport")
    if report is None and "merged" not in document["metadata"] and "pk" in tools:
        report = make.report_of(path, tools["pk"])
    if report:
        yield from truth.against_report(document, report)
    elif "merged" not in path:
        yield "there is no report"


def check(who, paths, documents, build, tools):
    if who == "truth":
        return [[*check_truth(path, document, tools), *cannot_fail(document)]
                for path, document in zip(paths, documents)]
    if who == "hta":
        return [list(hta.complaints(make.text_of(path), document)) for path, document in zip(paths, documents)]
    seen = viewers.VIEWERS[who](paths, build)
    return [list(compare(document, view, who)) for document, view in zip(documents, seen)]


def as_seen(document):
    """What a viewer would tell that sees everything."""
    def rows(counts):
        return [[*(key if isinstance(key, tuple) else (key,)), count] for key, count in counts.items()]
    events = document["traceEvents"]
    return {"errors": [], "slices": rows(truth.slices(document, True)), "others": rows(truth.others(document)),
            "flows": rows(truth.flows(document, True)), "values": truth.values(document),
            "tracks": list(truth.names_of(events, "thread_name").values()),
            "processes": list(truth.names_of(events, "process_name").values())}


def is_counted(event):
    return event.get("cat") in COUNTED or event["name"].startswith("ProfilerStep#")


def cannot_fail(document):
    """Changes of a trace that nothing objects to."""
    seen, report, events = as_seen(document), document.get("perfkitReport"), document["traceEvents"]
    if list(compare(document, seen, "perfetto")):
        yield "it differs from itself"
    for kind in ("X", "C", "b", "s"):
        # The first one that the report counts, if there is such: which comes first in a file depends on when it was flushed.
        found = min((e for e in events if e["ph"] == kind), key=lambda e: not is_counted(e), default=None)
        if found is None:
            continue
        rest = [e for e in events if e is not found]
        rest = [e for e in rest if kind != "s" or e["ph"] != "f" or e["id"] != found["id"]]
        spoilt = document | {"traceEvents": rest}
        if not list(compare(spoilt, seen, "perfetto")):
            yield f"nobody misses an event of {kind}"
        if report and kind in "XCb" and is_counted(found) and not list(truth.against_report(spoilt, report)):
            yield f"the report does not miss an event of {kind}"


def main(who, build, *named):
    tools = dict(word.split("=", 1) for word in named if word.split("=", 1)[1])
    try:
        with viewers.Alone(build):
            paths = make.make(tools, os.path.join(build, "traces"))
        documents = [truth.load(make.text_of(path)) for path in paths]
        found = check(who, paths, documents, os.path.dirname(build), tools)
    except viewers.Skip as reason:
        print(reason)
        return 77
    except make.Wrong as reason:
        paths, found = [""], [[str(reason)]]
    for path, complaints in zip(paths, found):
        name = os.path.basename(path)
        print("\n".join(f"{name}: {complaint}" for complaint in complaints[:12]) or f"{name}: as recorded")
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
