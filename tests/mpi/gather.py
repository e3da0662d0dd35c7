"""gather.py MPIEXEC PROGRAM - gather.c on numbers of ranks that end amid a group and do not."""

import os
import sys
import tempfile

import launch


def main(mpiexec, program):
    launch.need_ranks(mpiexec)
    with tempfile.TemporaryDirectory() as folder:
        for ranks in (2, 7):
            launch.run(mpiexec, ranks, [os.path.abspath(program)], folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
