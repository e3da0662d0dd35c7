"""disabled.py ROOT NM CUDA LIBRARY... - with -DPK_DISABLE programs need no libpk.

Each symbol that the libraries export has its twin in the headers: a program that takes the address of every one links
without them. answers.c says what the calls answer. Every example compiles without a warning and links. In C and in C++, by
each compiler that is here. CUDA: the folder of its headers, or "".
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

CACHE = ["ccache"] if os.environ.get("CCACHE_DIR") and shutil.which("ccache") else []
HERE = os.path.dirname(os.path.abspath(__file__))
STRICT = ["-Wall", "-Wextra", "-Werror", "-DPK_DISABLE"]
COMPILERS = {"c": (["gcc", "-std=gnu11"], ["clang", "-std=gnu11"]),
             "c++": (["g++", "-std=c++11"], ["clang++", "-std=c++11"])}
LINKERS = {"clang": "gcc", "clang++": "g++"}
LIBRARIES = ["-lm", "-pthread"]
PROGRAMS = ["main.c", "serve.c", "ranks.c"]  # of examples/train; the last one is MPI's
# An inline function calls the first where its gate, the second, is open: PK_DISABLE has neither.
BEHIND_A_GATE = ("_on_", "gate_")


class Missing(Exception):
    """What an example needs is not here."""


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def build(command, source, made, libraries=None):
    """An object, and where there are libraries a program of it: two steps, since a compiler's cache knows objects. The
    second is by gcc, if it is here: the linker is the same, and clang takes longer to call it than that takes."""
    done = run(*CACHE, *command, "-c", source, "-o", made + ".o", cwd=os.path.dirname(made))
    if done.returncode or libraries is None:
        return done
    linker = shutil.which(LINKERS.get(command[0], command[0])) or command[0]
    return run(linker, made + ".o", "-o", made, *libraries)


def compilers(language):
    return [command for command in COMPILERS[language] if shutil.which(command[0])]


def by_name_alone(root):
    """What `pk bench-ab` looks up by name in a build of benchmarks, which no public header declares."""
    with open(root + "/lib/bench/drive.h", encoding="utf-8") as file:
        return set(re.findall(r"\b(pk_bench_\w+_)\(", file.read()))


def exported(root, nm, libraries):
    """Names of pk/*.h that the shared libraries export."""
    found = set()
    for library in libraries:
        lines = run(nm, "-D", "--defined-only", "--format=posix", library).stdout.splitlines()
        found |= {line.split()[0].split("@")[0] for line in lines}
    return sorted(name for name in found - by_name_alone(root)
                  if name.startswith("pk_") and not name.endswith(BEHIND_A_GATE))


def headers(root):
    return sorted(os.path.basename(path) for path in glob.glob(root + "/include/pk/*.h"))


def twins(root, names, folder):
    """A program with the address of each: what is not declared is an error, what has no body does not link."""
    source = "".join(f"#include <pk/{name}>\n" for name in headers(root))
    source += "typedef void function(void);\nextern function *volatile taken;\nfunction *volatile taken;\n"
    source += "int main(void)\n{\n" + "".join(f"    taken = (function *)({name});\n" for name in names) + "}\n"
    for language in COMPILERS:
        with open(f"{folder}/twins.{language}", "w", encoding="utf-8") as file:
            file.write(source)
        for compiler in compilers(language):
            made = build([*compiler, *STRICT, "-I", root + "/include", "-x", language], "twins." + language,
                         folder + "/twins", [])
            if made.returncode:
                yield f"{' '.join(compiler)}: not every exported symbol has its twin in pk/disable.h or pk/disable_bench.h:\n{made.stderr}"


def answers(root, folder):
    for language in COMPILERS:
        for compiler in compilers(language):
            for level in "-O0", "-O2":
                made = build([*compiler, level, *STRICT, "-I", root + "/include", "-x", language], HERE + "/answers.c",
                             folder + "/answers", [])
                made = made if made.returncode else run(folder + "/answers")
                if made.returncode:
                    yield f"{' '.join(compiler)} {level} answers.c:\n{made.stdout}{made.stderr}"


def needs(there, what):
    if not there:
        raise Missing(what)


def nvcc_of(cuda):
    nvcc = shutil.which("nvcc") or shutil.which(cuda + "/../bin/nvcc")
    needs(nvcc, "nvcc")
    return nvcc


def nvcc_compiles(nvcc, folder):
    """It has a host compiler that it can use. Asked once an example fails: it takes three seconds."""
    with open(folder + "/probe.cu", "w", encoding="utf-8") as file:
        file.write("__global__ void f() {}\n")
    return build([nvcc], "probe.cu", folder + "/probe").returncode == 0


def commands(root, path, folder, cuda):
    """How an example is built, by each compiler, as build() takes it; a folder is several programs of the same parts."""
    name, made = os.path.basename(path), folder + "/example"
    flags = [*STRICT, "-O1", "-I", root + "/include"]
    if name.startswith("nccl_"):
        needs(os.path.exists(cuda + "/nccl.h"), "nccl.h")
    if name.startswith("nvtx_"):
        needs(os.path.isdir(cuda + "/nvtx3"), "nvtx3")
    if name.endswith(".cu"):
        yield ([nvcc_of(cuda), "-std=c++17", "-DPK_DISABLE", *flags[-2:]], path, made,
               ["-L" + cuda + "/../lib64", *(["-lnccl"] if name.startswith("nccl_") else [])])
    elif name.startswith("mpi_"):
        needs(shutil.which("mpicc"), "mpicc")
        yield ["mpicc", "-std=gnu11", *flags], path, made, LIBRARIES
    elif os.path.isdir(path):
        flags += [f'-DTRAIN_SOURCE_DIR="{path}"', *(["-isystem", cuda] if cuda else [])]
        yield from folder_commands(path, folder, flags)
    else:
        for compiler in compilers("c++" if name.endswith(".cpp") else "c"):
            yield [*compiler, *flags, *(["-isystem", cuda] if cuda else [])], path, made, [*LIBRARIES, "-ldl"]


def parts_of(path):
    """What the programs of a folder share: not those themselves (ranks.c takes mpicc), and no tests."""
    return [file for file in sorted(glob.glob(path + "/*.c"))
            if os.path.basename(file) not in PROGRAMS and not os.path.basename(file).startswith("test_")]


def folder_commands(path, folder, flags):
    """The shared parts are compiled once by each compiler."""
    kinds = [(compiler, PROGRAMS[:2]) for compiler in compilers("c")]
    kinds += [(["mpicc", "-std=gnu11"], PROGRAMS[2:])] if shutil.which("mpicc") else []
    for compiler, programs in kinds:
        objects = []
        for part in parts_of(path) if programs else []:
            objects.append(f"{folder}/{os.path.basename(part)}.o")
            yield [*compiler, *flags], part, objects[-1][:-2]
        for program in programs:
            yield [*compiler, *flags], f"{path}/{program}", folder + "/example", [*objects, *LIBRARIES, "-ldl"]


def examples(root, folder, cuda):
    here = root + "/examples"
    paths = glob.glob(here + "/*.c") + glob.glob(here + "/*.cpp") + glob.glob(here + "/*.cu") + [here + "/train"]
    for path in sorted(paths):
        try:
            for command in commands(root, path, folder, cuda):
                made = build(*command)
                if made.returncode:
                    needs(not path.endswith(".cu") or nvcc_compiles(command[0][0], folder), "an nvcc that compiles")
                    yield f"{' '.join(command[0])} {command[1]}\n{made.stderr}"
        except Missing as what:
            print(f"left out: {os.path.basename(path)} ({what} is not here)")


def main(root, nm, cuda, *libraries):
    names = exported(root, nm, libraries)
    with tempfile.TemporaryDirectory() as folder:
        found = [*twins(root, names, folder), *answers(root, folder), *examples(root, folder, cuda)]
    if len(names) < 50:
        found.append(f"only {len(names)} symbols are exported by {' '.join(libraries)}: that cannot be all")
    print("\n".join(found))
    print(f"symbols: {len(names)}, failures: {len(found)}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
