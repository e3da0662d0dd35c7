"""ranks.py TEST MPIEXEC PROGRAM ... - libpk_mpi with real ranks: each test is a function of its name, which says what it takes."""

import collections
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from decimal import Decimal

import launch


# ---- the program alone, then with the libraries preloaded ----

# The same results bit by bit, and in each rank's trace and report every call and operation that its
# ledger has, once. Without libraries the program is linked with perfkit, and starts it.

RUN_RANKS = 4

RUN_SETTINGS = {"PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json", "PK_REPORT_PATH": "report-%r.json",
            "PK_BACKENDS": "none", "PK_LOG": "stderr"}


def results(folder):
    names = [f"result-{rank}" for rank in range(RUN_RANKS)]
    return {name: open(os.path.join(folder, name), encoding="utf-8").read() for name in names}


def check_rank(folder, rank, whole=False):
    """Complaints, and what the rank did. whole: the session began before MPI and ended behind it."""
    calls, wanted = launch.expected(folder, rank)
    for name in ("MPI_Init", "MPI_Finalize") if whole else ():
        calls[name] += 1
    trace, report = launch.read(folder, f"run-{rank}.json"), launch.read(folder, f"report-{rank}.json")
    operations = launch.operations_of(trace)
    found = {key: 0 for key in wanted}
    for event in operations:
        key = launch.operation(event)
        found[key] = found.get(key, 0) + 1
    complaints = [*launch.differences("calls", calls, launch.calls_of(trace)),
                  *launch.differences("operations", wanted, collections.Counter(found)),
                  *launch.check_report(report, operations)]
    for event in operations:
        if event["args"].get("Rank", -1) < 0 or event["args"]["Group size"] < 1:
            complaints.append(f"no rank or size: {event}")
        if event["ph"] == "b" and event["args"]["exposed_ns"] < 0:
            complaints.append(f"waited for less than nothing: {event}")
    if report["run"]["rank"] != rank or report["run"]["world_size"] != RUN_RANKS:
        complaints.append(f"report is of rank {report['run']}")
    return [f"rank {rank}: {text}" for text in complaints], operations


def check(folder, whole=False):
    complaints, ranks = [], []
    for rank in range(RUN_RANKS):
        said, operations = check_rank(folder, rank, whole)
        complaints += said
        ranks.append(operations)
    numbers = [launch.sequences(operations, "MPI_COMM_WORLD") for operations in ranks]
    if not numbers[0] or any(other != numbers[0] for other in numbers):
        complaints.append(f"the ranks do not agree on what they did: {[n[:20] for n in numbers]}")
    if [n for n, _ in numbers[0]] != list(range(1, len(numbers[0]) + 1)):
        complaints.append("sequence numbers have gaps")
    return complaints


def run(mpiexec, program, *libraries):
    program, libraries = os.path.abspath(program), [os.path.abspath(library) for library in libraries]
    with tempfile.TemporaryDirectory() as folder:
        said = launch.run(mpiexec, RUN_RANKS, [program], folder)
        alone = results(folder)
        settings = dict(RUN_SETTINGS, LD_PRELOAD=":".join(libraries)) if libraries else {}
        if libraries and launch.run(mpiexec, RUN_RANKS, [program], folder, settings) != said:
            sys.exit("what it prints is not the same")
        wrapped = results(folder)
        complaints = [f"{name} is not the same" for name in alone if alone[name] != wrapped[name]]
        complaints += check(folder)
    for complaint in complaints[:60]:
        print(complaint)
    return 1 if complaints else 0


# ---- the program alone, then by pk run ----

# As above; it finds the program's MPI by itself. What is said at the end is rank 0's alone, on stderr.


def attached(mpiexec, pk, program):
    pk, program = os.path.abspath(pk), os.path.abspath(program)
    settings = {key: value for key, value in RUN_SETTINGS.items() if key not in ("PK_MPI_START", "PK_LOG")}
    with tempfile.TemporaryDirectory() as folder:
        said = launch.run(mpiexec, RUN_RANKS, [program], folder)
        alone = results(folder)
        done = launch.finish(mpiexec, RUN_RANKS, [pk, "run", "-o", "of", "--", program], folder, settings)
        complaints = [] if done.stdout == said else ["what it prints is not the same"]
        if len(re.findall("perfkit: recorded in", done.stderr)) != 1:
            complaints.append(f"it says {done.stderr}")
        complaints += [f"{name} is not the same" for name, text in results(folder).items() if alone[name] != text]
        complaints += check(folder, whole=True)
        plain = launch.finish(mpiexec, RUN_RANKS, [pk, "run", "-o", "of", "--quiet", "--", program], folder)
        complaints += [plain.stderr] if "perfkit" in plain.stderr else []
        job = subprocess.run([pk, "job", "--json", "of"], cwd=folder, capture_output=True, text=True, check=False)
        if job.returncode or len(json.loads(job.stdout)["ranks"]) != RUN_RANKS:
            complaints.append(f"pk job: {job.stdout[:300]}{job.stderr}")
    for complaint in complaints[:60]:
        print(complaint)
    return 1 if complaints else 0


# ---- MPI_Pcontrol ----

PARTS = [([], {}, {"MPI_Pcontrol 1": 20, "MPI_Pcontrol 3": 20}), (["names"], {"PK_MPI_PCONTROL": "names"}, {"solve": 20}),
         (["names"], {"PK_MPI_PCONTROL": "0"}, {}), ([], {}, {})]


def pcontrol(mpiexec, pk, program):
    complaints = []
    for i, (words, settings, wanted) in enumerate(PARTS):
        with tempfile.TemporaryDirectory() as folder:
            quiet = ["--listen", "-pcontrol"] if i == len(PARTS) - 1 else []
            launch.run(mpiexec, 2, [os.path.abspath(pk), "run", "-o", "of", *quiet, "--", os.path.abspath(program), "20", *words],
                       folder, settings)
            for rank in range(2):
                regions = launch.read(folder, f"of/{rank}.report.json")["regions"]
                found = {region["name"]: region["time"]["count"] for region in regions}
                if {name: count for name, count in found.items() if not re.match("MPI_[^P]", name)} != wanted:
                    complaints.append(f"{words} {settings}: {found}")
                if found["MPI_Barrier"] != 20:
                    complaints.append(f"{found}")
    print("\n".join(complaints))
    return 1 if complaints else 0


# ---- the steps of a loop that nobody has named ----

# Ranks number them alike, though they see the loop at different turns and have had others before; by hand they are what
# --step says, and what the report says is to be said for the loop that was found is that loop.

TURNS, BY_HAND = 1400, 700
TURNS_RANKS = 2  # where it does not matter: those of MPICH poll


def turns_run(mpiexec, pk, program, folder, *options, how="halo", ranks=TURNS_RANKS, turns=BY_HAND):
    launch.run(mpiexec, ranks, [os.path.abspath(pk), "run", "--quiet", "-o", "of", *options, "--", os.path.abspath(program),
                                how, str(turns)], folder)
    return [launch.read(folder, f"of/{rank}.report.json") for rank in range(ranks)]


def sums_by_step(trace):
    """By the number of a step, that of the first sum of all ranks in it."""
    steps = sorted((e["ts"], e["dur"], int(e["name"].split("#")[1])) for e in trace["traceEvents"]
                   if e["ph"] == "X" and e["name"].startswith("ProfilerStep#"))
    sums = [(e["ts"], e["args"]["Seq"]) for e in launch.operations_of(trace) if e["name"] == "MPI_Allreduce"]
    found = {}
    for begin, length, number in steps:
        inside = [seq for ts, seq in sums if begin <= ts < begin + length]
        if inside:
            found[number] = inside[0]
    return found


def turns_alike(mpiexec, pk, program):
    with tempfile.TemporaryDirectory() as folder:
        reports = turns_run(mpiexec, pk, program, folder, "--trace", ranks=RUN_RANKS, turns=TURNS)
        ranks = [sums_by_step(launch.read(folder, f"of/{rank}.trace.json")) for rank in range(RUN_RANKS)]
        job = subprocess.run([pk, "job", "--json", os.path.join(folder, "of")], capture_output=True, text=True, check=False)
    counts = {report["found_steps"]["turns"] for report in reports}
    if max(counts) > TURNS + 7 or min(counts) < TURNS - 7:
        yield f"found {counts} steps"
    if len({min(rank) for rank in ranks}) == 1:
        yield "the ranks have found the loop at the same turn: this shows nothing"
    common = set.intersection(*(set(rank) for rank in ranks))
    unlike = [number for number in sorted(common) if len({rank[number] for rank in ranks}) > 1]
    if len(common) < TURNS / 4 or unlike:
        yield f"of {len(common)} steps {len(unlike)} have not the same sums: {[(n, [r[n] for r in ranks]) for n in unlike[:3]]}"
    if job.returncode or json.loads(job.stdout)["frontier"]["steps"] < TURNS / 4:
        yield f"pk job: {job.stdout[:300]}{job.stderr}"


def turns_by_hand(mpiexec, pk, program):
    for wish, wanted in (("MPI_Allreduce@MPI_COMM_WORLD", BY_HAND - 1), ("MPI_Allreduce@1/2", BY_HAND // 2 - 1),
                         ("MPI_Allreduce@communicator of 1 #2", BY_HAND - 1), ("MPI_Allreduce", 2 * BY_HAND - 1), ("MPI_Allreduce@nowhere", 0)):
        with tempfile.TemporaryDirectory() as folder:
            counts = [report["steps"]["count"] for report in turns_run(mpiexec, pk, program, folder, "--step", wish, how="sums")]
            if counts != [wanted] * TURNS_RANKS:
                yield f"--step {wish}: {counts} steps, not {wanted}"


def turns_as_told(mpiexec, pk, program):
    for how, wanted in ("halo", None), ("faces", None), ("sums", "MPI_Allreduce@MPI_COMM_WORLD"):
        with tempfile.TemporaryDirectory() as folder:
            report = turns_run(mpiexec, pk, program, folder, how=how)[1]
            if abs(report["found_steps"]["turns"] - BY_HAND) > BY_HAND / 100:
                yield f"{how}: {report['found_steps']}"
            text = subprocess.run([pk, "report", os.path.join(folder, "of", "1.report.json")], capture_output=True, text=True,
                                  check=True).stdout
            said = re.search("^ *pk run --step '(.*)'$", text, re.MULTILINE)
            if not said or (wanted and said[1] != wanted):
                yield f"{how}: it says {said and said[1]}"
                continue
            again = turns_run(mpiexec, pk, program, folder, "--step", said[1], how=how)[1]["steps"]["count"]
            if abs(again - report["found_steps"]["turns"]) > 1:
                yield f"{how}: --step {said[1]} makes {again} steps, not {report['found_steps']}"


def turns(mpiexec, pk, program):
    launch.need_ranks(mpiexec)
    complaints = [*turns_alike(mpiexec, pk, program), *turns_by_hand(mpiexec, pk, program), *turns_as_told(mpiexec, pk, program)]
    print("\n".join(complaints))
    return 1 if complaints else 0


# ---- the program alone, then with the library for another MPI preloaded ----

# It runs to the same results bit by bit, nothing is recorded, and one line on stderr says why.


def other_check(mpiexec, program, settings, folder):
    """Complaints of one way to have the wrong library."""
    alone = launch.finish(mpiexec, RUN_RANKS, [program], folder)
    wanted = results(folder)
    done = launch.finish(mpiexec, RUN_RANKS, [program], folder, settings)
    said = [line for line in done.stderr.splitlines() if "perfkit" in line]
    if done.stdout != alone.stdout:
        yield "what it prints is not the same"
    for name, text in results(folder).items():
        if text != wanted[name]:
            yield f"{name} is not the same"
    if len(said) != 1 or "this libpk_mpi is for" not in said[0]:
        yield f"it says {said}"
    for name in os.listdir(folder):
        if name.startswith(("run-", "report-")):
            yield f"there is {name}"


def other(mpiexec, program, *libraries):
    settings = dict(RUN_SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    complaints = []
    for start in ("1", "0"):
        with tempfile.TemporaryDirectory() as folder:
            complaints += other_check(mpiexec, os.path.abspath(program), dict(settings, PK_MPI_START=start), folder)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


# ---- requests that are never waited for are in the report as not complete ----

# A rank that calls MPI_Abort leaves a trace and a report behind.


def left_check(folder, rank):
    trace, report = launch.read(folder, f"run-{rank}.json"), launch.read(folder, f"report-{rank}.json")
    found = [launch.operation(event)[1] for event in launch.operations_of(trace)]
    if found != ["barrier"]:
        yield f"rank {rank}: operations that have ended: {found}"
    comms = {comm["name"]: comm for comm in report["comm"]["communicators"]}
    messages = comms["MPI_COMM_WORLD messages"]
    if (messages["enqueued"], messages["completed"], messages["calls"]) != (2, 0, 0):
        yield f"rank {rank}: {messages}"
    if comms["MPI_COMM_WORLD"]["completed"] != 1:
        yield f"rank {rank}: {comms['MPI_COMM_WORLD']}"


def left(mpiexec, program, *libraries):
    settings = dict(RUN_SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 4, [os.path.abspath(program)], folder, settings)
        for rank in range(4):
            complaints += left_check(folder, rank)
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 4, [os.path.abspath(program), "abort"], folder, settings, fails=True)
        # The others may be killed before they come to it.
        ranks = [rank for rank in range(4) if os.path.exists(os.path.join(folder, f"report-{rank}.json"))]
        complaints += [] if ranks else ["no rank has left a report"]
        for rank in ranks[:1]:
            complaints += left_check(folder, rank)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


# ---- PK_MPI_START=1 with a trace that cannot be written ----

# The job runs as without, and its rank 0 alone says why nothing is recorded.


def asked(mpiexec, program, *libraries):
    settings = dict(RUN_SETTINGS, PK_TRACE_PATH="missing/run-%r.json",
                    LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    del settings["PK_LOG"]
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, RUN_RANKS, [os.path.abspath(program)], folder, settings)
    said = [line for line in done.stderr.splitlines() if "perfkit" in line]
    wanted = ("PK_MPI_START=1, but nothing is recorded", "missing/run-0.json", ": No such file or directory")
    if len(said) != 1 or not all(words in said[0] for words in wanted):
        print(f"it says {said}")
        return 1
    return 0


# ---- communicators of one name ----

# `pk merge` tells them apart, all members number them alike, what is made again and again is one,
# and partners are ranks of the job.

RANKS, TIMES = 4, 5


def ids(operations, name):
    """Of the barriers of communicators of that name, in whatever order the rank has used them."""
    return sorted(event["args"]["Comms Id"] for event in operations
            if event["args"]["Process Group Name"].startswith(name) and event["args"]["Collective name"] == "barrier")


def groups_check(folder):
    halves, again = [], []
    for rank in range(RANKS):
        operations = launch.operations_of(launch.read(folder, f"run-{rank}.json"))
        halves.append(ids(operations, "half"))
        again.append(ids(operations, "again"))
        partners = launch.read(folder, f"report-{rank}.json")["comm"].get("partners")
        if [row[:3] + row[4:6] for row in partners or []] != [[rank ^ 1, 1, 4, 1, 4]]:
            yield f"rank {rank} has the partners {partners}"
    if len(halves[0]) != 2 or halves[0] != halves[1] or halves[2] != halves[3]:
        yield f"members do not agree: {halves}"
    if len({*halves[0], *halves[2]}) != 4:
        yield f"two communicators are one: {halves}"
    if len({number for rank in again for number in rank}) != 1 or any(len(rank) != TIMES for rank in again):
        yield f"what is made again and again: {again}"


def check_merged(pk, folder):
    said = subprocess.run([pk, "merge", folder, "-o", os.path.join(folder, "all.json")], capture_output=True, text=True, check=False)
    if said.returncode or "ambiguous: " in said.stdout or "4 messages" not in said.stdout:
        yield f"pk merge: {said.stdout}{said.stderr}"


def groups(mpiexec, pk, program, *libraries):
    settings = dict(RUN_SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, RANKS, [os.path.abspath(program)], folder, settings)
        complaints = [*groups_check(folder), *(check_merged(os.path.abspath(pk), folder) if pk != "none" else [])]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


# ---- calls of which their time is known ----

TIMED = {"c": ["MPI_Win_allocate", "MPI_Win_fence 2", "MPI_Put", "MPI_Win_lock", "MPI_Accumulate", "MPI_Win_unlock", "MPI_Win_free",
               "MPI_File_open", "MPI_File_write_at_all", "MPI_File_close", "MPI_Neighbor_allgather"],
         "4": ["MPI_Allreduce_c", "MPI_Allreduce_init", "MPI_Start", "MPI_Wait"], "fortran": ["MPI_Allreduce", "MPI_Barrier", "MPI_Finalize"]}


def timed(mpiexec, program, of, *libraries):
    settings = dict(RUN_SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 2, [os.path.abspath(program)], folder, settings)
        complaints = []
        for rank in range(2):
            calls = {row["name"]: row["time"]["count"] for row in launch.read(folder, f"report-{rank}.json")["regions"]}
            wanted = TIMED["c"] + TIMED["4"] * (of == "4") if of != "fortran" else TIMED[of] + [("MPI_Send", "MPI_Recv")[rank]]
            complaints += [f"rank {rank}: no {name} in {calls}" for name, times in ((name + " 1").split()[:2] for name in wanted)
                           if calls.get(name) != int(times) and name != "MPI_Finalize"]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


# ---- gather.c on numbers of ranks that end amid a group and do not ----


def gather(mpiexec, program):
    launch.need_ranks(mpiexec)
    with tempfile.TemporaryDirectory() as folder:
        for ranks in (2, 7):
            launch.run(mpiexec, ranks, [os.path.abspath(program)], folder)


# ---- examples/mpi_stencil.c ----

# The right temperatures, overlapped or not, and reports that name the communication and what of it
# was waited for.

STENCIL_RANKS, STEPS, EVERY = 4, 60, 10


def check_plate(folder, rank):
    trace = launch.read(folder, f"mpi_stencil-{rank}.json")
    with open(os.path.join(folder, f"mpi_stencil-{rank}.txt"), encoding="utf-8") as file:
        text = file.read()
    events = launch.operations_of(trace)
    kinds = collections.Counter((launch.operation(e)[1], e["args"]["Process Group Name"]) for e in events)
    # Two by two: each rank has two neighbours.
    wanted = {("send", "plate messages"): 2 * STEPS, ("recv", "plate messages"): 2 * STEPS,
              ("all_reduce", "plate"): STEPS // EVERY}
    yield from launch.differences("operations", collections.Counter(wanted), kinds)
    sizes = {event["args"]["bytes"] for event in events if event["ph"] == "b"}
    if sizes != {32 * 8}:
        yield f"the halos have {sizes} bytes"
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"].startswith("ProfilerStep#")]
    if len(steps) != STEPS:
        yield f"{len(steps)} steps"
    for pattern in (r"plate messages +MPI +rank \d of 4: 240 operations", r"waited for, .* hidden",
                    r"start halos +(send|recv) ", r"residual +all_reduce "):
        if not re.search(pattern, text):
            yield f"the report does not say '{pattern}':\n{text}"


def stencil(mpiexec, program):
    program = os.path.abspath(program)
    complaints, said = [], []
    for more in ([], ["--blocking"]):
        with tempfile.TemporaryDirectory() as folder:
            said.append(launch.run(mpiexec, STENCIL_RANKS, [program, "--cells", "64", "--steps", str(STEPS), *more],
                                   folder))
            for rank in range(STENCIL_RANKS):
                complaints += [f"rank {rank} {more}: {text}" for text in check_plate(folder, rank)]
    if said[0] != said[1] or not re.search(r"64 x 64 cells on 4 ranks, 60 steps: .* error \d\.\d+e-1\d", said[0]):
        complaints.append(f"it prints {said}")
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


# ---- calls that send and receive, and messages that are found first ----

# Who sent what to whom, arrows of `pk merge` and wait states of `pk job` against what exchange.c
# does, and its traces' times.

EXCHANGE_RANKS = 4

SETTINGS = dict(RUN_SETTINGS, PK_REPORT_PATH="report-%r.rank.json")

NEAR_NS = 3000  # of each message: a wait within the clocks' doubt is none


def sent_by(rank, is_mpi_4):
    """(to, tag, bytes) of a round."""
    to = (rank + 1) % EXCHANGE_RANKS
    yield from ((to, 1, 24), (to, 2, 32), (rank ^ 1, 3, 8 * (40000 - rank)), (to, 5, 48), (to, 6, 56))
    if rank + 1 < EXCHANGE_RANKS:
        yield (to, 4, 40)
    if is_mpi_4:
        yield from ((to, 8, 64), (to, 9, 72))


def whole(end):
    """In ns: for viewers, slices that end together end some tenths of one apart, from the inside out."""
    return math.ceil(end - 0.001)


def messages_of(folder, rank):
    """(sender, receiver, tag): what the rank's trace says of them in their order, sent and received."""
    sent, received = collections.defaultdict(list), collections.defaultdict(list)
    operations = launch.operations_of(launch.read(folder, f"run-{rank}.json"))
    ends = {}
    for event in launch.read(folder, f"run-{rank}.json")["traceEvents"]:
        if event["ph"] == "e":
            ends.setdefault(event["id"], []).append(event["ts"])
    for event in operations:
        args = event["args"]
        _, op, _, size, peer, tag = launch.operation(event)
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
    for rank in range(EXCHANGE_RANKS):
        mine, theirs = messages_of(folder, rank)
        sent.update(mine)
        received.update(theirs)
    wanted = {(rank, to, tag): [size] * EXCHANGE_RANKS for rank in range(EXCHANGE_RANKS) for to, tag, size in sent_by(rank, is_mpi_4)}
    for what, found in (("sent", sent), ("received", received)):
        sizes = {key: [row["bytes"] for row in rows] for key, rows in found.items()}
        if sizes != wanted:
            yield f"{what}: {sizes}, expected {wanted}"
    check_messages.found = sent, received


def check_job(pk, folder, is_mpi_4):
    reports = [launch.read(folder, f"report-{rank}.rank.json") for rank in range(EXCHANGE_RANKS)]
    job = json.loads(subprocess.check_output([pk, "job", "--json", *(os.path.join(folder, f"report-{rank}.rank.json")
                                                                   for rank in range(EXCHANGE_RANKS))]))
    total, pairs = 0, collections.defaultdict(lambda: [0, 0])
    for rank in range(EXCHANGE_RANKS):
        for to, _, size in sent_by(rank, is_mpi_4):
            total += EXCHANGE_RANKS
            pairs[(rank, to)][0] += EXCHANGE_RANKS
            pairs[(rank, to)][1] += EXCHANGE_RANKS * size
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
        for rank in range(EXCHANGE_RANKS):
            said = job["ranks"][rank]["waits"].get(name, 0)
            if abs(said - by_rank[rank]) > NEAR_NS * total:
                yield f"{name} of rank {rank}: {said}, expected {by_rank[rank]}"


def exchange_check_merged(pk, folder, is_mpi_4):
    """Messages are paired. Those that a call has sent by itself have an arrow each (of a request it may miss the call, if
    the thread lost its processor in between), both of whose ends lie in calls of MPI."""
    total = sum(EXCHANGE_RANKS for rank in range(EXCHANGE_RANKS) for _ in sent_by(rank, is_mpi_4))
    sure = sum(EXCHANGE_RANKS for rank in range(EXCHANGE_RANKS) for _, tag, _ in sent_by(rank, is_mpi_4) if tag < 5)
    path = os.path.join(folder, "all.json")
    traces = [os.path.join(folder, f"run-{rank}.json") for rank in range(EXCHANGE_RANKS)]
    said = subprocess.run([pk, "merge", *traces, "-o", path], capture_output=True, text=True, check=True).stdout
    events = launch.read(folder, "all.json")["traceEvents"]
    calls = [event for event in events if event["ph"] == "X" and event["name"].startswith("MPI_")]
    ends = [event for event in events if event["ph"] in "sf" and event["name"] == "message"]
    if not 2 * sure <= len(ends) <= 2 * total or f"{total} messages" not in said:
        yield f"pk merge: {len(ends)} ends of arrows, expected {2 * sure} to {2 * total}: {said}"
    for end in ends:
        if not any(c["pid"] == end["pid"] and c["tid"] == end["tid"] and
                   c["ts"] - 0.002 <= end["ts"] <= c["ts"] + c["dur"] + 0.002 for c in calls):
            yield f"in no call: {end}"


# ---- collectives that are requests ----

# HOW: rank 1 enters 50 ms late; so it does, but behind what the others do meanwhile; it enters with them, and does not call
# MPI for 50 ms. What others waited for it, of all that they waited for requests, in ns.

REQUEST_RANKS, REQUEST_STEPS, REQUEST_LATE = 4, 6, 50e6


def requests_of(mpiexec, pk, program, how, libraries):
    settings = dict(PK_MPI_START="1", PK_BACKENDS="none", PK_REPORT_PATH="report-%r.rank.json", LD_PRELOAD=":".join(libraries))
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, REQUEST_RANKS, [program, how, str(REQUEST_STEPS)], folder, settings)
        reports = [os.path.join(folder, f"report-{rank}.rank.json") for rank in range(REQUEST_RANKS)]
        job = json.loads(subprocess.check_output([pk, "job", "--json", *reports]))
        waited = [sum(region["self"] for region in launch.read(folder, name)["regions"] if region["name"] in ("MPI_Wait", "MPI_Barrier"))
                  for name in reports]
    sites = {(site["state"], site["in"]["operation"], site["for"]["most_rank"]): site["for"]["of_rank"] for site in job["waits"]["sites"]}
    for rank, of in enumerate(job["ranks"]):
        told = sum(ns for state, ns in of["waits"].items() if state != "caused")
        if told > waited[rank] + 1e4 * REQUEST_STEPS:
            yield f"{how}: rank {rank} has waited {waited[rank]}, told are {told}"
    nxn, unknown, least = job["waits"]["wait_nxn"]["time"], job["waits"]["unknown"]["time"], 0.8 * REQUEST_STEPS * REQUEST_LATE
    late = sites.get(("wait_nxn", "all_reduce", 1), 0)
    wanted = {"late": late > 3 * least, "overlap": late < 0.1 * least, "progress": late < 0.1 * least and unknown > least}
    if not wanted[how]:
        yield f"{how}: at N x N {nxn}, not known {unknown}, {sites}"


def requests(mpiexec, pk, program, *libraries):
    pk, program, *libraries = (os.path.abspath(path) for path in (pk, program, *libraries))
    complaints = [text for how in ("late", "overlap", "progress") for text in requests_of(mpiexec, pk, program, how, libraries)]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


def exchange(mpiexec, pk, program, mpi_4, *libraries):
    launch.need_ranks(mpiexec)
    pk, is_mpi_4 = os.path.abspath(pk), mpi_4 == "4"
    settings = dict(SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, EXCHANGE_RANKS, [os.path.abspath(program)], folder, settings)
        complaints = [*check_messages(folder, is_mpi_4), *check_job(pk, folder, is_mpi_4), *exchange_check_merged(pk, folder, is_mpi_4)]
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


# ---- real messages between ranks whose clocks are then made to differ ----

# Each rank becomes a node of its own, with an offset and a drift that are known, and where `pk
# merge` puts its events has to be as near to the truth as it says.

CLOCKS_RANKS = 4


def spoil(text, rank, offset, drift):
    """The trace as it would be by another clock; and its base by the true one."""
    document = json.loads(text, parse_float=Decimal)
    clock, base = document["metadata"]["clock"], document["metadata"]["clock"]["base_monotonic_ns"]
    document["metadata"]["host"] = f"node{rank}"
    clock["id"], clock["base_monotonic_ns"] = f"clock {rank}", base + offset

    def local(us):
        return us + Decimal(round(us * 1000 * Decimal(drift))) / 1000

    for event in document["traceEvents"]:
        if "dur" in event:
            event["dur"] = max(local(event["ts"] + event["dur"]) - local(event["ts"]), Decimal(0))
        event["ts"] = local(event["ts"])
    document["baseTimeNanoseconds"] += random.randint(-10**9, 10**9)  # real time is of no help
    lines = ",\n".join(json.dumps(e, default=float) for e in document["traceEvents"])
    head = json.dumps({key: value for key, value in document.items() if key not in ("traceEvents", "perfkitReport")}, default=float)
    return head[:-1] + ',\n"traceEvents":[\n' + lines + "\n]}\n", base


def starts(text, pid=None):
    return [int(Decimal(str(e["ts"])) * 1000) for e in json.loads(text, parse_float=Decimal)["traceEvents"]
            if e["ph"] == "X" and e["name"] == "clock message" and pid in (None, e["pid"])]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def clocks_check(folder, pk, seed):
    random.seed(seed)
    clocks = [(0, 0.0)] + [(random.randint(-10**12, 10**12), random.uniform(-2e-5, 2e-5)) for _ in range(CLOCKS_RANKS - 1)]
    truth, job = {}, os.path.join(folder, f"job{seed}")
    os.mkdir(job)
    for rank, (offset, drift) in enumerate(clocks):
        text = read(os.path.join(folder, f"run-{rank}.json"))
        spoilt, base = spoil(text, rank, offset, drift)
        truth[json.loads(text)["metadata"]["pid"]] = (rank, [base + at for at in starts(text)])
        with open(os.path.join(job, f"run-{rank}.json"), "w", encoding="utf-8") as file:
            file.write(spoilt)
    done = subprocess.run([pk, "merge", job, "-o", os.path.join(job, "all.json")], capture_output=True, text=True, check=False)
    if done.returncode:
        yield done.stderr
        return
    merged = read(os.path.join(job, "all.json"))
    said = {c["host"]: c for c in json.loads(merged)["metadata"]["clocks"]}
    zero = None
    for pid, (rank, true) in sorted(truth.items(), key=lambda item: item[1]):
        seen, about = starts(merged, pid), said[f"node{rank}"]
        zero = seen[0] - true[0] if rank == 0 else zero
        if rank and (about["method"] != "messages and collectives" or about["broken"]):
            yield f"node{rank}: {about}"
            continue
        wrong = max(abs(a - t - zero) for a, t in zip(seen, true))
        if len(seen) != len(true) or wrong > about["uncertainty_ns"] + 2:  # times are rounded twice
            yield f"node{rank} is {wrong} ns from the truth: {about}"


def by_time(folder, rank):
    """When it has measured."""
    return [event["ts"] for event in json.loads(read(os.path.join(folder, f"run-{rank}.json")))["traceEvents"]
            if event["ph"] == "X" and event["name"] == "clocks of nodes"]


def again(mpiexec, steps):
    """Measured anew each second, at the same collective on all ranks."""
    settings = {"PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json", "PK_MPI_CLOCKS": "all", "PK_MPI_CLOCKS_SECONDS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 3, [steps, "slow"], folder, settings)
        times = [len(by_time(folder, rank)) for rank in range(3)]
        if times[0] < 3 or max(times[1:]) < 3:  # behind MPI_Init, between, and in MPI_Finalize
            yield f"again: the clocks of ranks are measured {times} times"


def silent(mpiexec, steps):
    """A partner whose session has ended hears nothing: the others go on, and the program ends as it should."""
    settings = {"PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json", "PK_MPI_CLOCKS": "all", "PK_MPI_CLOCKS_SECONDS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 3, [steps, "silent"], folder, settings)
        times = [len(by_time(folder, rank)) for rank in range(3)]
        if times[0] <= times[1]:
            yield f"silent: the clocks of ranks are measured {times} times"


def refused(mpiexec, steps):
    """A value that is none, and values that differ: one line, nothing is measured, nobody waits."""
    settings = {"PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json", "PK_LOG": "stderr"}
    for value, line in ("yes", "PK_MPI_CLOCKS=yes is neither"), ("$VALUE", "PK_MPI_CLOCKS differs"):
        with tempfile.TemporaryDirectory() as folder:
            script = f'VALUE=$(( ${{PMIX_RANK:-$PMI_RANK}} % 2 )); export PK_MPI_CLOCKS="{value}"; exec "$0" before'
            done = launch.finish(mpiexec, 3, ["sh", "-c", script, steps], folder, settings)
            if done.stderr.count(line) != 3 or any(starts(read(os.path.join(folder, f"run-{rank}.json"))) for rank in range(3)):
                yield f"PK_MPI_CLOCKS={value}: {done.stderr[-800:]}"


def clocks(mpiexec, program, preload, pk, steps):
    complaints = []
    settings = {"LD_PRELOAD": os.path.abspath(preload), "PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json"}
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, CLOCKS_RANKS, [os.path.abspath(program)], folder, settings | {"PK_MPI_CLOCKS": "all"})
        messages = [len(starts(read(os.path.join(folder, f"run-{rank}.json")))) for rank in range(CLOCKS_RANKS)]
        # Behind MPI_Init and in MPI_Finalize: two for each trip, with one partner or two.
        if min(messages) < 4 or max(messages) > 2 * 2 * 2 * 50:
            complaints.append(f"there are {messages} messages")
        for seed in range(5):
            complaints += clocks_check(folder, os.path.abspath(pk), seed)
    with tempfile.TemporaryDirectory() as folder:  # one node: nothing to measure
        launch.run(mpiexec, CLOCKS_RANKS, [os.path.abspath(program)], folder, settings | {"PK_MPI_CLOCKS": "1"})
        if any(starts(read(os.path.join(folder, f"run-{rank}.json"))) for rank in range(CLOCKS_RANKS)):
            complaints.append("there are messages within a node")
    steps = os.path.abspath(steps)
    complaints += [*again(mpiexec, steps), *silent(mpiexec, steps), *refused(mpiexec, steps)]
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


# ---- ranks that are compared while they run (PK_MPI_STRAGGLERS) ----

# Who is late is named, with the stage, on all ranks, once in the log, and so is its end; nobody
# else is. Ranks that end at different moments, have no steps, differ in what they were asked, or
# abort, keep nobody.

STRAGGLERS_RANKS = 2  # where it does not matter: those of MPICH poll

ON = {"PK_MPI_START": "1", "PK_LOG": "stderr", "PK_MPI_STRAGGLERS": "10",
      "PK_FLUSH_MS": "10"}  # rounds, and so verdicts, in quick succession


def go(mpiexec, program, how, more=None, fails=False, script=None, ranks=STRAGGLERS_RANKS):
    with tempfile.TemporaryDirectory() as folder:
        command = ["sh", "-c", script, program, how] if script else [program, how]
        done = launch.finish(mpiexec, ranks, command, folder, ON | (more or {}), fails=fails)
        done.files = sorted(os.listdir(folder))
        return done


def named(mpiexec, program):
    """All of a straggler's life."""
    done = go(mpiexec, program, "late", {"PK_CAPTURE": "straggler", "PK_CAPTURE_PATH": "late-%r-%s.json"}, ranks=3)
    if done.stdout not in ("late:\nlate: 1 in load\nlate:\nends\n", "late: 1 in load\nlate:\nends\n"):
        yield f"late: {done.stdout}"
    said = [line for line in done.stderr.splitlines() if "ank " in line]
    if len(said) != 2 or "Rank 1 (host " not in said[0] or " in load: " not in said[0] \
            or "rank 1 is not late any more" not in said[1]:
        yield f"late: the log has {said}"
    if len(done.files) != 1 or not done.files[0].startswith("late-1-"):
        yield f"late: there are {done.files}"


def others(mpiexec, program):
    for how, wanted in ("healthy", "late:\nends\n"), ("threads", "late:\nends\n"), ("uneven", None), ("silent", "ends\n"):
        done = go(mpiexec, program, how, ranks=3 if how == "uneven" else STRAGGLERS_RANKS)
        if done.stdout not in ([wanted] if wanted else ["ends\n", "late:\nends\n"]) or "ank " in done.stderr:
            yield f"{how}: {done.stdout}{done.stderr[-1500:]}"
    done = go(mpiexec, program, "apart", ranks=8)
    if done.stdout != "late:\nends\n" or "ank " in done.stderr:
        yield f"apart: {done.stdout}{done.stderr[-1500:]}"
    done = go(mpiexec, program, "real", {"PK_MPI_STRAGGLERS": "2"})
    if "late: 1" not in done.stdout:  # the stage may be hidden by time without a processor
        yield f"real: {done.stdout}{done.stderr[-1500:]}"


def off(mpiexec, program):
    """A value that differs, or is none: said, and nothing is compared. Who aborts ends all."""
    for value, line in ("$(( 10 * (${PMIX_RANK:-$PMI_RANK} % 2) ))", "PK_MPI_STRAGGLERS differs"), ("yes", "PK_MPI_STRAGGLERS=yes is no"):
        done = go(mpiexec, program, "silent", script=f'PK_MPI_STRAGGLERS="{value}" exec "$0" "$1"')
        if done.stdout != "ends\n" or done.stderr.count(line) != STRAGGLERS_RANKS:
            yield f"{value}: {done.stdout}{done.stderr[-1500:]}"
    without = '[ "${PMIX_RANK:-$PMI_RANK}" = 1 ] && unset PK_MPI_STRAGGLERS; exec "$0" "$1"'
    done = go(mpiexec, program, "silent", {"PK_MPI_PATIENCE": "1"}, script=without)
    if done.stdout != "ends\n" or done.stderr.count("not all processes of MPI_COMM_WORLD have it") != STRAGGLERS_RANKS - 1:
        yield f"without: {done.stdout}{done.stderr[-1500:]}"
    done = go(mpiexec, program, "abort", fails=True)
    if "ends" in done.stdout:
        yield f"abort: {done.stdout}"


def stragglers(mpiexec, program):
    launch.need_ranks(mpiexec)
    program = os.path.abspath(program)
    complaints = [*named(mpiexec, program), *others(mpiexec, program), *off(mpiexec, program)]
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit({"run": run, "attached": attached, "pcontrol": pcontrol, "turns": turns, "other": other, "left": left, "asked": asked, "groups": groups, "gather": gather, "stencil": stencil, "exchange": exchange, "requests": requests, "clocks": clocks, "stragglers": stragglers, "timed": timed}[sys.argv[1]](*sys.argv[2:]))
