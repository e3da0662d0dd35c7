"""left.py MPIEXEC PROGRAM LIBRARY... - requests that are never waited for are in the report as not complete;
a rank that calls MPI_Abort leaves a trace and a report behind."""

import os
import sys
import tempfile

import launch
import run
import seen


def check(folder, rank):
    trace, report = seen.read(folder, f"run-{rank}.json"), seen.read(folder, f"report-{rank}.json")
    found = [seen.operation(event)[1] for event in seen.operations_of(trace)]
    if found != ["barrier"]:
        yield f"rank {rank}: operations that have ended: {found}"
    comms = {comm["name"]: comm for comm in report["comm"]["communicators"]}
    messages = comms["MPI_COMM_WORLD messages"]
    if (messages["enqueued"], messages["completed"], messages["calls"]) != (2, 0, 0):
        yield f"rank {rank}: {messages}"
    if comms["MPI_COMM_WORLD"]["completed"] != 1:
        yield f"rank {rank}: {comms['MPI_COMM_WORLD']}"


def main(mpiexec, program, *libraries):
    settings = dict(run.SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 4, [os.path.abspath(program)], folder, settings)
        for rank in range(4):
            complaints += check(folder, rank)
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, 4, [os.path.abspath(program), "abort"], folder, settings, fails=True)
        # The others may be killed before they come to it.
        ranks = [rank for rank in range(4) if os.path.exists(os.path.join(folder, f"report-{rank}.json"))]
        complaints += [] if ranks else ["no rank has left a report"]
        for rank in ranks[:1]:
            complaints += check(folder, rank)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
