"""nothing.py INCLUDE OBJDUMP NM - with -DPK_DISABLE the object code is that of the same file without any call.

calls.h, in C and in C++, by each compiler that is here and at each level of optimisation: the disassembly of each function
is compared, the file's objects, and what it refers to elsewhere. Without PK_DISABLE each function has to differ, which is
compiled at one level: it is a look at calls.h, and what takes longest.
Registers do not count with clang, whose choice of them depends on how many statements the source has.
"""

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

CACHE = ["ccache"] if os.environ.get("CCACHE_DIR") and shutil.which("ccache") else []
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = ["-O1", "-O2", "-O3", "-Os"]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-Wno-variadic-macros"]
COMPILERS = {"calls.h": ["gcc", "clang"], "calls.cpp": ["g++", "clang++"]}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"), check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def functions(objdump, path, any_register):
    """Instructions and relocations of each function; each has a section of its own, so it begins at 0."""
    found, lines = {}, []
    for line in run(objdump, "-dr", "--no-show-raw-insn", path).splitlines():
        head = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if head:
            lines = found.setdefault(head.group(1), [])
        elif line and not line.startswith("Disassembly"):
            lines.append(re.sub(r"%[a-z]\w+", "%", line) if any_register else line)
    return found


def data(nm, path):
    """Objects, and what is referred to elsewhere: type and name of each symbol that is no function of the file. What
    unwinds the stack is left out: clang names it wherever there has been a destructor before it optimised."""
    lines = [line.split() for line in run(nm, "--format=posix", path).splitlines()]
    return {"data": sorted(f"{words[1]} {words[0]}" for words in lines if words[1] not in "TtWw"
                           and not words[0].startswith("__gxx_personality"))}


def compiled(compiler, level, source, include, folder, *flags):
    made = os.path.join(folder, "calls.o")
    language = ["-std=gnu11", "-x", "c"] if source.endswith(".h") else ["-std=c++11"]
    run(*CACHE, compiler, *language, level, "-ffunction-sections", *STRICT, *flags, "-I", include, "-c", os.path.join(HERE, source), "-o", made)
    return made


def difference(bare, disabled):
    lines = difflib.unified_diff(bare or [], disabled or [], "without calls", "disabled", "", "", 3, "")
    return "\n".join(lines)


def differences(tools, compiler, level, source, include, folder):
    def of(*flags):
        path = compiled(compiler, level, source, include, folder, *flags)
        return functions(tools[0], path, "clang" in compiler) | data(tools[1], path)

    bare, disabled = of(), of("-DWITH_CALLS", "-DPK_DISABLE")
    calls = of("-DWITH_CALLS") if level == LEVELS[0] else {}
    for name in sorted(bare.keys() | disabled.keys()):
        if bare.get(name) != disabled.get(name):
            yield f"{compiler} {level} {source}: {name} differs\n{difference(bare.get(name), disabled.get(name))}"
        if calls.get(name) == bare.get(name):
            yield f"{compiler} {level} {source}: {name} is the same without PK_DISABLE, so nothing is compared"


def main(include, *tools):
    found, compared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for source, compilers in COMPILERS.items():
            for compiler in filter(shutil.which, compilers):
                for level in LEVELS:
                    found += differences(tools, compiler, level, source, include, folder)
                    compared += 1
    print("\n".join(found))
    print(f"compared: {compared}, different: {len(found)}")
    return 77 if compared == 0 else bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
