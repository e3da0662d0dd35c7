"""symbols_bench.py NM READELF SOURCE LIBPKBENCH_A LIBPK_A [LIBPKBENCH_SO LIBPK_SO] - libpkbench is a library of its own:
libpk, which production links with, has no symbol of benchmarks; libpkbench exports what <pk/bench.h> declares and what
`pk bench-ab` calls (lib/bench/drive.h), and has no second pk_error_message. Otherwise it keeps libpk's rules.
"""

import os
import re
import sys

import symbols
import tree

OURS = re.compile(r"^(pk_bench_?|pki_)\w*$")
BENCH = re.compile(r"^pki?_bench")
ITS_OWN = {"pki_fail", "pk_fail_", "pk_error_message"}
NEEDED = re.compile(symbols.NEEDED.pattern + r"|^libpk\.so\.")


def check_without(nm, *libraries):
    """A program that links with these carries no benchmarks."""
    for library in libraries:
        for inside, name, kind in symbols.names(nm, library):
            if BENCH.match(name) and kind != "A":
                yield f"{os.path.basename(library)}: {inside}: {name} is of benchmarks"


def check_message(nm, shared):
    for _, name, kind in symbols.names(nm, shared, "--defined-only"):
        if name.split("@")[0] in ITS_OWN:
            yield f"{os.path.basename(shared)}: {name} is libpk's"


def public(source):
    headers = os.path.join(source, "include")
    return symbols.declared(headers, bench=True) | set(symbols.declared_in(source, os.path.join("lib", "bench", "drive.h")))


def check(nm, readelf, source, archive, libpk, *shared):
    complaints = [*symbols.check_archive(nm, archive, OURS), *check_without(nm, libpk, *shared[1:])]
    if shared:
        complaints += symbols.check_exports(nm, shared[0], public(source))
        complaints += symbols.check_shape(readelf, shared[0], NEEDED)
        complaints += check_message(nm, shared[0])
    return complaints


if __name__ == "__main__":
    tree.tell(check(*sys.argv[1:]))
