"""source.py RULE ROOT - what can be told of the tree by reading it, and what the other house checks read it with:

    columns     Markdown is wrapped
    folders     docs/design.md names each folder
    format      clang-format would change nothing
    gates       what records costs a load and a branch while perfkit is off
    places      nothing names somebody's machine
    references  the files that comments and pages name are there
    sizes       no file is too long, and no function
"""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys

# ---- walking the tree, reading C, telling what is wrong ----

SKIP = re.compile(r"^(\.(?!ci$).*|build.*|subprojects|node_modules|shared|__pycache__)$")


def files(root, folders=("",), endings=("",)):
    """Paths relative to root of the files that belong to the project."""
    for folder in folders:
        for here, below, names in os.walk(os.path.join(root, folder)):
            below[:] = sorted(name for name in below if not SKIP.match(name))
            for name in sorted(names):
                if name == ".git":  # a file in a second work tree: it says where the first one is
                    continue
                if name.endswith(tuple(endings)):
                    yield os.path.relpath(os.path.join(here, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def blank(match):
    """The same number of lines, nothing in them."""
    return re.sub(r"[^\n]", " ", match.group())


LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
DIRECTIVES = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)


def bare(text):
    """C without comments, literals and preprocessor lines; line numbers stay."""
    return DIRECTIVES.sub(blank, LITERALS.sub(blank, text))


def tell(complaints):
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)


# ---- columns: pages are wrapped ----

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


def columns(root):
    """No line of text is longer than 100 columns, and none of an example of JSON, which can be broken between any two
    members. Other code, tables, headings and comments are as long as they are, and so is what has no place to break it."""
    paths = [path for path in files(root, endings=(".md",)) if not path.startswith("tests/golden/")]
    return [f"{path}:{number}: {len(line)} columns, more than {COLUMNS}: {line[:40]}..."
            for path in paths for number, line in long_lines(read(root, path))]


# ---- folders: docs/design.md names them ----

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


def folders_of(root):
    """lib/core, lib/out/chrome, tools/compare, tests/unit: each that has a file of its own."""
    found = {os.path.dirname(path) for path in files(root, TOPS)}
    return sorted(folder for folder in found
                  if "/" in folder and not MADE_OF_PLATFORMS & set(folder.split("/")))


def folders(root):
    """The block there has each folder of lib/, tools/ and tests/, in its own lines or behind those of the folder that it
    lies in."""
    block = BLOCK.search(read(root, PAGE))
    if not block:
        return [f"{PAGE}: no block of folders"]
    about = paragraphs(block[1])
    wrong = []
    for folder in folders_of(root):
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


# ---- format: clang-format would change no C, C++ or CUDA file ----

ENDINGS = (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh")
VERSION = 14  # others differ
WELL = "build/format-well"
UNFORMATTED = re.compile(r"^(.+):(\d+):\d+: (?:warning|error): code should be clang-formatted", re.MULTILINE)


@functools.cache
def clang_format():
    """clang-format of that version, and what it says of itself; or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        said = shutil.which(name) and subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
        if said and f"version {VERSION}." in said:
            return name, said
    return None


def sums(root, paths):
    """Of each path."""
    with open(os.path.join(root, ".clang-format"), "rb") as file:
        style = hashlib.sha256(clang_format()[1].encode() + file.read()).digest()
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


def formatted(root):
    """What clang-format has found well it need not read again: build/format-well, if there is a build, has a sum of each
    such file, made of its name, what is in it, the style, and the version of clang-format."""
    found, well = sums(root, files(root, endings=ENDINGS)), remembered(root)
    paths, spots = [path for path in found if found[path] not in well], {}
    if paths:
        done = subprocess.run([clang_format()[0], "--style=file", "--dry-run", *paths], cwd=root, capture_output=True,
                              text=True, check=True)
        for path, line in UNFORMATTED.findall(done.stderr):
            spots.setdefault(path, []).append(line)
    remember(root, {found[path] for path in found if path not in spots})
    return [f"{path}: clang-format would change lines {', '.join(lines[:10])}" for path, lines in spots.items()]


# ---- gates: what records costs a load and a branch while perfkit is off ----

GATES = {"pk_gate_": "include/pk/status.h", "pk_gpu_gate_": "include/pk/gpu.h"}
ASKED = re.compile(r"^\s*if \((?:PK_ON_|PK_GPU_ON_|PK_STARTED_\(\w+\))\)$")
CALLS = re.compile(r"^\s+(?:return )?(pk_\w+_on_)\(")
LOADS = re.compile(r"&(pk_\w*gate_)\b")


def gates(root):
    """In the public headers each call of a function ..._on_ stands behind a gate, and there is one definition of these."""
    complaints = []
    for path in files(root, ("include",), (".h", ".hpp")):
        before = ""
        for number, line in enumerate(read(root, path).split("\n"), 1):
            call, load = CALLS.match(line), LOADS.search(line)
            if call and not ASKED.match(before):
                complaints.append(f"{path}:{number}: {call.group(1)} without a gate (PK_ON_)")
            if load and GATES.get(load.group(1)) != path:
                complaints.append(f"{path}:{number}: a gate of its own: there is PK_ON_")
            before = line
    return complaints


# ---- places: nothing names somebody's machine ----

# Written so that they do not match themselves.
PLACES = [
    (re.compile(r"(?<![\w.])/(?:hom[e]|User[s])/\w+"), "a home folder"),
    (re.compile(r"(?<![\w.])/(?:roo[t]|wor[k])/"), "a folder of one machine"),
    (re.compile(r"(?:npmj[s]|pyp[i]|pythonhoste[d]|crate[s]|rubygem[s])\.(?:org|io|com)"), "a registry"),
    (re.compile(r"(?:registr[y]|artifactor[y]|nexu[s]|mirro[r]|prox[y])[\w-]*\.[\w-]+\.\w+"), "a registry"),
    (re.compile(r"\b(?:de[b]|snapsho[t]|securit[y])\.debian\.org"), "a registry"),
]


def places(root):
    complaints = []
    for path in files(root):
        for number, line in enumerate(read(root, path).split("\n"), 1):
            for pattern, what in PLACES:
                match = pattern.search(line)
                if match:
                    complaints.append(f"{path}:{number}: {what}: {match.group()}")
    return complaints


# ---- references: the files that comments and pages name are there ----

REFERRING = ("lib", "tools", "docs", "include", "examples", "bench")
FILE_NAME = re.compile(r"(?<![\w<./*-])(?:[\w]+/)*[\w]+\.[ch]\b(?!pp)")


def said(path, text):
    """What of a file is words: all of a page, of C the comments."""
    if not path.endswith((".c", ".h")):
        return text
    return "".join(part if part.startswith("/*") else blank(re.match(r"(?s).*", part))
                   for part in re.split(r'(/\*.*?\*/)', text, flags=re.DOTALL))


def references(root):
    """A file is named by its path, or by as much of the path's end as is needed. Looked at are names with a folder of the
    project's in front, and, in comments of lib/ and tools/, bare names of .c, which no system has. NAME stands for any
    name. Below its first line a file does not name itself: what is meant is above or below."""
    paths = [path.split(os.sep) for path in files(root)]
    ends = {"/".join(path[at:]) for path in paths for at in range(len(path))}
    known = {folder for path in paths if path[0] in ("lib", "tools") for folder in path[:-1]} | {"tests", *REFERRING}
    complaints = []
    for path in files(root, REFERRING, (".c", ".h", ".md", ".build")):
        ours = path.startswith(("lib" + os.sep, "tools" + os.sep)) and path.endswith((".c", ".h"))
        for number, line in enumerate(said(path, read(root, path)).splitlines(), 1):
            for name in FILE_NAME.findall(line):
                folder = name.split("/")[-2] if "/" in name else None
                wanted = folder in known if folder else ours and name.endswith(".c")
                if wanted and name not in ends and "NAME" not in name:
                    complaints.append(f"{path}:{number}: there is no {name}")
                elif ours and number > 1 and "/".join(path.split(os.sep)).endswith("/" + name):
                    complaints.append(f"{path}:{number}: {name} is this very file")
    return complaints


# ---- sizes: one subject per file, one thought per function ----

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
    text = re.sub(r'extern\s+{', lambda m: blank(m), bare(text))
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


def sizes(root):
    complaints = []
    everywhere = ("include", "lib", "bindings", "contrib", "tools", "examples", "tests", "bench")
    for path in files(root, everywhere, (".c", ".h", ".cpp", ".hpp", ".py", ".f90", ".rs", ".go", ".java", ".sh", ".build")):
        lines = read(root, path).count("\n")
        if lines > FILE_LINES:
            complaints.append(f"{path}: {lines} lines, more than {FILE_LINES}")
    for path in files(root, ("include", "lib", "tools"), (".c", ".h", ".hpp")):
        for name, line, length in functions(read(root, path)):
            if length > FUNCTION_LINES:
                complaints.append(f"{path}:{line}: {name} has {length} lines, more than {FUNCTION_LINES}")
    return complaints


RULES = {"columns": columns, "folders": folders, "format": formatted, "gates": gates, "places": places,
         "references": references, "sizes": sizes}

if __name__ == "__main__":
    if sys.argv[1] == "format" and not clang_format():
        print(f"skipped: no clang-format {VERSION} on this machine")
        sys.exit(77)
    tell(RULES[sys.argv[1]](os.path.abspath(sys.argv[2])))
