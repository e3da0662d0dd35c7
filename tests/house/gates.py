"""gates.py ROOT - while perfkit is off, what records costs a load and a branch: in the public headers each call of
a function ..._on_ stands behind a gate, and there is one definition of the gates."""

import re
import sys

import tree

GATES = {"pk_gate_": "include/pk/status.h", "pk_gpu_gate_": "include/pk/gpu.h"}
ASKED = re.compile(r"^\s*if \((?:PK_ON_|PK_GPU_ON_|PK_STARTED_\(\w+\))\)$")
CALLS = re.compile(r"^\s+(?:return )?(pk_\w+_on_)\(")
LOADS = re.compile(r"&(pk_\w*gate_)\b")


def check(root):
    complaints = []
    for path in tree.files(root, ("include",), (".h", ".hpp")):
        before = ""
        for number, line in enumerate(tree.read(root, path).split("\n"), 1):
            call, load = CALLS.match(line), LOADS.search(line)
            if call and not ASKED.match(before):
                complaints.append(f"{path}:{number}: {call.group(1)} without a gate (PK_ON_)")
            if load and GATES.get(load.group(1)) != path:
                complaints.append(f"{path}:{number}: a gate of its own: there is PK_ON_")
            before = line
    return complaints


if __name__ == "__main__":
    tree.tell(check(sys.argv[1]))
