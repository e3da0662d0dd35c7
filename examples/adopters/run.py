"""run.py - other people's programs under perfkit: fetches one, adds the lines of NAME.patch, builds and runs it.

    python3 run.py NAME|all INCLUDE... BUILD

INCLUDE: the folders of pk/pk.h; BUILD: a build of perfkit. Exit status 77, with the reason, where the source cannot be
fetched. The patches have nothing but perfkit's own lines, at line numbers of one version. hpcc comes from Debian; the
others from GitHub, or from PK_ADOPTERS_GIT/OWNER/NAME where that variable is set.
"""

import array
import concurrent.futures
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Skip(Exception):
    pass


def call(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:300]}: status {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def fetch_git(name, commit):
    base = os.environ.get("PK_ADOPTERS_GIT", "https://github.com")
    try:
        call("git", "init", "-q", "source", timeout=10)
        call("git", "-C", "source", "fetch", "-q", "--depth", "1", f"{base}/{name}", commit, timeout=60)
        call("git", "-C", "source", "checkout", "-q", "FETCH_HEAD", timeout=20)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as why:
        raise Skip(f"{name} cannot be fetched: {str(why)[-300:]}")


def list_sources():
    """Of where the machine has Debian's packages from: its own lists may name no sources."""
    form, lines = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(SIGNED_BY)", set()
    for line in call("apt-get", "indextargets", "--format", form, "Created-By: Packages").splitlines():
        origin, where, release, key = line.split("|")
        if origin == "Debian" and "-" not in release:
            lines.add(f"deb-src {f'[signed-by={key}] ' if key.startswith('/') else ''}{where} {release} main\n")
    return "".join(lines)


def fetch_debian(name, archive):
    """The upstream archive alone."""
    if not shutil.which("apt-get"):
        raise Skip("this is no Debian")
    os.makedirs("lists/partial")
    with open("sources.list", "w") as file:
        file.write(list_sources())
    apt = ["apt-get", "-o", f"Dir::Etc::sourcelist={os.getcwd()}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
           "-o", f"Dir::State::lists={os.getcwd()}/lists", "-o", "APT::Sandbox::User=root"]
    try:
        call(*apt, "update", timeout=60)
        call(*apt, "source", "--download-only", "--tar-only", name, timeout=60)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as why:
        raise Skip(f"Debian's source of {name} cannot be fetched: {str(why)[-300:]}")
    if not os.path.exists(archive):
        raise Skip(f"Debian has another version of {name} than {archive}")
    os.mkdir("source")
    call("tar", "xf", archive, "-C", "source", "--strip-components=1")


def patch(name):
    call("patch", "-p0", "-d", "source", "-i", os.path.join(HERE, name + ".patch"))


def show(build, words, *command):
    """What perfkit says, which has these words."""
    said = call(os.path.join(build, "tools/pk"), *command)
    print(said)
    missing = [word for word in words if word not in said]
    if missing:
        raise RuntimeError(f"pk {command[0]} says nothing of: {missing}")


# ---- llm.c: GPT-2's training in C, with a model and texts made here ----

def write_ints(path, ints, rest=()):
    with open(path, "wb") as file:
        array.array("i", ints + [0] * (256 - len(ints))).tofile(file)
        for part in rest:
            part.tofile(file)


def make_model(channels=64, layers=2, heads=4, length=64, words=512):
    c, draw = channels, random.Random(1)
    sizes = [words * c, length * c, layers * c, layers * c, layers * 3 * c * c, layers * 3 * c, layers * c * c, layers * c,
             layers * c, layers * c, layers * 4 * c * c, layers * 4 * c, layers * 4 * c * c, layers * c, c, c]
    weights = array.array("f", (draw.gauss(0, 0.02) for _ in range(sum(sizes))))
    write_ints("source/gpt2_124M.bin", [20240326, 3, length, words, layers, heads, c, words], [weights])
    text = array.array("H", (min(int(draw.expovariate(0.02)), words - 1) for _ in range(20000)))
    os.makedirs("source/dev/data/tinyshakespeare")
    for part in ("train", "val"):
        write_ints(f"source/dev/data/tinyshakespeare/tiny_shakespeare_{part}.bin", [20240520, 1, len(text)], [text])
    tokens = array.array("B", [1, ord("x")] * words)
    write_ints("source/gpt2_tokenizer.bin", [20240328, 2, words, 0], [tokens])


def llm_c(includes, build):
    fetch_git("karpathy/llm.c", "f1e2ace651495b74ae22d45d1723443fd00ecd3a")
    patch("llm.c")
    make_model()
    call("gcc", "-O3", "-Ofast", "-fno-finite-math-only", "-w", *includes, "train_gpt2.c", "-o", "train_gpt2",
         os.path.join(build, "lib/libpk.a"), "-lm", "-lpthread", "-ldl", "-lz", cwd="source")
    print(call("./train_gpt2", cwd="source", env=os.environ | {"PK_REPORT_PATH": "report.json"})[-200:])
    show(build, ["256 items per step", "matmul backward", "attention", "with generation", "with validation"], "report",
         "source/report.json")


# ---- minbpe: training of a tokenizer, in Python ----

DRIVER = """
import sys, types, pk
sys.modules.update(regex=types.ModuleType("regex"), tiktoken=types.ModuleType("tiktoken"))  # of its other tokenizers
from minbpe import BasicTokenizer
with pk.session():
    BasicTokenizer().train(open("tests/taylorswift.txt", encoding="utf-8").read()[:60000], 256 + 150)
"""


def minbpe(includes, build):
    fetch_git("karpathy/minbpe", "1acefe89412b20245db5a22d2a02001e547dc602")
    patch("minbpe")
    call(sys.executable, "-c", DRIVER, cwd="source", env=os.environ | {
        "PYTHONPATH": os.path.join(ROOT, "bindings/python"), "PK_REPORT_PATH": "report.json",
        "PK_LIBRARY": os.path.join(build, "lib/libpk.so")})
    show(build, ["STEPS: 150", "count pairs", "merge", "choose"], "report", "source/report.json")


# ---- hpcc: the HPC Challenge, on ranks of MPI ----

INPUT = """made by run.py

HPL.out
8
1
400 Ns
1
40 NBs
0
1
1 Ps
{ranks} Qs
16.0
1
2
1
4
1
2
1
1
1
1
1
0
2
64
0
0
1
8
#
0
1200
0
40
"""


def hpcc(includes, build):
    ranks, made = 2, os.path.join(build, "lib/comm/mpi")
    if not shutil.which("mpicc.openmpi") or not shutil.which("mpiexec.openmpi") or not glob.glob(made + "/*openmpi.so"):
        raise Skip("Open MPI is not installed")
    fetch_debian("hpcc", "hpcc_1.5.0.orig.tar.gz")
    patch("hpcc")
    flags = call("mpicc.openmpi", "-showme:compile").split()
    blas = glob.glob("/usr/lib/*/libblas.so*") + glob.glob("/usr/lib/*/libopenblas.so*")
    if not blas:
        raise Skip("there is no BLAS")
    units = [[path] for path in glob.glob("source/[A-Zs]*/*.c")]
    units += [glob.glob(folder + "/*.c") for folder in glob.glob("source/hpl/[st]*/*")]  # a folder at once, to be quick
    os.mkdir("objects")

    def compile_one(numbered):
        number, paths = numbered
        made = f"objects/{number}.o"
        call("gcc", "-O1", "-w", "-c", "-xc", "-", "-o", made, "-Isource/include", "-Isource/hpl/include", "-DAdd__",
             "-DF77_INTEGER=int", "-DStringSunStyle", "-DHPL_NO_MPI_DATATYPE", *flags, *includes,
             input="".join(f'#include "{os.path.abspath(path)}"\n' for path in paths))
        return made

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, enumerate(unit for unit in units if unit)))
    call("mpicc.openmpi", *objects, "-o", "hpcc", f"-L{made}", f"-Wl,-rpath,{made}", "-lpk_mpi-openmpi",
         os.path.join(build, "lib/libpk.a"), "-Wl,--export-dynamic", blas[0], "-lm", "-lpthread", "-ldl", "-lz")
    with open("hpccinf.txt", "w") as file:
        file.write(INPUT.format(ranks=ranks))
    call("mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "./hpcc", timeout=120,
         env=os.environ | {"PK_REPORT_PATH": "job/%r.json"})
    with open("hpccoutf.txt") as file:
        if "Success=1" not in file.read():
            raise RuntimeError("hpcc has no success")
    show(build, ["MPIRandomAccess", "MPI_Testany", "rank 0 of 2"], "report", "job/0.json")
    show(build, ["2 of 2 ranks", "MPI_Testany"], "job", "job")


PROGRAMS = {"llm.c": llm_c, "minbpe": minbpe, "hpcc": hpcc}


def main(name, *places):
    includes, build = ["-I" + os.path.abspath(place) for place in places[:-1]], os.path.abspath(places[-1])
    skipped = 0
    for one in PROGRAMS if name == "all" else [name]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            print(f"== {one}", flush=True)
            try:
                os.mkdir("job")
                PROGRAMS[one](includes, build)
            except Skip as why:
                print(f"skipped: {why}")
                skipped += 1
            finally:
                os.chdir("/")
    return 77 if skipped else 0


sys.exit(main(*sys.argv[1:]))
