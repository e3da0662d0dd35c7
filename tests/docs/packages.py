"""packages.py ROOT - docs/install.md names the packages that ./dev installs before it builds, and no others."""

import os
import re
import sys


def main(root):
    def text(name):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            return file.read()

    table = re.search(r'\[build\]="([^"]*)"', text("dev")).group(1)
    wanted = {item.split("=", 1)[1] for item in table.split()}
    line = re.search(r"^apt install ((?!\./).*)$", text("docs/install.md"), re.MULTILINE)
    named = set(line.group(1).split()) if line else set()
    for package in sorted(wanted ^ named):
        print(f"{package}: " + ("docs/install.md does not name it" if package in wanted else "./dev does not install it"))
    return wanted != named


sys.exit(main(*sys.argv[1:]))
