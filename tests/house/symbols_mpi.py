"""symbols_mpi.py NM READELF LIBPK_MPI_A [LIBPK_MPI_SO] - libpk_mpi defines functions of MPI, calls each of them
on under its name with a P, and calls no other than those with a P: a second one that profiles must not hear of
what perfkit asks. It prints and ends nothing, as libpk.
"""

import os
import re
import sys

import symbols
import tree

OURS = re.compile(r"^(MPI_[A-Z]\w*|mpi_\w+_|pki_\w+)$")
MPIS = re.compile(r"^MPI_[A-Z]")
NEEDED = re.compile(symbols.NEEDED.pattern + r"|^libpk\.so\.|^libmpi")


def check_archive(nm, archive):
    yield from symbols.check_archive(nm, archive, OURS)
    defined = {name for _, name, _ in symbols.names(nm, archive, "-g", "--defined-only") if MPIS.match(name)}
    needed = {name for _, name, _ in symbols.names(nm, archive, "-u")}
    for name in sorted(defined - {name[1:] for name in needed}):
        yield f"{name} never calls P{name}"
    for name in sorted(name for name in needed if MPIS.match(name)):
        yield f"calls {name}, not P{name}"


def check_exports(nm, shared):
    for _, name, _ in symbols.names(nm, shared, "-D", "--defined-only"):
        if name.startswith("pki_"):
            yield f"{os.path.basename(shared)}: {name} is exported"


def check(nm, readelf, archive, shared=None):
    complaints = list(check_archive(nm, archive))
    if shared:
        complaints += check_exports(nm, shared)
        complaints += symbols.check_shape(readelf, shared, NEEDED)
    return complaints


if __name__ == "__main__":
    tree.tell(check(*sys.argv[1:]))
