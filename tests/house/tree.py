"""What the house checks share: walking the tree, reading C, telling what is wrong."""

import os
import re
import sys

SKIP = re.compile(r"^(\.(?!ci$).*|build.*|subprojects|node_modules|shared|__pycache__)$")


def files(root, folders=("",), endings=("",)):
    """Paths relative to root of the files that belong to the project."""
    for folder in folders:
        for here, below, names in os.walk(os.path.join(root, folder)):
            below[:] = sorted(name for name in below if not SKIP.match(name))
            for name in sorted(names):
                if name == ".git":  # a file in a second work tree: it says where the first one is
                    continue
                if name.endswith(tuple(endings)):
                    yield os.path.relpath(os.path.join(here, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def blank(match):
    """The same number of lines, nothing in them."""
    return re.sub(r"[^\n]", " ", match.group())


LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
DIRECTIVES = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)


def bare(text):
    """C without comments, literals and preprocessor lines; line numbers stay."""
    return DIRECTIVES.sub(blank, LITERALS.sub(blank, text))


def tell(complaints):
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)
