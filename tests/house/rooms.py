"""rooms.py layers ROOT
rooms.py doors ROOT
rooms.py cycles NM ARCHIVE... - the rooms of lib, each in its layer, as docs/design.md has them.

A room is a folder of lib, and for layers and cycles those in it, too. Whom it may know is told by what its files include
(layers), whom it needs by the symbols of its objects (cycles), and what of it others can call by its functions (doors).
"""

import glob
import os
import re
import sys

import source
import symbols

# ---- layers: nothing is included upward ----

# A subject that goes through several layers has a folder for each: the longest name that fits counts.
LAYER = {"base": 0, "alloc": 0, "stats": 1, "core": 2, "measure": 3, "out": 3, "history": 3, "capture": 3, "session": 4, "backend": 5, "bench": 6, "job": 7,
         "comm/model": 2, "comm/figures": 3, "comm/live": 4, "comm/plugin": 5}
# Folders of this layer are one backend each, whatever folders they lie in.
BACKENDS = LAYER["backend"]
# Libraries of their own, which know libpk as any program does.
BESIDE = ("comm/mpi", "comm/nccl", "attach")
# What of lib/job is linked into one of them, by its header.
LINKED = {"comm/mpi": "lib/job/window.h"}
# What `pk run` tells libpk_attach.
TOLD = "lib/attach/variables.h"
TOOLS_SEE = ("base", "stats", "core", "measure", "out", "history", "bench", "job", "comm/model", "comm/figures")
# lib/backend/none.h, which every NAME/none.c consists of, and the shim's, which any may need.
COMMON = ("none", "shim")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


def find(root, path, quote, name):
    """The file of the tree that an include means, or None for a system's."""
    beside = [os.path.join(os.path.dirname(path), name)] if quote == '"' else []
    for candidate in beside + [os.path.join(folder, name) for folder in ("lib", "include", "tools")]:
        if os.path.isfile(os.path.join(root, candidate)):
            return os.path.normpath(candidate)
    # A twin that the build chooses by its include path: lib/base/arch/x86_64/...
    twins = glob.glob(os.path.join(root, "lib", "*", "arch", "*", name))
    return os.path.relpath(twins[0], root) if twins else None


def place(path):
    """('lib', 'core') for lib/core/ring.c, ('lib', 'comm/model') for lib/comm/model/a.c, ('tools', '') for
    tools/main.c."""
    parts = path.split(os.sep)
    two = "/".join(parts[1:3])
    if parts[0] != "lib" or len(parts) < 3:
        return parts[0], ""
    return parts[0], two if len(parts) > 3 and two in (*LAYER, *BESIDE) else parts[1]


def library(path):
    """cupti for lib/backend/cupti/records.c, plugin for lib/comm/plugin/callbacks.c, none for lib/backend/none.h: a
    backend is a folder."""
    return path.split(os.sep)[2].removesuffix(".h")


def objection(path, target):
    """Why path may not include target, or None."""
    here, layer = place(path)
    there, its_layer = place(target)
    if there == "include":
        return None
    if here == "include":
        return "a public header includes public headers only"
    if here == "examples" and there != "examples":
        return "an example knows what a user knows: <pk/...>"
    if here == "lib" and target == LINKED.get(layer):
        return None
    if here == "tools" and target == TOLD:
        return None
    if there == "lib" and its_layer in BESIDE:
        return None if layer == its_layer else f"lib/{its_layer} is a library of its own"
    if here == "lib" and layer in BESIDE:
        return f"lib/{layer} knows what a user knows: <pk/...>"
    if here == "tools" and there == "lib" and its_layer not in TOOLS_SEE:
        return "tools see no further than lib/out, lib/bench and lib/job"
    if here != "lib":
        return None
    if there != "lib":
        return "the library includes nothing outside itself"
    if LAYER[its_layer] > LAYER[layer]:
        return f"upward: {layer} is layer {LAYER[layer]}, {its_layer} is layer {LAYER[its_layer]}"
    if LAYER[layer] == LAYER[its_layer] == BACKENDS and library(target) not in (library(path), *COMMON):
        return "backends never include each other"
    return None


def layers(root):
    """A file includes public headers, its own layer and lower layers; nothing upward. lib/bench stands on top of all of
    them as a library of its own, which takes what it needs of libpk and of which libpk knows nothing, and lib/job on
    that. Backends never include each other; tools see no further than lib/out, and lib/bench and lib/job; examples and
    public headers know public headers only."""
    complaints = []
    folders = ("include", "lib", "tools", "examples")
    for path in source.files(root, folders, (".c", ".h", ".cpp", ".hpp")):
        text = source.read(root, path)
        if place(path)[0] == "lib" and place(path)[1] not in (*LAYER, *BESIDE):
            complaints.append(f"{path}: lies in no layer")
            continue
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            target = find(root, path, *match.groups())
            why = objection(path, target) if target else None
            if target is None and match.group(1) == '"':
                why = "found neither beside it nor in lib/"
            if why:
                complaints.append(f'{path}:{line}: includes {match.group(2)}: {why}')
    return complaints


# ---- cycles: no two rooms of a library need each other, directly or through others ----

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
                found[inside] = place(os.path.join("lib", os.path.relpath(path, lib)))[1]
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


def check_cycles(nm, archive, known=()):
    """A room needs another if one of its objects refers to a symbol that the other's define. What lies in one cycle can
    only be read, tested and moved together; so a cycle is one subject in several rooms, or a mistake."""
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


# ---- doors: a function of a room is static, or there is more than one file that wants it ----

# Of a hundred external functions of lib so many may have one single user that is a file of their own room: corridors, which
# would be static if the two files were one. It is what there was when this was written, and is only ever lowered.
CORRIDORS = 15.0
DEFINED = re.compile(r"^(?P<type>[A-Za-z][^;{}=()]*?(?:\([^;{}=]*?\)\)[^;{}=()]*?)?)\b(?P<name>\w+)\([^;{}]*\)\s*\{$", re.MULTILINE)
INSIDE = re.compile(r"^\{$.*?^\}", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"\bpki_\w+")
PASTED = re.compile(r"\b(pki_\w+)##")


def external(text):
    """Names of functions that a file of C defines for others."""
    return {match["name"] for match in DEFINED.finditer(source.bare(text))
            if match["name"].startswith("pki_") and not re.search(r"\bstatic\b", match["type"])}


def words_of(path, text):
    """What a file uses, its own functions among it: of a header what macros and inline functions do, not what it declares."""
    without = source.LITERALS.sub(source.blank, text)
    if path.endswith(".h"):
        without = "\n".join(INSIDE.findall(without) + source.DIRECTIVES.findall(without))
    return set(WORD.findall(without))


def doors(root):
    """(functions: name -> the files that define it, users: name -> the files beside these that use it, beginnings of names
    that macros complete). Twins, of which a build has one, define the same names. What a macro defines is not counted."""
    made, users, pasted = {}, {}, set()
    for path in source.files(root, ("lib", "tools", "tests", "bench"), (".c", ".h", ".cpp", ".hpp")):
        text = source.read(root, path)
        pasted |= set(PASTED.findall(text))
        if path.startswith("lib" + os.sep) and path.endswith(".c"):
            for name in external(text):
                made.setdefault(name, set()).add(path)
        for name in words_of(path, text):
            users.setdefault(name, set()).add(path)
    return made, {name: users.get(name, set()) - files for name, files in made.items()}, tuple(pasted)


def shares(made, users):
    """Names that one file of lib or tools uses, and those of them where it is of the same room. A header stands for all
    that include it."""
    one, corridors = [], []
    for name, files in made.items():
        by = {path for path in users[name] if path.startswith(("lib", "tools"))}
        if len(by) == 1 and not any(path.endswith(".h") for path in by):
            one.append(name)
            if os.path.dirname(*by) in map(os.path.dirname, files):
                corridors.append(name)
    return one, corridors


def tell_doors(made, users):
    one, corridors = shares(made, users)
    print(f"of {len(made)} external functions of lib, {len(corridors)} ({100 * len(corridors) / len(made):.1f} %) have one"
          f" file of their own room as only user, {len(one)} ({100 * len(one) / len(made):.1f} %) one file of any")


def check_doors(made, users, pasted, most=CORRIDORS):
    inside = 100 * len(shares(made, users)[1]) / max(len(made), 1)
    for name in sorted(made):
        if not users[name] and not name.startswith(pasted):
            yield f"{min(made[name])}: {name} should be static: no other file uses it"
    if inside > most:
        yield (f"{inside:.1f} % of lib's external functions lead from a file to one other of its room, more than {most} %:"
               " make them static, in one file of the two")


if __name__ == "__main__":
    rule, *words = sys.argv[1:]
    if rule == "layers":
        source.tell(layers(*words))
    if rule == "doors":
        found = doors(*words)
        tell_doors(*found[:2])
        source.tell(list(check_doors(*found)))
    source.tell([line for archive in words[1:] for line in check_cycles(words[0], archive, KNOWN)])
