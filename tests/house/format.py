"""format.py ROOT - clang-format would change no C, C++ or CUDA file. Of its version 14, since others differ.

What it has found well it need not read again: build/format-well, if there is a build, has a sum of each such file, made of
its name, what is in it, the style, and the version of clang-format."""

import hashlib
import os
import re
import shutil
import subprocess
import sys

import tree

ENDINGS = (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh")
VERSION = 14
WELL = "build/format-well"
UNFORMATTED = re.compile(r"^(.+):(\d+):\d+: (?:warning|error): code should be clang-formatted", re.MULTILINE)


def tool():
    """clang-format of that version, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        said = shutil.which(name) and subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
        if said and f"version {VERSION}." in said:
            return name
    return None


def sums(root, paths):
    """Of each path."""
    version = subprocess.run([tool(), "--version"], capture_output=True, check=True).stdout
    with open(os.path.join(root, ".clang-format"), "rb") as file:
        style = hashlib.sha256(version + file.read()).digest()
    found = {}
    for path in paths:
        with open(os.path.join(root, path), "rb") as file:
            found[path] = hashlib.sha256(style + path.encode() + b"\0" + file.read()).hexdigest()
    return found


def remembered(root):
    try:
        with open(os.path.join(root, WELL), encoding="ascii") as file:
            return set(file.read().split())
    except FileNotFoundError:
        return set()


def remember(root, well):
    if os.path.isdir(os.path.join(root, os.path.dirname(WELL))):
        new = os.path.join(root, f"{WELL}.{os.getpid()}")
        with open(new, "w", encoding="ascii") as file:
            file.write("\n".join(sorted(well)))
        os.replace(new, os.path.join(root, WELL))


def check(root):
    found, well = sums(root, tree.files(root, endings=ENDINGS)), remembered(root)
    paths, places = [path for path in found if found[path] not in well], {}
    if paths:
        done = subprocess.run([tool(), "--style=file", "--dry-run", *paths], cwd=root, capture_output=True, text=True, check=True)
        for path, line in UNFORMATTED.findall(done.stderr):
            places.setdefault(path, []).append(line)
    remember(root, {found[path] for path in found if path not in places})
    return [f"{path}: clang-format would change lines {', '.join(lines[:10])}" for path, lines in places.items()]


if __name__ == "__main__":
    if not tool():
        print(f"skipped: no clang-format {VERSION} on this machine")
        sys.exit(77)
    tree.tell(check(os.path.abspath(sys.argv[1])))
