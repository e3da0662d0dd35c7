"""exchange.py MPIEXEC PK PROGRAM MPI4 LIBRARY... - calls that send and receive, and messages that are found first: who
sent what to whom, arrows of `pk merge` and wait states of `pk job` against what exchange.c does, and its traces' times."""

import collections
import json
import math
import os
import subprocess
import sys
import tempfile

import launch
import run
import seen

RANKS = 4
SETTINGS = dict(run.SETTINGS, PK_REPORT_PATH="report-%r.rank.json")
NEAR_NS = 3000  # of each message: a wait within the clocks' doubt is none


def sent_by(rank, is_mpi_4):
    """(to, tag, bytes) of a round."""
    to = (rank + 1) % RANKS
    yield from ((to, 1, 24), (to, 2, 32), (rank ^ 1, 3, 8 * (40000 - rank)), (to, 5, 48), (to, 6, 56))
    if rank + 1 < RANKS:
        yield (to, 4, 40)
    if is_mpi_4:
        yield from ((to, 8, 64), (to, 9, 72))


def whole(end):
    """In ns: for viewers, slices that end together end some tenths of one apart, from the inside out."""
    return math.ceil(end - 0.001)


def messages_of(folder, rank):
    """(sender, receiver, tag): what the rank's trace says of them in their order, sent and received."""
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    operations = seen.operations_of(seen.read(folder, f"run-{rank}.json"))
    ends = {}
    for event in seen.read(folder, f"run-{rank}.json")["traceEvents"]:
        if event["ph"] == "e":
            ends.setdefault(event["id"], []).append(event["ts"])
    for event in operations:
        args = event["args"]
        _, op, _, size, peer, tag = seen.operation(event)
        if op not in ("send", "send_recv", "recv"):
            continue
        start = event["ts"] * 1000
        end = whole(ends[event["id"]].pop(0) * 1000 if event["ph"] == "b" else start + event["dur"] * 1000)
        waits = end - args["exposed_ns"] if event["ph"] == "b" else start
        row = {"bytes": size, "start": start, "end": end, "waits": waits, "op": op}
        (received if op == "recv" else sent)[(peer, rank, tag) if op == "recv" else (rank, peer, tag)].append(row)
    return sent, received


def waits_of(sent, received, origins):
    """Late senders by receiver, late receivers by sender, in ns, by the formulas of docs/job.md."""
    late_sender, late_receiver, until = collections.Counter(), collections.Counter(), {}
    for key, rows in received.items():
        for s, r in zip(sent[key], rows):
            start = s["start"] + origins[key[0]] - origins[key[1]]
            late_sender[key[1]] += max(min(start, r["end"]) - r["waits"], 0)
            until[(key[1], r["end"])] = start
    for key, rows in sent.items():
        for s, r in zip(rows, received[key]):
            start = r["start"] + origins[key[1]] - origins[key[0]]
            waits = s["waits"]
            if s["op"] == "send_recv":  # its receive ends last within it
                own = max((end for rank, end in until if rank == key[0] and end <= s["end"]), default=0)
                waits = max(waits, until[(key[0], own)])
            if start <= s["end"]:
                late_receiver[key[0]] += max(start - waits, 0)
    return late_sender, late_receiver


def check_messages(folder, is_mpi_4):
    sent, received = {}, {}
    for rank in range(RANKS):
        mine, theirs = messages_of(folder, rank)
        sent.update(mine)
        received.update(theirs)
    wanted = {(rank, to, tag): [size] * RANKS for rank in range(RANKS) for to, tag, size in sent_by(rank, is_mpi_4)}
    for what, found in (("sent", sent), ("received", received)):
        sizes = {key: [row["bytes"] for row in rows] for key, rows in found.items()}
        if sizes != wanted:
            yield f"{what}: {sizes}, expected {wanted}"
    check_messages.found = sent, received


def check_job(pk, folder, is_mpi_4):
    reports = [seen.read(folder, f"report-{rank}.rank.json") for rank in range(RANKS)]
    job = json.loads(subprocess.check_output([pk, "job", "--json", *(os.path.join(folder, f"report-{rank}.rank.json")
                                                                   for rank in range(RANKS))]))
    total, pairs = 0, collections.defaultdict(lambda: [0, 0])
    for rank in range(RANKS):
        for to, _, size in sent_by(rank, is_mpi_4):
            total += RANKS
            pairs[(rank, to)][0] += RANKS
            pairs[(rank, to)][1] += RANKS * size
    matrix = {(row[0], row[1]): row[2:4] for row in job["messages"]["matrix"]}
    if matrix != dict(pairs):
        yield f"matrix: {matrix}, expected {dict(pairs)}"
    for rank, report in enumerate(reports):
        got = {row[0]: row[4:6] for row in report["comm"]["partners"] if row[4]}
        if got != {a: n for (a, b), n in pairs.items() if b == rank}:
            yield f"rank {rank} has received {got}"
    waits = job["waits"]
    if waits.get("messages") != total or waits.get("alone") != 0:
        yield f"waits: {waits}, expected {total} messages"
        return
    origins = [report["comm"]["sequences"]["origin"] for report in reports]
    for name, by_rank in zip(("late_sender", "late_receiver"), waits_of(*check_messages.found, origins)):
        for rank in range(RANKS):
            said = job["ranks"][rank]["waits"].get(name, 0)
            if abs(said - by_rank[rank]) > NEAR_NS * total:
                yield f"{name} of rank {rank}: {said}, expected {by_rank[rank]}"


def check_merged(pk, folder, is_mpi_4):
    """Messages are paired. Those that a call has sent by itself have an arrow each (of a request it may miss the call, if
    the thread lost its processor in between), both of whose ends lie in calls of MPI."""
    total = sum(RANKS for rank in range(RANKS) for _ in sent_by(rank, is_mpi_4))
    sure = sum(RANKS for rank in range(RANKS) for _, tag, _ in sent_by(rank, is_mpi_4) if tag < 5)
    path = os.path.join(folder, "all.json")
    traces = [os.path.join(folder, f"run-{rank}.json") for rank in range(RANKS)]
    said = subprocess.run([pk, "merge", *traces, "-o", path], capture_output=True, text=True, check=True).stdout
    events = seen.read(folder, "all.json")["traceEvents"]
    calls = [event for event in events if event["ph"] == "X" and event["name"].startswith("MPI_")]
    ends = [event for event in events if event["ph"] in "sf" and event["name"] == "message"]
    if not 2 * sure <= len(ends) <= 2 * total or f"{total} messages" not in said:
        yield f"pk merge: {len(ends)} ends of arrows, expected {2 * sure} to {2 * total}: {said}"
    for end in ends:
        if not any(c["pid"] == end["pid"] and c["tid"] == end["tid"] and
                   c["ts"] - 0.002 <= end["ts"] <= c["ts"] + c["dur"] + 0.002 for c in calls):
            yield f"in no call: {end}"


def main(mpiexec, pk, program, mpi_4, *libraries):
    launch.need_ranks(mpiexec)
    pk, is_mpi_4 = os.path.abspath(pk), mpi_4 == "4"
    settings = dict(SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, RANKS, [os.path.abspath(program)], folder, settings)
        complaints = [*check_messages(folder, is_mpi_4), *check_job(pk, folder, is_mpi_4), *check_merged(pk, folder, is_mpi_4)]
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
