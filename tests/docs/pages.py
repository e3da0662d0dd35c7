"""What a page of documentation consists of: blocks with their markers, headings, links."""

import os
import re
import sys

FENCE = re.compile(r"^( *)(`{3,}|~{3,})\s*([\w+-]*)\s*$")
MARKER = re.compile(r"^\s*<!--\s*(not run|file|needs|on|exit 1|before):\s*(.*?)\s*-->\s*$")
LIST_ITEM = re.compile(r"^\s*([-*+]|\d+[.)])\s")
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)|<(?:img|a|source)\b[^>]*?\b(?:src|href|srcset)=\"([^\"]+)\"")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")


class Block:
    """One fenced block. markers: what the comments right in front of it say."""

    def __init__(self, page, line, language, markers):
        self.page, self.line, self.language, self.markers = page, line, language, markers
        self.lines = []

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)

    @property
    def place(self):
        return f"{self.page}:{self.line}"


class Page:
    """blocks, headings, links as (line, target), and `wrong`: complaints about the form."""

    def __init__(self, name, text):
        self.name, self.blocks, self.headings, self.links, self.wrong = name, [], [], [], []
        self.markers, self.fence, self.in_list, self.blank = {}, None, False, True
        for number, line in enumerate(text.split("\n"), 1):
            self.read(number, line.rstrip())
        if self.fence:
            self.wrong.append(f"{self.blocks[-1].place}: the block has no end")

    def read(self, number, line):
        fence = FENCE.match(line)
        if self.fence:
            self.inside(line, fence)
        elif fence:
            self.fence = (fence.group(1), fence.group(2))
            self.blocks.append(Block(self.name, number, fence.group(3), self.markers))
            self.markers = {}
        elif marker := MARKER.match(line):
            self.markers[marker.group(1)] = marker.group(2)
        else:
            self.prose(number, line)

    def inside(self, line, fence):
        indent, ticks = self.fence
        if fence and not fence.group(3) and fence.group(2).startswith(ticks):
            self.fence, self.blank, self.in_list = None, True, self.in_list and bool(indent)
        else:
            self.blocks[-1].lines.append(line[len(indent):] if line.startswith(indent) else line)

    def prose(self, number, line):
        if line and self.markers:
            self.wrong.append(f"{self.name}:{number}: a marker that no block follows")
            self.markers = {}
        if heading := HEADING.match(line):
            self.headings.append(heading.group(2))
        if line.startswith("    ") and self.blank and not self.in_list:
            self.wrong.append(f"{self.name}:{number}: an indented block: fence it, and name its language")
        if LIST_ITEM.match(line):
            self.in_list = True
        elif line and not line.startswith(" "):
            self.in_list = False
        plain = re.sub(r"`[^`]*`", lambda code: "`" + "x" * (len(code.group()) - 2) + "`", line)
        self.links += [(number, one or other) for one, other in LINK.findall(plain)]
        self.blank = not line

    def anchors(self):
        """As GitHub makes them of headings."""
        found = []
        for heading in self.headings:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
            name = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
            found.append(name if name not in found else f"{name}-{found.count(name)}")
        return found


def names(root):
    """The pages of this project, relative to its root."""
    docs = [os.path.join(folder, name) for folder in ("docs", os.path.join("docs", "internals"))
            for name in sorted(os.listdir(os.path.join(root, folder))) if name.endswith(".md")]
    return ["README.md", *docs, "examples/README.md", "package/SKILL.md"]


def load(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return Page(name, file.read())


if __name__ == "__main__":
    print("\n".join(names(sys.argv[1])))
