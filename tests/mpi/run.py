"""run.py MPIEXEC PROGRAM LIBRARY... - the program alone, then with the libraries preloaded: the same results
bit by bit, and in each rank's trace and report every call and operation that its ledger has, once. Without
libraries the program is linked with perfkit, and starts it."""

import os
import sys
import tempfile

import launch
import seen

RANKS = 4
SETTINGS = {"PK_MPI_START": "1", "PK_TRACE_PATH": "run-%r.json", "PK_REPORT_PATH": "report-%r.json",
            "PK_BACKENDS": "none", "PK_LOG": "stderr"}


def results(folder):
    names = [f"result-{rank}" for rank in range(RANKS)]
    return {name: open(os.path.join(folder, name), encoding="utf-8").read() for name in names}


def check_rank(folder, rank):
    """Complaints, and what the rank did."""
    calls, wanted = seen.expected(folder, rank)
    trace, report = seen.read(folder, f"run-{rank}.json"), seen.read(folder, f"report-{rank}.json")
    operations = seen.operations_of(trace)
    found = {key: 0 for key in wanted}
    for event in operations:
        key = seen.operation(event)
        found[key] = found.get(key, 0) + 1
    complaints = [*seen.differences("calls", calls, seen.calls_of(trace)),
                  *seen.differences("operations", wanted, seen.collections.Counter(found)),
                  *seen.check_report(report, operations)]
    for event in operations:
        if event["args"].get("Rank", -1) < 0 or event["args"]["Group size"] < 1:
            complaints.append(f"no rank or size: {event}")
        if event["ph"] == "b" and event["args"]["exposed_ns"] < 0:
            complaints.append(f"waited for less than nothing: {event}")
    if report["run"]["rank"] != rank or report["run"]["world_size"] != RANKS:
        complaints.append(f"report is of rank {report['run']}")
    return [f"rank {rank}: {text}" for text in complaints], operations


def check(folder):
    complaints, ranks = [], []
    for rank in range(RANKS):
        said, operations = check_rank(folder, rank)
        complaints += said
        ranks.append(operations)
    numbers = [seen.sequences(operations, "MPI_COMM_WORLD") for operations in ranks]
    if not numbers[0] or any(other != numbers[0] for other in numbers):
        complaints.append(f"the ranks do not agree on what they did: {[n[:20] for n in numbers]}")
    if [n for n, _ in numbers[0]] != list(range(1, len(numbers[0]) + 1)):
        complaints.append("sequence numbers have gaps")
    return complaints


def main(mpiexec, program, *libraries):
    program, libraries = os.path.abspath(program), [os.path.abspath(library) for library in libraries]
    with tempfile.TemporaryDirectory() as folder:
        said = launch.run(mpiexec, RANKS, [program], folder)
        alone = results(folder)
        settings = dict(SETTINGS, LD_PRELOAD=":".join(libraries)) if libraries else {}
        if libraries and launch.run(mpiexec, RANKS, [program], folder, settings) != said:
            sys.exit("what it prints is not the same")
        wrapped = results(folder)
        complaints = [f"{name} is not the same" for name in alone if alone[name] != wrapped[name]]
        complaints += check(folder)
    for complaint in complaints[:60]:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
