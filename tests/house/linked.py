"""linked.py NM PROGRAM LIBPK_A - what a program carries of libpk.a that makes regions and steps, and nothing else.

What an option or the environment can turn on is in every program. What takes a call is not: of the functions that calls
lead to (pk_..._on_), the program has those of regions and steps, and none of the libraries beside libpk. And no object of
the archive has a table in the program's file that begins almost empty: what is filled in later belongs among the zeroes.
"""

import os
import re
import sys

import symbols
import tree

CALLED = re.compile(r"^pk_\w+_on_$")
# Regions may have work and marks, as NVTX's users have; steps have kinds, and counters of memory; a job's file is told of
# phases, too. What a graph of CUDA's replays is known where kernels are.
PLAIN = re.compile(r"^pk_(region|step|training|phase|checkpoint|counter)_\w*on_$|^pk_gpu_graph_launching_on_$")
BESIDE = re.compile(r"^(pk_bench|pki_bench|pk_mpi|pk_alloc_interface|pki_life_add|pki_history_salvage)")
FILLED = 65536  # bytes


# Without CUDA one object has the calls of all of it, which then do nothing.
CUDA = re.compile(r"^pk_gpu_\w*on_$")


def check_program(nm, program, cuda):
    here = os.path.basename(program)
    found = {name for _, name, _ in symbols.names(nm, program, "--defined-only")}
    if "pk_region_begin_on_" not in found:
        yield f"{here}: it has no regions"
    for name in sorted(found):
        if CALLED.match(name) and not PLAIN.match(name) and (cuda or not CUDA.match(name)):
            yield f"{here}: {name} is in a program that does not call it"
        elif BESIDE.match(name):
            yield f"{here}: {name} is in a program that has no use for it"


def check_filled(nm, archive):
    for line in symbols.run(nm, "--format=posix", "--defined-only", archive).splitlines():
        words = line.split()
        if len(words) == 4 and words[1] in "dD" and int(words[3], 16) > FILLED:
            yield f"{os.path.basename(archive)}: {words[0]} is {int(words[3], 16)} bytes of each program's file"


if __name__ == "__main__":
    tree.tell([*check_program(*sys.argv[1:3], sys.argv[4] == "cuda"), *check_filled(sys.argv[1], sys.argv[3])])
