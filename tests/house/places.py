"""places.py ROOT - nothing in the tree names somebody's machine: home folders, package registries."""

import re
import sys

import tree

# Written so that they do not match themselves.
PLACES = [
    (re.compile(r"(?<![\w.])/(?:hom[e]|User[s])/\w+"), "a home folder"),
    (re.compile(r"(?<![\w.])/(?:roo[t]|wor[k])/"), "a folder of one machine"),
    (re.compile(r"(?:npmj[s]|pyp[i]|pythonhoste[d]|crate[s]|rubygem[s])\.(?:org|io|com)"), "a registry"),
    (re.compile(r"(?:registr[y]|artifactor[y]|nexu[s]|mirro[r]|prox[y])[\w-]*\.[\w-]+\.\w+"), "a registry"),
    (re.compile(r"\b(?:de[b]|snapsho[t]|securit[y])\.debian\.org"), "a registry"),
]


def check(root):
    complaints = []
    for path in tree.files(root):
        for number, line in enumerate(tree.read(root, path).split("\n"), 1):
            for pattern, what in PLACES:
                match = pattern.search(line)
                if match:
                    complaints.append(f"{path}:{number}: {what}: {match.group()}")
    return complaints


if __name__ == "__main__":
    tree.tell(check(sys.argv[1]))
