"""cycles.py NM ARCHIVE... - no two rooms of a library need each other, directly or through others.

A room is what layers.py takes for one: a folder of lib, with those in it. It needs another if one of its objects refers
to a symbol that the other's define. What lies in one cycle can only be read, tested and moved together; so a cycle is
one subject in several rooms, or a mistake. KNOWN has those of the first sort, with the reason.
"""

import os
import re
import sys

import layers
import symbols
import tree

# lib/session has the tables of backends and of services, which is how the session knows of them at all.
TABLE = re.compile(r"^pki_(backend|service)_[a-z_]+$")
# Symbols for callers that cannot inline (core/ffi*.c): whoever links one of them wants its room.
FFI = re.compile(r"^core_ffi")
# (rooms, why they are one thing)
KNOWN = [({"comm/figures", "measure"}, "what a run did on communicators is part of its figures, and made by its means"),
         ({"comm/live", "session"}, "how far communicators have come is looked at in the session's rounds"),
         ({"comm/model", "core"}, "an operation is a record, and ends as a thread's records end")]
LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "lib")


def rooms(lib, archive):
    """{object: room} for the sources of an archive, which meson names by their path below the archive's folder."""
    base = lib if os.path.basename(archive) == "libpk.a" else os.path.join(lib, "bench")
    found = {}
    for folder, _, names in os.walk(base):
        for name in names:
            if name.endswith(".c"):
                path = os.path.join(folder, name)
                inside = os.path.relpath(path, base).removesuffix(".c").replace(os.sep, "_")
                found[inside] = layers.place(os.path.join("lib", os.path.relpath(path, lib)))[1]
    return found


def between(graph, room):
    """The same of rooms; an object that is in none is one."""
    out = {}
    for inside, needed in graph.items():
        here = out.setdefault(room.get(inside, inside), {})
        for other, name in () if FFI.match(inside) else needed.items():
            if room.get(other, other) != room.get(inside, inside):
                here.setdefault(room.get(other, other), name)
    return out


def needs(nm, archive):
    """{object: {object that it needs: a symbol}}"""
    home, wanted = {}, {}
    for inside, name, kind in symbols.names(nm, archive, "-g"):
        inside = re.sub(r"^.*\[|\]?:?$|(\.c)?\.o", "", inside)
        wanted.setdefault(inside, set())
        if kind in "Uwv":
            wanted[inside].add(name)
        else:
            home.setdefault(name, inside)
    return {inside: {home[name]: name for name in sorted(names)
                     if home.get(name, inside) != inside and not TABLE.match(name)}
            for inside, names in wanted.items()}


def reached(graph, start):
    """All that start needs, directly or through others."""
    seen, left = set(), [start]
    while left:
        for other in graph.get(left.pop(), ()):
            if other not in seen:
                seen.add(other)
                left.append(other)
    return seen


def cycles(graph):
    """Sets of objects that all need each other, sorted."""
    reach = {inside: reached(graph, inside) for inside in graph}
    found = {frozenset(other for other in reach[inside] if inside in reach[other])
             for inside in graph if inside in reach[inside]}
    return sorted(map(sorted, found))


def check(nm, archive, known=()):
    graph = between(needs(nm, archive), rooms(LIB, archive))
    here = os.path.basename(archive)
    found = cycles(graph)
    for files in found:
        if set(files) in [set(names) for names, _ in known]:
            continue
        edges = [f"{a} -> {b} ({graph[a][b]})" for a in files for b in files if b in graph[a]]
        yield f"{here}: a cycle of {len(files)} rooms: " + ", ".join(edges)
    for names, _ in known:
        if set(names) not in map(set, found) and set(names) <= set(graph):
            yield f"{here}: no cycle any more: {', '.join(names)}"


if __name__ == "__main__":
    tree.tell([line for archive in sys.argv[2:] for line in check(sys.argv[1], archive, KNOWN)])
