"""layers.py ROOT - a file includes public headers, its own layer and lower layers; nothing upward.

The layers are docs/design.md's. lib/bench stands on top of all of them as a library of its own, which takes what it
needs of libpk and of which libpk knows nothing, and lib/job on that. Backends never include each other; tools see no
further than lib/out, and lib/bench and lib/job; examples and public headers know public headers only.
"""

import glob
import os
import re
import sys

import tree

# A subject that goes through several layers has a folder for each: the longest name that fits counts.
LAYER = {"base": 0, "alloc": 0, "stats": 1, "core": 2, "measure": 3, "out": 3, "history": 3, "capture": 3, "session": 4, "backend": 5, "bench": 6, "job": 7,
         "comm/model": 2, "comm/figures": 3, "comm/live": 4, "comm/plugin": 5}
# Folders of this layer are one backend each, whatever folders they lie in.
BACKENDS = LAYER["backend"]
# Libraries of their own, which know libpk as any program does.
BESIDE = ("comm/mpi", "comm/nccl")
# What of lib/job is linked into one of them, by its header.
LINKED = {"comm/mpi": "lib/job/window.h"}
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
    """cupti for lib/backend/cupti/records.c, plugin for lib/comm/plugin/pool.c, none for lib/backend/none.h: a
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


def check(root):
    complaints = []
    folders = ("include", "lib", "tools", "examples")
    for path in tree.files(root, folders, (".c", ".h", ".cpp", ".hpp")):
        text = tree.read(root, path)
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


if __name__ == "__main__":
    tree.tell(check(sys.argv[1]))
