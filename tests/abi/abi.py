"""abi.py check|record|prove NM READELF INCLUDE LIBRARY CC... - what programs that were linked against libpk.so, or
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
import shutil
import subprocess
import sys
import tempfile

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


# ---- what the public headers declare, as the compiler sees it ----

MARKER = re.compile(r'^# \d+ "([^"]*)"')
STRUCT = re.compile(r"(?:typedef )?struct (\w+) ?\{(.*)\} ?(\w*)$")
ENUM = re.compile(r"(?:typedef )?enum (\w*) ?\{(.*)\} ?(\w*)$")
NAME = re.compile(r"(\w+) ?(?:\[[^]]*\])*$")
BRACED = re.compile(r"([\w *]*?)\((\w+)\) ?\((.*)$")  # the name in parentheses keeps a macro of its name away
PLAIN = re.compile(r"([\w *]*?)\b(\w+) ?\((.*)$")
POINTER = re.compile(r"\(\*(\w+)\)")


def preprocessed(cc, include, headers):
    """These headers' own lines, without those of what they include."""
    source = "".join(f"#include <pk/{name}>\n" for name in headers)
    command = [*cc, "-std=gnu11", "-E", "-I", include, "-x", "c", "-"]
    text = subprocess.run(command, input=source, check=True, capture_output=True, text=True).stdout
    ours, kept = False, []
    for line in text.splitlines():
        marker = MARKER.match(line)
        if marker:
            path = marker.group(1)
            ours = path.startswith(include) and "/pk/" in path and path.rsplit("/", 1)[1] in headers
        elif ours:
            kept.append(line)
    return "\n".join(kept)


def without_attributes(text):
    return re.sub(r"__attribute__ ?\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", "", text)


def declarations(text):
    """Each declaration at file scope, on one line; the bodies of functions are left out."""
    depth, chunk = 0, ""
    for char in without_attributes(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
        depth += {"{": 1, "}": -1}.get(char, 0)
        chunk += char
        if depth == 0 and char == ";":
            yield " ".join(chunk[:-1].split())
            chunk = ""
        elif depth == 0 and char == "}" and re.search(r"\)\s*\{", chunk.split("{")[0] + "{"):
            chunk = ""


def members(body):
    """(name, type) of each member of a struct."""
    for statement in filter(None, (part.strip() for part in body.split(";"))):
        pointer = POINTER.search(statement)
        if pointer:
            yield pointer.group(1), statement.replace(pointer.group(1), "", 1)
            continue
        first, *rest = statement.split(",")
        name = NAME.search(first)
        base = first[:name.start(1)].rstrip("* ")
        for declarator in [first[len(base):], *rest]:
            stars, word, tail = re.match(r"([* ]*)(\w+) ?(.*)$", declarator).groups()
            yield word, f"{base} {stars.strip()}{tail}".replace(" [", "[").strip()


class Declared:
    """structs: name -> [(member, type)]; enums: names of values; rest: declarations by name."""

    def __init__(self, text):
        self.structs, self.values, self.rest = {}, [], {}
        for line in declarations(text):
            self.enter(line)

    def enter(self, line):
        if line.startswith(("static ", "_Static_assert")) or not re.search(r"\bpk_|\bPK_", line):
            return
        struct, enum = STRUCT.match(line), ENUM.match(line)
        if struct:
            self.structs[struct.group(3) or "struct " + struct.group(1)] = list(members(struct.group(2)))
        elif enum:
            self.values += [part.split("=")[0].strip() for part in enum.group(2).split(",") if part.strip()]
        else:
            line = re.sub(r"^(extern )?inline ", "", line)
            function = BRACED.match(line) or PLAIN.match(line)
            if function:
                self.rest[function.group(2)] = "%s(%s)(%s" % function.groups()
            elif not re.fullmatch(r"struct \w+", line):
                self.rest[re.search(r"(\w+)$", line).group(1)] = line

    def exported(self):
        return {name for name, line in self.rest.items() if not line.startswith("typedef")}


# ---- libraries and their headers ----


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


# ---- the proof: headers with one change each, beside the table of those that are here ----

# header, what stands there, what takes its place, and a piece of the complaint; None: there must be none.
CHANGES = [
    ("options.h", "    const char *tuning;\n", "    const char *tuning;\n    uint64_t newest;\n", None),
    ("options.h", "    const char *tuning;\n", "", "tuning"),
    ("options.h", "    const char *trace_path;\n", "    const char *trace_path;\n    const char *early;\n", "early"),
    ("options.h", "    uint32_t warmup_steps;\n", "    uint64_t warmup_steps;\n", "another type"),
    ("options.h", "    uint32_t warmup_steps;\n", "    uint32_t warmup_steps, squeezed;\n", "squeezed"),
    ("region.h", "    uint32_t line;", "    uint64_t line;", "the size of pk_region"),
    ("stats.h", "    double unit_ns;", "    double unit_ns, unit_s;", "pk_stats.spare has moved"),
    ("region.h", "    PK_WAIT = 5 ", "    PK_WAIT = 5, PK_NEW = 6 ", None),
    ("region.h", "    PK_IO = 4,", "    PK_IO = 6,", "PK_IO has another value"),
    ("status.h", "pk_status_name(pk_status status)", "pk_status_name(int64_t status)", "pk_status_name"),
    ("session.h", "PK_API pk_status pk_flush(void);", "", "pk_flush"),
    ("session.h", "PK_API pk_status pk_flush(void);",
     "PK_API pk_status pk_flush(void);\nPK_API pk_status pk_flush_more(void);", None),
]


def complaints(nm, readelf, include, library, cc, change):
    header, before, after, wanted = change
    with tempfile.TemporaryDirectory() as root:
        shutil.copytree(include, root + "/include")
        path = os.path.join(root, "include", "pk", header)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if before not in text:
            return f"{header}: '{before.strip()}' is no longer there to be changed"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(before, after, 1))
        said = "; ".join(check(nm, readelf, root + "/include", library, cc)[0])
    if wanted is None and said:
        return f"{header}: '{after.strip()}' should be fine, but: {said}"
    if wanted is not None and wanted not in said:
        return f"{header}: '{after.strip()}' should be told as '{wanted}', but: {said or 'nothing'}"
    return None


def other_symbols(nm, readelf, include, library, cc):
    """A library of the same name that lacks everything, and one of a name without a table."""
    with tempfile.TemporaryDirectory() as root:
        for name, wanted in ("libpk.so.1", "pk_start@@PK_1 is not exported"), ("libpk.so.77", "no table"):
            made = os.path.join(root, name)
            run(*cc, "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", made, "-Wl,-soname," + name, check=True)
            said = "; ".join(check(nm, readelf, include, made, cc)[0])
            if wanted not in said:
                yield f"{name}: should say '{wanted}', but says: {said or 'nothing'}"


def prove(nm, readelf, include, library, cc):
    found = [complaints(nm, readelf, include, library, cc, change) for change in CHANGES]
    found += other_symbols(nm, readelf, include, library, cc)
    found = [text for text in found if text]
    print("\n".join(found))
    return 1 if found else 0


def main(command, nm, readelf, include, library, *cc):
    if command in ("record", "prove"):
        return {"record": record, "prove": prove}[command](nm, readelf, include, library, cc)
    complaints, new = check(nm, readelf, include, library, cc)
    if new:
        print("not in the table yet, and free to change:", ", ".join(new))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
