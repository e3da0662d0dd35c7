"""folders.py ROOT - the block of folders in docs/design.md names each folder of lib/, tools/ and tests/, in its own lines
or behind those of the folder that it lies in."""

import os
import re
import sys

import tree

PAGE = "docs/design.md"
TOPS = ("lib", "tools", "tests")
MADE_OF_PLATFORMS = {"arch"}
BLOCK = re.compile(r"^## Folders\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


def paragraphs(block):
    """What stands about each folder that begins a line: name -> text, continuation lines included."""
    about, last = {}, None
    for line in block.split("\n"):
        found = re.match(r"( *)([\w/]+/?) ", line + " ")
        if found and len(found[1]) in (0, 2):
            last = found[2].rstrip("/") if not found[1] else last
            about[last] = about.get(last, "") + line + "\n"
        elif last:
            about[last] += line + "\n"
    return about


def folders(root):
    """lib/core, lib/out/chrome, tools/compare, tests/unit: each that has a file of its own."""
    found = {os.path.dirname(path) for path in tree.files(root, TOPS)}
    return sorted(folder for folder in found
                  if "/" in folder and not MADE_OF_PLATFORMS & set(folder.split("/")))


def check(root):
    block = BLOCK.search(tree.read(root, PAGE))
    if not block:
        return [f"{PAGE}: no block of folders"]
    about = paragraphs(block[1])
    wrong = []
    for folder in folders(root):
        parts = folder.split("/")
        if parts[0] == "tests" and len(parts) > 2:
            continue
        text = about.get("/".join(parts[:2])) or about.get(parts[0], "")
        if not all(re.search(rf"\b{re.escape(part)}\b", text) for part in parts[1:]):
            wrong.append(f"{PAGE}: the block of folders does not name {folder}/")
    for name in about:
        if name and not os.path.exists(os.path.join(root, name)):
            wrong.append(f"{PAGE}: the block of folders names {name}/, which is not there")
    return wrong


if __name__ == "__main__":
    tree.tell(check(sys.argv[1]))
