"""columns.py ROOT - Markdown is wrapped: no line of text is longer than 100 columns, and none of an example of JSON, which
can be broken between any two members. Other code, tables, headings and comments are as long as they are, and so is
what has no place to break it."""

import re
import sys

import tree

COLUMNS = 100
FENCE = re.compile(r"^\s*(```|~~~)(\w*)")
AS_IT_IS = re.compile(r"^\s*(\||#|<|\[[^]]+\]: )")
SPAN = re.compile(r"`+[^`]*`+")
ITEM = re.compile(r"^\s*([-*+]|\d+[.)])\s+")


def is_breakable(line):
    """Whether there is a blank within the columns, but in code and behind the mark of a list's item."""
    return " " in SPAN.sub(lambda span: "`" * len(span[0]), ITEM.sub("", line)).strip()[:COLUMNS]


def long_lines(text):
    """(number, line) of each line that should be wrapped."""
    fence = language = None
    for number, line in enumerate(text.split("\n"), 1):
        found = FENCE.match(line)
        if found and fence in (None, found[1]):
            fence = None if fence else found[1]
            language = found[2]
        elif len(line) <= COLUMNS:
            continue
        elif language == "json" if fence else not AS_IT_IS.match(line) and is_breakable(line):
            yield number, line


def check(root):
    paths = [path for path in tree.files(root, endings=(".md",)) if not path.startswith("tests/golden/")]
    return [f"{path}:{number}: {len(line)} columns, more than {COLUMNS}: {line[:40]}..."
            for path in paths for number, line in long_lines(tree.read(root, path))]


if __name__ == "__main__":
    tree.tell(check(sys.argv[1]))
