"""abi.py check|record NM READELF INCLUDE LIBRARY CC... - what programs that were linked against libpk.so, or
libpkbench.so, rely on.

The table of a soname, libpk.so.N.abi, is C: it says of each struct where its members are and of which type,
of each enumeration its values, and declares each function and object once more. So it compiles beside headers
that mean the same, and whatever it declares has to be exported under the version of that soname
(PK_1), or another one (PK_PRIVATE_1) if its name ends in "_".

What may change without a new soname: a struct whose first member is its size may grow at the end; new
functions, types and values may come. `record` adds these to the table; it refuses to write down anything
else over a table that exists. A break asks for a new PK_ABI (pk/version.h) and, with it, a new table.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

from declared import Declared, preprocessed

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = ("bench.h", "bench_register.h", "disable_bench.h", "keep.h")
HEAD = """/* What programs linked against %s rely on: made by tests/abi/abi.py, not by hand. */
%s
#include <stddef.h>

/* SAME: this and no other size. GROWS: it says its size, and may become larger. */
#define SAME(type, bytes) _Static_assert(sizeof(type) == (bytes), "the size of " #type)
#define GROWS(type, bytes) _Static_assert(sizeof(type) >= (bytes), "the size of " #type)
#define AT(type, member, bytes, is)                                                                \\
    _Static_assert(offsetof(type, member) == (bytes), #type "." #member " has moved");             \\
    _Static_assert(__builtin_types_compatible_p(__typeof__(((type *)0)->member), __typeof__(is)),  \\
                   #type "." #member " is of another type")
#define IS(name, value) _Static_assert((name) == (value), #name " has another value")

"""


def run(*command, check=False, **options):
    environment = dict(os.environ, LC_ALL="C")
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=check, **options)


def headers(include, name):
    """Those of the library of that soname."""
    every = sorted(os.path.basename(path) for path in glob.glob(include + "/pk/*.h"))
    return [header for header in every if (header in BENCH) == name.startswith("libpkbench")]


def now(cc, include, name):
    return Declared(preprocessed(cc, include, headers(include, name)))


def soname(readelf, library):
    found = re.search(r"\(SONAME\).*\[(.*?)\]", run(readelf, "-dW", library).stdout)
    return found.group(1) if found else ""


def table_of(name, tables):
    return os.path.join(tables, name + ".abi")


# ---- the table, from what is there ----

def questions(declared):
    """C expressions whose values the table wants."""
    for struct, inside in declared.structs.items():
        yield f"sizeof({struct})"
        for member, _ in inside:
            yield f"offsetof({struct}, {member})"
    yield from declared.values


def answers(cc, include, name, declared):
    """Their values, from a program that prints them."""
    asked = list(questions(declared))
    source = "#include <stddef.h>\n#include <stdio.h>\n"
    source += "".join(f"#include <pk/{header}>\n" for header in headers(include, name))
    source += "int main(void)\n{\n" + "".join(f'printf("%ld\\n", (long)({text}));\n' for text in asked) + "}\n"
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "ask")
        run(*cc, "-std=gnu11", "-I", include, "-x", "c", "-", "-o", program, input=source, check=True)
        said = run(program, check=True).stdout.split()
    return dict(zip(asked, map(int, said)))


def write_table(cc, include, name, declared):
    known = answers(cc, include, name, declared)
    lines = [HEAD % (name, "\n".join(f"#include <pk/{header}>" for header in headers(include, name)))]
    for struct, inside in declared.structs.items():
        grows = inside[:1] == [("size", "uint32_t")]
        lines.append(f"{'GROWS' if grows else 'SAME'}({struct}, {known[f'sizeof({struct})']});\n")
        for member, kind in inside:
            lines.append(f"AT({struct}, {member}, {known[f'offsetof({struct}, {member})']}, {kind});\n")
        lines.append("\n")
    lines += [f"IS({value}, {known[value]});\n" for value in declared.values]
    lines += ["\n"] + [f"{line};\n" for line in declared.rest.values()]
    return "".join(lines)


# ---- the check ----

class Table:
    """A recorded table, as far as the compiler does not read it."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.sizes = {name: int(size) for name, size in re.findall(r"^(?:GROWS|SAME)\((.*), (\d+)\);", self.text, re.M)}
        self.members, self.values = {}, re.findall(r"^IS\((\w+),", self.text, re.M)
        for struct, member in re.findall(r"^AT\(([^,]*), (\w+),", self.text, re.M):
            self.members.setdefault(struct, []).append(member)
        last = self.text.rindex("IS(") if self.values else self.text.index("\n\n")
        self.rest = Declared(self.text[self.text.index("\n", last):])


def compile_table(cc, include, path, more):
    """The compiler's complaints about the table beside these headers."""
    with open(path, encoding="utf-8") as file:
        source = file.read() + more
    made = run(*cc, "-std=gnu11", "-fsyntax-only", "-I", include, "-x", "c", "-", input=source)
    if made.returncode == 0:
        return []
    return [line.split("error: ", 1)[1] for line in made.stderr.splitlines() if "error: " in line]


def beyond(table, declared):
    """Members that came since lie behind all that older programs have allocated; none came in between."""
    for struct, names in table.members.items():
        have = [name for name, _ in declared.structs.get(struct, [])]
        for name in have[:len(names)]:
            if name not in names:
                yield f'_Static_assert(0, "{struct}.{name} stands before members that were there");\n'
        for name in have[len(names):]:
            if name not in names:
                yield (f"_Static_assert(offsetof({struct}, {name}) >= {table.sizes[struct]},"
                       f' "{struct}.{name} lies where older programs have padding");\n')


def exported(nm, library):
    lines = run(nm, "-D", "--defined-only", "--format=posix", library, check=True).stdout.splitlines()
    return {words[0] for words in map(str.split, lines) if words}


def check_symbols(table, nm, name, library):
    start, number = "@@PK_BENCH_" if name.startswith("libpkbench") else "@@PK_", name.rsplit(".", 1)[-1]
    have = exported(nm, library)
    for symbol in sorted(table.rest.exported()):
        version = start + ("PRIVATE_" if symbol.endswith("_") else "") + number
        if symbol + version not in have:
            yield f"{name}: {symbol}{version} is not exported"


def check(nm, readelf, include, library, cc, tables=HERE):
    """(complaints, what came since the table was written)"""
    name = soname(readelf, library)
    path = table_of(name, tables)
    if not os.path.exists(path):
        return [f"{name or library}: no table; tests/abi/abi.py record writes one"], []
    table, declared = Table(path), now(cc, include, name)
    complaints = compile_table(cc, include, path, "".join(beyond(table, declared)))
    complaints += [f"{gone} is no longer declared" for gone in sorted(table.rest.rest.keys() - declared.rest.keys())]
    complaints += check_symbols(table, nm, name, library)
    new = sorted(declared.rest.keys() - table.rest.rest.keys()) + sorted(set(declared.values) - set(table.values))
    new += [f"{struct}.{member}" for struct, inside in declared.structs.items() for member, _ in inside
            if member not in table.members.get(struct, [])]
    return complaints, new


def record(nm, readelf, include, library, cc):
    name = soname(readelf, library)
    path = table_of(name, HERE)
    if os.path.exists(path):
        complaints, _ = check(nm, readelf, include, library, cc)
        if complaints:
            print("\n".join(complaints))
            print(f"{name} would no longer be what it was: such a change takes a new PK_ABI (pk/version.h)")
            return 1
    text = write_table(cc, include, name, now(cc, include, name))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


def main(command, nm, readelf, include, library, *cc):
    if command == "record":
        return record(nm, readelf, include, library, cc)
    complaints, new = check(nm, readelf, include, library, cc)
    if new:
        print("not in the table yet, and free to change:", ", ".join(new))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
