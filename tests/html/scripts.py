"""scripts.py FOLDER - the scripts of the page: each one parses, none is long, and none writes markup. Exit status 77:
there is no node."""

import glob
import os
import re
import shutil
import subprocess
import sys

LINES_MOST, COLUMNS_MOST = 700, 180
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute\('on|https?:")


def complaints(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    name, lines = os.path.basename(path), text.splitlines()
    if len(lines) > LINES_MOST:
        yield f"{name} has {len(lines)} lines"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MOST:
            yield f"{name}:{number}: {len(line)} columns"
        if found := MARKUP.search(line):
            yield f"{name}:{number}: {found.group()}: all text goes in as text (el() in common.js), and nothing is asked of a network"


def twice(paths):
    """They are one scope in the page: the later of two of a name is both."""
    seen = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for name in re.findall(r"^(?:function|class|const|let) ([A-Za-z_]+)", file.read(), re.MULTILINE):
                if name in seen:
                    yield f"{name} is in {seen[name]} and in {os.path.basename(path)}"
                seen[name] = os.path.basename(path)


def unparsed(paths):
    """What `node --check` would say of each, in one process."""
    check = ("const { readFileSync } = require('fs'), { Script } = require('vm');"
             "for (const path of process.argv.slice(1)) new Script(readFileSync(path, 'utf8'), { filename: path });")
    done = subprocess.run([shutil.which("node"), "-e", check, *paths], capture_output=True, text=True, check=False)
    if done.returncode:
        yield done.stderr.strip()[:400]


def main(folder):
    scripts = sorted(glob.glob(os.path.join(folder, "*.js")))
    if not shutil.which("node"):
        print("node is not installed")
        return 77
    found = [complaint for path in scripts for complaint in complaints(path)] + list(twice(scripts)) + list(unparsed(scripts))
    for complaint in found:
        print(complaint)
    return 1 if found or len(scripts) < 5 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
