"""symbols_alloc.py NM READELF LIBPK_ALLOC_SO - libpk_alloc exports malloc's family, C++'s new and delete, and the one
table that libpk looks for, all of it and nothing else, without versions; and needs the C library alone.
"""

import os
import sys

import symbols
import tree

MALLOC = set("""malloc free calloc realloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc
malloc_usable_size sdallocx free_sized free_aligned_sized""".split())
# new, and delete without and with a size; of one and of many; aligned; where the last is no delete's with a size, nothrow
NEW = {f"_Zn{of}m{by}{quiet}" for of in "wa" for by in ("", "St11align_val_t") for quiet in ("", "RKSt9nothrow_t")}
DELETE = {f"_Zd{of}Pv{how}" for of in "la" for how in ("", "m", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t",
                                                        "St11align_val_tRKSt9nothrow_t")}
ALL = MALLOC | NEW | DELETE | {"pk_alloc_interface_1"}


def check(nm, readelf, shared):
    here = os.path.basename(shared)
    exported = {name for _, name, _ in symbols.names(nm, shared, "-D", "--defined-only")}
    complaints = [f"{here}: {name} is exported" for name in sorted(exported - ALL)]
    complaints += [f"{here}: {name} is not exported: it would be another's" for name in sorted(ALL - exported)]
    return complaints + list(symbols.check_shape(readelf, shared))


if __name__ == "__main__":
    tree.tell(check(*sys.argv[1:]))
