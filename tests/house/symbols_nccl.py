"""symbols_nccl.py NM READELF LIBPK_NCCL_A [LIBPK_NCCL_SO] - libpk_nccl defines functions of NCCL and calls each of
them on under its name with a p; it calls none without, and those of newer versions may be missing. The shared one
needs no NCCL to be loaded. It prints and ends nothing, as libpk.
"""

import os
import re
import sys

import symbols
import tree

OURS = re.compile(r"^(nccl[A-Z]\w*|pki_wrap_\w+)$")
NCCLS = re.compile(r"^nccl[A-Z]")
LATER = {"pncclAlltoAll", "pncclGather", "pncclScatter", "pncclGroupSimulateEnd", "pncclCommInitRankScalable",
         "pncclCommShrink", "pncclCommRevoke", "pncclCommGrow", "pncclPutSignal", "pncclSignal"}
NEEDED = re.compile(symbols.NEEDED.pattern + r"|^libpk\.so\.")


def check_archive(nm, archive):
    yield from symbols.check_archive(nm, archive, OURS)
    defined = {name for _, name, _ in symbols.names(nm, archive, "-g", "--defined-only") if NCCLS.match(name)}
    needed = {name: kind for _, name, kind in symbols.names(nm, archive, "-u")}
    for name in sorted(defined - {name[1:] for name in needed}):
        yield f"{name} never calls p{name}"
    for name in sorted(name for name in needed if NCCLS.match(name)):
        yield f"calls {name}, not p{name}"
    for name in sorted(name for name, kind in needed.items() if name.startswith("pnccl")):
        if (name in LATER) != (needed[name] in "wv"):
            yield f"{name}: {'has to be' if name in LATER else 'must not be'} weak"


def check_exports(nm, shared):
    here = os.path.basename(shared)
    for _, name, _ in symbols.names(nm, shared, "-D", "--defined-only"):
        if not NCCLS.match(name.split("@")[0]):
            yield f"{here}: {name} is exported"
    for _, name, _ in symbols.names(nm, shared, "-D", "-u"):
        if name.startswith(("nccl", "pnccl")):
            yield f"{here}: cannot be loaded without {name}"


def check(nm, readelf, archive, shared=None):
    complaints = list(check_archive(nm, archive))
    if shared:
        complaints += check_exports(nm, shared)
        complaints += symbols.check_shape(readelf, shared, NEEDED)
    return complaints


if __name__ == "__main__":
    tree.tell(check(*sys.argv[1:]))
