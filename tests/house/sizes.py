"""sizes.py ROOT - one subject per file, one thought per function: limits on the lines of both."""

import re
import sys

import tree

FILE_LINES = 1000
FUNCTION_LINES = 60  # from brace to brace
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.DOTALL)


def opens_function(head):
    """Whether the text between the last statement and a brace is a function's declarator."""
    return ATTRIBUTE.sub("", head).rstrip().endswith(")")


def name_of(head):
    """The word before the first parenthesis of a declarator."""
    found = re.search(r"(\w+)\s*\(", ATTRIBUTE.sub("", head))
    return found.group(1) if found else "?"


def functions(text):
    """(name, first line, lines from brace to brace) of each function of a C file."""
    text = re.sub(r'extern\s+{', lambda m: tree.blank(m), tree.bare(text))
    depth, line, head, found = 0, 1, "", None
    for char in text:
        if char == "\n":
            line += 1
        if char == "{":
            if depth == 0 and opens_function(head):
                found = (name_of(head), line)
            depth += 1
        elif char == "}":
            depth = max(depth - 1, 0)  # the brace of an extern "C" has no partner here
            if depth == 0 and found:
                yield (*found, line - found[1] + 1)
                found = None
        if depth == 0:
            head = "" if char in ";}" else head + char


def check(root):
    complaints = []
    everywhere = ("include", "lib", "bindings", "contrib", "tools", "examples", "tests", "bench")
    for path in tree.files(root, everywhere, (".c", ".h", ".cpp", ".hpp", ".py", ".f90", ".rs", ".go", ".java", ".sh", ".build")):
        lines = tree.read(root, path).count("\n")
        if lines > FILE_LINES:
            complaints.append(f"{path}: {lines} lines, more than {FILE_LINES}")
    for path in tree.files(root, ("include", "lib", "tools"), (".c", ".h", ".hpp")):
        for name, line, length in functions(tree.read(root, path)):
            if length > FUNCTION_LINES:
                complaints.append(f"{path}:{line}: {name} has {length} lines, more than {FUNCTION_LINES}")
    return complaints


if __name__ == "__main__":
    tree.tell(check(sys.argv[1]))
