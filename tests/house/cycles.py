"""cycles.py NM ARCHIVE... - no two files of a library need each other, directly or through others.

A file needs another if its object refers to a symbol that the other's defines. What lies in one cycle can only be
read, tested and moved together; so a cycle is one subject in several files, or a mistake. KNOWN has those of the
first sort, with the reason.
"""

import os
import re
import sys

import symbols
import tree

# lib/session has the tables of backends and of services, which is how the session knows of them at all.
TABLE = re.compile(r"^pki_(backend|service)_[a-z_]+$")
# (files, why they are one thing)
KNOWN = []


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
    graph = needs(nm, archive)
    here = os.path.basename(archive)
    found = cycles(graph)
    for files in found:
        if set(files) in [set(names) for names, _ in known]:
            continue
        edges = [f"{a} -> {b} ({graph[a][b]})" for a in files for b in files if b in graph[a]]
        yield f"{here}: a cycle of {len(files)} files: " + ", ".join(edges)
    for names, _ in known:
        if set(names) not in map(set, found) and set(names) <= set(graph):
            yield f"{here}: no cycle any more: {', '.join(names)}"


if __name__ == "__main__":
    tree.tell([line for archive in sys.argv[2:] for line in check(sys.argv[1], archive, KNOWN)])
