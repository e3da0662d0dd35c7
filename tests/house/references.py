"""references.py ROOT - what comments and pages say of the project's files is of files that are there.

A file is named by its path, or by as much of the path's end as is needed. Looked at are names with a folder of the
project's in front, and, in comments of lib/ and tools/, bare names of .c, which no system has. NAME stands for any name.
Below its first line a file does not name itself: what is meant is above or below.
"""

import os
import re
import sys

import tree

FOLDERS = ("lib", "tools", "docs", "include", "examples", "bench")
NAME = re.compile(r"(?<![\w<./*-])(?:[\w]+/)*[\w]+\.[ch]\b(?!pp)")


def said(path, text):
    """What of a file is words: all of a page, of C the comments."""
    if not path.endswith((".c", ".h")):
        return text
    return "".join(part if part.startswith("/*") else tree.blank(re.match(r"(?s).*", part))
                   for part in re.split(r'(/\*.*?\*/)', text, flags=re.DOTALL))


def check(root):
    paths = [path.split(os.sep) for path in tree.files(root)]
    ends = {"/".join(path[at:]) for path in paths for at in range(len(path))}
    folders = {folder for path in paths if path[0] in ("lib", "tools") for folder in path[:-1]} | {"tests", *FOLDERS}
    complaints = []
    for path in tree.files(root, FOLDERS, (".c", ".h", ".md", ".build")):
        ours = path.startswith(("lib" + os.sep, "tools" + os.sep)) and path.endswith((".c", ".h"))
        for number, line in enumerate(said(path, tree.read(root, path)).splitlines(), 1):
            for name in NAME.findall(line):
                folder = name.split("/")[-2] if "/" in name else None
                wanted = folder in folders if folder else ours and name.endswith(".c")
                if wanted and name not in ends and "NAME" not in name:
                    complaints.append(f"{path}:{number}: there is no {name}")
                elif ours and number > 1 and "/".join(path.split(os.sep)).endswith("/" + name):
                    complaints.append(f"{path}:{number}: {name} is this very file")
    return complaints


if __name__ == "__main__":
    tree.tell(check(sys.argv[1]))
