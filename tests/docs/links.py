"""links.py ROOT - every relative link of the documentation leads to a file, and its #anchor to a heading."""

import os
import sys
from urllib.parse import unquote

import pages


def check_link(root, page, line, target, loaded):
    """A complaint, or nothing."""
    if "://" in target or target.startswith("mailto:"):
        return None
    path, _, anchor = unquote(target).partition("#")
    where = os.path.normpath(os.path.join(os.path.dirname(page.name), path)) if path else page.name
    if where.startswith("..") or not os.path.exists(os.path.join(root, where)):
        return f"{page.name}:{line}: {target} leads nowhere"
    if anchor and where.endswith(".md"):
        if where not in loaded:
            loaded[where] = pages.load(root, where)
        if anchor not in loaded[where].anchors():
            return f"{page.name}:{line}: {where} has no heading #{anchor}"
    return None


def complaints(root, names):
    loaded = {name: pages.load(root, name) for name in names}
    for page in list(loaded.values()):
        for line, target in page.links:
            if complaint := check_link(root, page, line, target, loaded):
                yield complaint


def main(root):
    found = list(complaints(root, pages.names(root)))
    print("\n".join(found) or "every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
