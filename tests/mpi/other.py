"""other.py MPIEXEC PROGRAM LIBRARY... - the program alone, then with the library for another MPI preloaded: it runs
to the same results bit by bit, nothing is recorded, and one line on stderr says why."""

import os
import sys
import tempfile

import launch
import run


def check(mpiexec, program, settings, folder):
    """Complaints of one way to have the wrong library."""
    alone = launch.finish(mpiexec, run.RANKS, [program], folder)
    wanted = run.results(folder)
    done = launch.finish(mpiexec, run.RANKS, [program], folder, settings)
    said = [line for line in done.stderr.splitlines() if "perfkit" in line]
    if done.stdout != alone.stdout:
        yield "what it prints is not the same"
    for name, text in run.results(folder).items():
        if text != wanted[name]:
            yield f"{name} is not the same"
    if len(said) != 1 or "this libpk_mpi is for" not in said[0]:
        yield f"it says {said}"
    for name in os.listdir(folder):
        if name.startswith(("run-", "report-")):
            yield f"there is {name}"


def main(mpiexec, program, *libraries):
    settings = dict(run.SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    complaints = []
    for start in ("1", "0"):
        with tempfile.TemporaryDirectory() as folder:
            complaints += check(mpiexec, os.path.abspath(program), dict(settings, PK_MPI_START=start), folder)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
