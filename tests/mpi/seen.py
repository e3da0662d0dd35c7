"""What the traces and reports of a run say that its ranks did, in the words of ledger.h."""

import collections
import json
import os


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def expected(folder, rank):
    """Calls by name, and operations."""
    calls, operations = collections.Counter(), collections.Counter()
    with open(os.path.join(folder, f"expected-{rank}"), encoding="utf-8") as file:
        for line in file:
            words = line.rstrip("\n").split("\t")
            if words[0] != "request":
                calls[words[0]] += 1
            if len(words) > 1:
                operations[(*words[:3], *map(int, words[3:]))] += 1
    return calls, operations


def operation(event):
    """(call or "request", operation, communicator, bytes, peer, tag)"""
    args = event["args"]
    peers = [args[key] for key in ("Root", "Dst Rank", "Src Rank") if key in args]
    call = event["name"] if event["ph"] == "X" else "request"
    return (call, args["Collective name"], args["Process Group Name"], args.get("bytes", 0),
            peers[0] if peers else -1, args.get("Tag", -1))


def operations_of(trace):
    """Events that are operations, in the order of their beginnings."""
    found = [event for event in trace["traceEvents"]
             if event["ph"] in "Xb" and "Collective name" in event.get("args", {})]
    return sorted(found, key=lambda event: event["ts"])


def calls_of(trace):
    """How often each function of MPI was called."""
    return collections.Counter(event["name"] for event in trace["traceEvents"]
                               if event["ph"] == "X" and event["name"].startswith("MPI_"))


def differences(what, wanted, found):
    """Sentences about two Counters that should be the same."""
    for key in sorted(set(wanted) | set(found), key=str):
        if wanted[key] != found[key]:
            yield f"{what}: {key}: {found[key]} times, expected {wanted[key]}"


def check_report(report, operations):
    """The communicators' figures against the operations that they are of."""
    for comm in report["comm"]["communicators"]:
        mine = [event for event in operations if event["args"]["Process Group Name"] == comm["name"]]
        for key, value in (("calls", len(mine)), ("bytes", sum(e["args"].get("bytes", 0) for e in mine))):
            if comm[key] != value:
                yield f"report: {comm['name']}: {key} is {comm[key]}, the trace has {value}"
        if comm["library"] != "MPI":
            yield f"report: {comm['name']} is of {comm['library']}"
        if not comm["enqueued"] == comm["started"] == comm["completed"] == comm["calls"]:
            yield f"report: {comm['name']}: not all has completed: {comm}"
        if comm["exposed"] > comm["time"]:
            yield f"report: {comm['name']}: waited longer than it took: {comm}"
    if report["comm"]["unmeasured"]:
        yield "report: there are operations that it does not have"


def sequences(operations, comm):
    """(number, operation) of a communicator, as its ranks have to agree on."""
    mine = [e["args"] for e in operations if e["args"]["Process Group Name"] == comm]
    return sorted((args["Seq"], args["Collective name"]) for args in mine)
