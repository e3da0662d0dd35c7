"""asked.py MPIEXEC PROGRAM LIBRARY... - PK_MPI_START=1 with a trace that cannot be written: the job runs as without,
and its rank 0 alone says why nothing is recorded."""

import os
import sys
import tempfile

import launch
import run


def main(mpiexec, program, *libraries):
    settings = dict(run.SETTINGS, PK_TRACE_PATH="missing/run-%r.json",
                    LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    del settings["PK_LOG"]
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, run.RANKS, [os.path.abspath(program)], folder, settings)
    said = [line for line in done.stderr.splitlines() if "perfkit" in line]
    wanted = ("PK_MPI_START=1, but nothing is recorded", "missing/run-0.json", ": No such file or directory")
    if len(said) != 1 or not all(words in said[0] for words in wanted):
        print(f"it says {said}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
