"""format.py ROOT - clang-format would change no C, C++ or CUDA file. Of its version 14, since others differ."""

import os
import re
import shutil
import subprocess
import sys

import tree

ENDINGS = (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh")
VERSION = 14
UNFORMATTED = re.compile(r"^(.+):(\d+):\d+: (?:warning|error): code should be clang-formatted", re.MULTILINE)


def tool():
    """clang-format of that version, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        said = shutil.which(name) and subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
        if said and f"version {VERSION}." in said:
            return name
    return None


def check(root):
    paths = list(tree.files(root, endings=ENDINGS))
    done = subprocess.run([tool(), "--style=file", "--dry-run", *paths], cwd=root, capture_output=True, text=True, check=True)
    places = {}
    for path, line in UNFORMATTED.findall(done.stderr):
        places.setdefault(path, []).append(line)
    return [f"{path}: clang-format would change lines {', '.join(lines[:10])}" for path, lines in places.items()]


if __name__ == "__main__":
    if not tool():
        print(f"skipped: no clang-format {VERSION} on this machine")
        sys.exit(77)
    tree.tell(check(os.path.abspath(sys.argv[1])))
