"""prove.py AR NM READELF CC... - each house check says no to what it forbids, and yes to its neighbour."""

import os
import subprocess
import sys
import tempfile

import rooms
import source
import symbols

LONG = "void pki_f(void)\n{\n" + "    ;\n" * 59 + "}\n"
FITS = "void pki_f(void)\n{\n" + "    ;\n" * 58 + "}\n"
HOME = "/hom" + "e/someone/x"
REGISTRY = "https://registry." + "npmj" + "s.org/x"

FOLDERS = """## Folders

```text
lib/core/    2  a thread
lib/out/     3  bytes: chrome/ trace events,
                and files
tests/          unit
```
"""
# check, the files of a tree, and a piece of the complaint; None: there must be none.
TREES = [
    (source.columns, {"a.md": "word " * 20 + "\n"}, None),
    (source.columns, {"a.md": "word " * 20 + "word\n"}, "more than 100"),
    (source.columns, {"docs/a.md": "- " + "x" * 120 + "\n\n| " + "word " * 30 + "|\n\n```sh\n" + "word " * 30 + "\n```\n"}, None),
    (source.columns, {"docs/a.md": "```sh\nx\n```\n\n`" + "code " * 30 + "` word\n"}, None),
    (source.columns, {"docs/a.md": "```sh\nx\n```\n\nword `" + "code " * 30 + "`\n"}, "more than 100"),
    (source.columns, {"docs/a.md": "```json\n{" + '"a": 1, ' * 12 + "}\n```\n"}, None),
    (source.columns, {"docs/a.md": "```json\n{" + '"a": 1, ' * 15 + "}\n```\n"}, "more than 100"),
    (source.folders, {"docs/design.md": FOLDERS, "lib/core/a.c": "", "lib/out/chrome/a.c": "", "tests/unit/a.c": ""}, None),
    (source.folders, {"docs/design.md": FOLDERS, "lib/core/a.c": "", "lib/out/a.c": "", "tests/kit/a.c": ""}, "not name tests/kit/"),
    (source.folders, {"docs/design.md": FOLDERS, "lib/core/a.c": "", "lib/out/new/a.c": "", "tests/unit/a.c": ""}, "lib/out/new/"),
    (source.folders, {"docs/design.md": FOLDERS, "lib/core/a.c": "", "tests/unit/a.c": ""}, "names lib/out/, which is not"),
    (source.folders, {"docs/design.md": "# Architecture\n", "lib/core/a.c": ""}, "no block"),
    (rooms.layers, {"lib/core/a.c": '#include "base/b.h"\n', "lib/base/b.h": ""}, None),
    (rooms.layers, {"lib/base/a.c": '#include "core/b.h"\n', "lib/core/b.h": ""}, "upward"),
    (rooms.layers, {"lib/base/a.c": "#include <core/b.h>\n", "lib/core/b.h": ""}, "upward"),
    (rooms.layers, {"lib/core/a.h": '#  include "session/b.h"\n', "lib/session/b.h": ""}, "upward"),
    (rooms.layers, {"lib/core/a.c": '#include "../out/b.h"\n', "lib/out/b.h": ""}, "upward"),
    (rooms.layers, {"lib/base/a.c": '#include "b.h"\n', "lib/base/arch/mips/b.h": ""}, None),
    (rooms.layers, {"lib/base/a.c": '#include "b.h"\n'}, "found neither"),
    (rooms.layers, {"lib/a.c": ""}, "no layer"),
    (rooms.layers, {"lib/new/a.c": ""}, "no layer"),
    (rooms.layers, {"lib/core/a.c": '#include "../../tools/b.h"\n', "tools/b.h": ""}, "nothing outside"),
    (rooms.layers, {"lib/backend/cuda/cuda.c": '#include "backend/cuda/api.h"\n', "lib/backend/cuda/api.h": ""}, None),
    (rooms.layers, {"lib/backend/cuda/none.c": '#include "backend/none.h"\n', "lib/backend/none.h": ""}, None),
    (rooms.layers, {"lib/backend/cuda/cuda.c": '#include "comm/plugin/plugin.h"\n', "lib/comm/plugin/plugin.h": ""}, "each other"),
    (rooms.layers, {"lib/comm/mpi/a.c": '#include "comm/mpi/b.h"\n', "lib/comm/mpi/b.h": ""}, None),
    (rooms.layers, {"lib/comm/mpi/a.c": "#include <pk/b.h>\n", "include/pk/b.h": ""}, None),
    (rooms.layers, {"lib/comm/mpi/a.c": '#include "core/b.h"\n', "lib/core/b.h": ""}, "what a user knows"),
    (rooms.layers, {"lib/comm/mpi/a.c": '#include "job/window.h"\n', "lib/job/window.h": ""}, None),
    (rooms.layers, {"lib/comm/mpi/a.c": '#include "job/job.h"\n', "lib/job/job.h": ""}, "what a user knows"),
    (rooms.layers, {"lib/bench/a.c": '#include "job/b.h"\n', "lib/job/b.h": ""}, "upward"),
    (rooms.layers, {"tools/a.c": '#include "job/b.h"\n', "lib/job/b.h": ""}, None),
    (rooms.layers, {"lib/session/a.c": '#include "comm/mpi/b.h"\n', "lib/comm/mpi/b.h": ""}, "of its own"),
    (rooms.layers, {"tools/a.c": '#include "comm/mpi/b.h"\n', "lib/comm/mpi/b.h": ""}, "of its own"),
    (rooms.layers, {"lib/comm/mpi/a.c": '#include "comm/nccl/b.h"\n', "lib/comm/nccl/b.h": ""}, "of its own"),
    (rooms.layers, {"lib/comm/mpi/a.c": '#include "comm/model/b.h"\n', "lib/comm/model/b.h": ""}, "what a user knows"),
    (rooms.layers, {"lib/core/a.c": '#include "comm/model/b.h"\n', "lib/comm/model/b.h": ""}, None),
    (rooms.layers, {"lib/comm/model/a.c": '#include "comm/figures/b.h"\n', "lib/comm/figures/b.h": ""}, "upward"),
    (rooms.layers, {"lib/comm/figures/a.c": '#include "session/b.h"\n', "lib/session/b.h": ""}, "upward"),
    (rooms.layers, {"lib/comm/live/a.c": '#include "comm/plugin/b.h"\n', "lib/comm/plugin/b.h": ""}, "upward"),
    (rooms.layers, {"lib/comm/plugin/a.c": '#include "backend/none.h"\n', "lib/backend/none.h": ""}, None),
    (rooms.layers, {"lib/comm/plugin/a.c": '#include "backend/cuda/b.h"\n', "lib/backend/cuda/b.h": ""}, "each other"),
    (rooms.layers, {"tools/a.c": '#include "comm/figures/b.h"\n', "lib/comm/figures/b.h": ""}, None),
    (rooms.layers, {"tools/a.c": '#include "comm/live/b.h"\n', "lib/comm/live/b.h": ""}, "no further"),
    (rooms.layers, {"lib/comm/a.c": ""}, "no layer"),
    (rooms.layers, {"lib/comm/new/a.c": ""}, "no layer"),
    (rooms.layers, {"tools/a.c": '#include "out/b.h"\n', "lib/out/b.h": ""}, None),
    (rooms.layers, {"tools/a.c": '#include "session/b.h"\n', "lib/session/b.h": ""}, "no further"),
    (rooms.layers, {"tools/a.c": '#include "bench/b.h"\n', "lib/bench/b.h": ""}, None),
    (rooms.layers, {"lib/bench/a.c": '#include "backend/cuda/b.h"\n', "lib/backend/cuda/b.h": ""}, None),
    (rooms.layers, {"lib/out/a.c": '#include "bench/b.h"\n', "lib/bench/b.h": ""}, "upward"),
    (rooms.layers, {"lib/backend/cuda/a.c": '#include "bench/b.h"\n', "lib/bench/b.h": ""}, "upward"),
    (rooms.layers, {"examples/a.c": "#include <pk/b.h>\n", "include/pk/b.h": ""}, None),
    (rooms.layers, {"examples/a.c": '#include "base/b.h"\n', "lib/base/b.h": ""}, "what a user knows"),
    (rooms.layers, {"include/pk/a.h": "#include <base/b.h>\n", "lib/base/b.h": ""}, "public header"),
    (source.sizes, {"lib/core/a.c": FITS}, None),
    (source.sizes, {"lib/core/a.c": LONG}, "pki_f has 61 lines"),
    (source.sizes, {"lib/core/a.h": 'extern "C" {\n' + LONG + "}\n"}, "pki_f has 61 lines"),
    (source.sizes, {"tools/a.c": "/* { */ char c = '{'; char *s = \"{\";\n#define X {\n" + LONG}, "pki_f has 61"),
    (source.sizes, {"lib/core/a.c": "struct a {\n" + "    int b;\n" * 70 + "};\n" + FITS}, None),
    (source.sizes, {"lib/core/a.c": "int a[] = {\n" + "    0,\n" * 70 + "};\n" + FITS}, None),
    (source.sizes, {"tests/a.c": "\n" * 1000}, None),
    (source.sizes, {"tests/a.c": "\n" * 1001}, "1001 lines"),
    (source.gates, {"include/pk/a.h": "    if (PK_ON_)\n        pk_a_on_(b);\n"}, None),
    (source.gates, {"include/pk/a.h": "{\n    return pk_a_on_(b);\n"}, "without a gate"),
    (source.gates, {"include/pk/a.h": "    if (__atomic_load_n(&pk_gate_, 0))\n"}, "of its own"),
    (source.gates, {"include/pk/status.h": "#define PK_ON_ __atomic_load_n(&pk_gate_, 0)\n"}, None),
    (source.references, {"lib/core/a.c": "/* see core/b.h and stdio.h, sys/stat.h, b.c */\n", "lib/core/b.h": "", "lib/core/b.c": ""}, None),
    (source.references, {"lib/core/a.c": "/* see core/b.h */\n"}, "there is no core/b.h"),
    (source.references, {"lib/core/a.c": "/* see b.c */\n"}, "there is no b.c"),
    (source.references, {"lib/core/a.c": "/* lib/core/a.c - it.\n\n */\n"}, None),
    (source.references, {"lib/core/a.c": "int a;\n/* see core/a.c */\n"}, "core/a.c is this very file"),
    (source.references, {"lib/core/a.c": 'f("core/b.h");\n', "docs/a.md": "run.c\n"}, None),
    (source.references, {"lib/core/a.c": "", "docs/a.md": "`lib/core/b.c`\n"}, "there is no lib/core/b.c"),
    (source.places, {"build-x/lib/a.c": HOME, ".git/config": HOME, "shared/a.md": HOME}, None),
    (source.places, {".ci/run": HOME}, "home folder"),
    (source.places, {"docs/a.md": "see ./home/x, /tmp/run.json and /usr/include\n"}, None),
    (source.places, {"docs/a.md": f"see {HOME}\n"}, "home folder"),
    (source.places, {"a.json": f'"{REGISTRY}"\n'}, "registry"),
]

# C for an archive, and a piece of the complaint.
ARCHIVES = [
    ("int pki_a(void); int pki_a(void) { return 0; }", None),
    ("int helper(void); int helper(void) { return 0; }", "without our prefix"),
    ("int table[4] = {1};", "without our prefix"),
    ("__attribute__((common)) int pk_a;", "common symbol"),
    ('#include <stdio.h>\nvoid pk_a(void); void pk_a(void) { printf("a\\n"); }', "prints"),
    ('#include <stdio.h>\nvoid pk_a(int b); void pk_a(int b) { fprintf(stderr, "%d", b); }', "prints"),
    ("#include <stdio.h>\nvoid pk_a(FILE *b); void pk_a(FILE *b) { fputs(\"a\", b); }", None),
    ("#include <stdlib.h>\ndouble pk_a(char *b); double pk_a(char *b) { return strtod(b, 0); }", "locale"),
    ("#include <stdlib.h>\nvoid pk_a(void); void pk_a(void) { exit(1); }", "ends the process"),
    ("#include <assert.h>\nvoid pk_a(int b); void pk_a(int b) { assert(b); }", "ends the process"),
    ("#include <signal.h>\nvoid pk_a(void); void pk_a(void) { signal(1, SIG_IGN); }", "signals"),
    ("#include <stdlib.h>\nvoid pk_a(void); void pk_a(void) { setenv(\"a\", \"\", 1); }", "changes the process"),
    ("extern __thread int pk_b; int pk_a(void); int pk_a(void) { return pk_b; }", "initial-exec"),
]

# C for a shared library beside a header that declares pk_a, linker flags, a piece of the complaint.
GOOD = ["-Wl,-z,nodelete", "-Wl,-z,now", "-Wl,-soname,libpk.so.1"]
SHARED = [
    ("int pk_a(void) { return 0; }", GOOD, None),
    ("int pk_a(void) { return 0; } int pki_b(void) { return 0; }", GOOD, "pki_b is exported"),
    ("int pk_b(void) { return 0; }", GOOD, "pk_a is declared"),
    ("int pk_a(void) { return 0; }", GOOD[1:], "NODELETE"),
    ("int pk_a(void) { return 0; }", [GOOD[0], "-Wl,-z,lazy", GOOD[2]], "NOW"),
    ("int pk_a(void) { return 0; }", GOOD[:2], "SONAME"),
    ("int pk_a(void) { return 0; }", GOOD + ["-Wl,-z,execstack"], "executable stack"),
    ("int pk_a(void) { return 0; }", GOOD + ["-Wl,--no-as-needed", "-lgcc_s"], "needs libgcc_s"),
]


def write(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def verdict(what, wanted, complaints):
    """Complaints about a check that did not say what it had to."""
    said = "; ".join(complaints)
    if wanted is None and said:
        return [f"{what}: should be fine, but: {said}"]
    if wanted is not None and wanted not in said:
        return [f"{what}: should say '{wanted}', but says: {said or 'nothing'}"]
    return []


def prove_trees():
    for check, contents, wanted in TREES:
        with tempfile.TemporaryDirectory() as root:
            for path, text in contents.items():
                write(root, path, text)
            yield from verdict(f"{check.__name__} {contents.keys()}", wanted, check(root))


def prove_format():
    if not source.clang_format():
        return
    for code, wanted in [("int a;\n", None), ("int  a;\n", "a.cu: clang-format would change lines 1"), ("int a;\nint  b;\n", "lines 2")]:
        with tempfile.TemporaryDirectory() as root:
            write(root, ".clang-format", "BasedOnStyle: LLVM\n")
            write(root, "lib/a.cu", code)
            yield from verdict(code, wanted, source.formatted(root))
    with tempfile.TemporaryDirectory() as root:  # what was well is so until it changes, or the style, or there is more
        os.mkdir(root + "/build")
        for path, code, wanted in [("lib/a.cu", "int a;\n", None), ("lib/a.cu", "int a;\n", None),
                                   ("lib/b.c", "int  a;\n", "b.c: clang-format would change lines 1"),
                                   ("lib/b.c", "int  a;\n", "b.c: clang-format would change lines 1"),
                                   ("lib/b.c", "int a;\n", None), ("lib/a.cu", "int  a;\n", "a.cu: clang-format"),
                                   ("lib/a.cu", "struct a {\n  int b;\n};\n", None),
                                   (".clang-format", "BasedOnStyle: LLVM\nIndentWidth: 8\n", "a.cu: clang-format")]:
            if not os.path.exists(root + "/.clang-format"):
                write(root, ".clang-format", "BasedOnStyle: LLVM\n")
            write(root, path, code)
            yield from verdict(f"{path} {code} beside what is known", wanted, source.formatted(root))


def prove_archives(cc, ar, nm, readelf):
    for code, wanted in ARCHIVES:
        with tempfile.TemporaryDirectory() as root:
            path, made = write(root, "a.c", code), os.path.join(root, "libpk.a")
            subprocess.run([*cc, "-O0", "-fPIC", "-c", path, "-o", root + "/a.o"], check=True)
            subprocess.run([ar, "rcs", made, root + "/a.o"], check=True)
            yield from verdict(code, wanted, symbols.check_libpk(nm, readelf, root, made))


# C of a few files for an archive, and a piece of the complaint.
NEEDS = [
    (["int pki_b(void); int pki_a(void); int pki_a(void) { return pki_b(); }",
      "int pki_b(void); int pki_b(void) { return 0; }"], None),
    (["int pki_b(void); int pki_a(void); int pki_a(void) { return pki_b(); }",
      "int pki_a(void); int pki_b(void); int pki_b(void) { return pki_a(); }"], "a cycle of 2 rooms"),
    (["extern int pki_b[]; int pki_a(void); int pki_a(void) { return pki_b[0]; }",
      "extern int pki_c[]; int pki_b[1]; int pki_d(void); int pki_d(void) { return pki_c[0]; }",
      "int pki_a(void); int pki_c[1]; int pki_e(void); int pki_e(void) { return pki_a(); }"], "a cycle of 3 rooms"),
    (["extern int pki_backend_b; int pki_a(void); int pki_a(void) { return pki_backend_b; }",
      "int pki_a(void); int pki_backend_b; int pki_c(void); int pki_c(void) { return pki_a(); }"], None),
]


def prove_cycles(cc, ar, nm):
    for sources, wanted in NEEDS:
        with tempfile.TemporaryDirectory() as root:
            made, objects = os.path.join(root, "libpk.a"), []
            for i, code in enumerate(sources):
                objects.append(f"{root}/{i}.o")
                subprocess.run([*cc, "-O0", "-c", write(root, f"{i}.c", code), "-o", objects[-1]], check=True)
            subprocess.run([ar, "rcs", made, *objects], check=True)
            yield from verdict(sources, wanted, list(rooms.check_cycles(nm, made)))


# Files of lib and beside it, and a piece of the complaint; at most every second function may be a corridor.
ONE = "int pki_a(void)\n{\n    return 0;\n}\n"
TWO = ONE + "\nPKI_COLD int *pki_b(int b,\n           int c)\n{\n    return 0;\n}\n"
CORRIDOR = {"lib/core/a.c": ONE, "lib/core/b.c": "int x = pki_a();\n"}
DOORS = [
    ({"lib/core/a.c": ONE, "lib/out/b.c": "int x = pki_a();\n"}, None),
    ({"lib/core/a.c": ONE, "tests/unit/b.c": "int x = pki_a();\n"}, None),
    ({"lib/core/a.c": "static " + ONE}, None),
    ({"lib/core/a.c": ONE + "int x = pki_a();\n", "lib/core/b.c": "/* pki_a */ char *a = \"pki_a\";\n",
      "lib/core/a.h": "int pki_a(void);\n"}, "pki_a should be static"),
    ({"lib/core/a.c": ONE.replace("_a", "_ab"), "lib/core/b.c": "#define CALL(more) pki_a##more()\n"}, None),
    (CORRIDOR, "100.0 % of"),
    (CORRIDOR | {"tools/c.c": "int x = pki_a();\n"}, None),
    (CORRIDOR | {"lib/core/a.h": "static inline int c(void)\n{\n    return pki_a();\n}\n"}, None),
    (CORRIDOR | {"lib/core/a.h": "#define C pki_a()\n"}, None),
    (CORRIDOR | {"lib/core/a.c": TWO, "lib/out/c.c": "int x = pki_b();\n"}, None),
    (CORRIDOR | {"lib/core/none.c": ONE}, "100.0 % of"),
]


def prove_doors():
    for contents, wanted in DOORS:
        with tempfile.TemporaryDirectory() as root:
            for path, text in contents.items():
                write(root, path, text)
            yield from verdict(f"doors {contents}", wanted, rooms.check_doors(*rooms.doors(root), most=50))


# C for libpk_mpi.a, and a piece of the complaint.
GLUE = [
    ("int PMPI_A(void); int MPI_A(void); int MPI_A(void) { return PMPI_A(); }", None),
    ("int pki_mpi_a(void); int pki_mpi_a(void) { return 0; }", None),
    ("int PMPI_B(void); int MPI_A(void); int MPI_A(void) { return PMPI_B(); }", "never calls PMPI_A"),
    ("int MPI_B(void); int pki_mpi_a(void); int pki_mpi_a(void) { return MPI_B(); }", "calls MPI_B, not PMPI_B"),
    ("int pk_a(void); int pk_a(void) { return 0; }", "without our prefix"),
    ("#include <stdio.h>\nvoid pki_mpi_a(void); void pki_mpi_a(void) { puts(\"a\"); }", "prints"),
]

# The same for libpk_nccl.a.
WRAP = [
    ("int pncclA(void); int ncclA(void); int ncclA(void) { return pncclA(); }", None),
    ("int pki_wrap_a(void); int pki_wrap_a(void) { return 0; }", None),
    ("int pncclB(void); int ncclA(void); int ncclA(void) { return pncclB(); }", "never calls pncclA"),
    ("int ncclB(void); int pki_wrap_a(void); int pki_wrap_a(void) { return ncclB(); }", "calls ncclB, not pncclB"),
    ("int pki_nccl_a(void); int pki_nccl_a(void) { return 0; }", "without our prefix"),
    ("int pncclGather(void); int ncclGather(void); int ncclGather(void) { return pncclGather(); }", "has to be weak"),
    ("int pncclA(void) __attribute__((weak)); int ncclA(void); int ncclA(void) { return pncclA(); }",
     "must not be weak"),
]


# C for libpk.a beside a libpkbench that is empty, and a piece of the complaint.
WITHOUT = [
    ("int pk_a(void); int pk_a(void) { return 0; }", None),
    ("int pk_bench_a(void); int pk_bench_a(void) { return 0; }", "pk_bench_a is of benchmarks"),
    ("static int pki_bench_a; int pk_a(void); int pk_a(void) { return pki_bench_a++; }", "pki_bench_a is of benchmarks"),
]


def prove_without(cc, ar, nm, _):
    for code, wanted in WITHOUT:
        with tempfile.TemporaryDirectory() as root:
            path, made = write(root, "a.c", code), os.path.join(root, "libpk.a")
            subprocess.run([*cc, "-O0", "-c", path, "-o", root + "/a.o"], check=True)
            subprocess.run([ar, "rcs", made, root + "/a.o"], check=True)
            yield from verdict(code, wanted, symbols.check_without(nm, made))


def prove_beside(cc, ar, nm, cases, wrapper):
    for code, wanted in cases:
        with tempfile.TemporaryDirectory() as root:
            path, made = write(root, "a.c", code), os.path.join(root, "lib.a")
            subprocess.run([*cc, "-O0", "-fPIC", "-c", path, "-o", root + "/a.o"], check=True)
            subprocess.run([ar, "rcs", made, root + "/a.o"], check=True)
            yield from verdict(code, wanted, symbols.check_calls(nm, made, symbols.WRAPPERS[wrapper]))


def prove_glue(cc, ar, nm, _):
    yield from prove_beside(cc, ar, nm, GLUE, "libpk_mpi")
    yield from prove_beside(cc, ar, nm, WRAP, "libpk_nccl")


def prove_shared(cc, ar, nm, readelf):
    for code, flags, wanted in SHARED:
        with tempfile.TemporaryDirectory() as root:
            write(root, "include/pk/a.h", "PK_API int pk_a(void);\n")
            path, made = write(root, "a.c", code), os.path.join(root, "libpk.so")
            subprocess.run([*cc, "-shared", "-fPIC", path, "-o", made, *flags], check=True)
            subprocess.run([ar, "rcs", root + "/libpk.a"], check=True)
            found = symbols.check_libpk(nm, readelf, root, root + "/libpk.a", made)
            yield from verdict(f"{code} {flags}", wanted, found)


def prove_alloc(cc, _, nm, readelf):
    """All that libpk_alloc exports, then one less, and one more."""
    every = sorted(symbols.ALLOC)
    cases = [(every, None), (every[1:], f"{every[0]} is not exported"), (every + ["pki_shard"], "pki_shard is exported")]
    for names, wanted in cases:
        with tempfile.TemporaryDirectory() as root:
            made = os.path.join(root, "libpk_alloc.so")
            path = write(root, "a.c", "".join(f"int {name};\n" for name in names))
            flags = [*GOOD[:-1], GOOD[-1].replace("libpk.so", "libpk_alloc.so")]
            subprocess.run([*cc, "-fno-builtin", "-shared", "-fPIC", path, "-o", made, *flags], check=True)
            yield from verdict(names[-1], wanted, symbols.check_libpk_alloc(nm, readelf, made))


def prove_linked(cc, ar, nm, _):
    called = "void pk_region_begin_on_(void) {}\nvoid pk_step_on_(void) {}\n"
    for code, wanted in [(called, None), (called + "void pk_gpu_begin_on_(void) {}\n", "pk_gpu_begin_on_ is in a program"),
                         (called + "int pk_bench(void) { return 0; }\n", "pk_bench is in a program"),
                         (called + "static char *table[9000] = {\"\"};\nchar **a(void) { return table; }\n", "72000 bytes of"),
                         ("", "it has no regions")]:
        with tempfile.TemporaryDirectory() as root:
            path, made = write(root, "a.c", code + "int main(void) { return 0; }\n"), os.path.join(root, "a")
            subprocess.run([*cc, "-O0", path, "-o", made], check=True)
            subprocess.run([*cc, "-O0", "-c", path, "-o", made + ".o"], check=True)
            subprocess.run([ar, "rcs", made + ".a", made + ".o"], check=True)
            found = [*symbols.check_program(nm, made, True), *symbols.check_filled(nm, made + ".a")]
            yield from verdict(code, wanted, found)


if __name__ == "__main__":
    ar_, nm_, readelf_ = sys.argv[1:4]
    tools = (sys.argv[4:], ar_, nm_, readelf_)
    source.tell([*prove_trees(), *prove_format(), *prove_doors(), *prove_cycles(*tools[:3]), *prove_archives(*tools), *prove_glue(*tools),
               *prove_without(*tools), *prove_shared(*tools), *prove_alloc(*tools), *prove_linked(*tools)])
