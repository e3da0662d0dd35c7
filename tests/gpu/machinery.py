"""machinery.py ROOT - what `./dev gpu-test` is made of (run.sh, results.py), with programs that are scripts of this test's:
which tests it runs, in which order, within which time, and what is left when it is ended amid them."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = os.path.abspath(sys.argv[1])
RUN = os.path.join(ROOT, "tests", "gpu", "run.sh")
complaints = []


def check(so, what):
    if not so:
        complaints.append(what)


def program(build, name, text):
    """What gpu-tests does when it is given that name."""
    path = os.path.join(build, "tests", "gpu", f"{name}.sh")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)


PROBE = 'if [ "$1" = --probe ]; then printf "device\\t1 x Script\\ncuda\\t13.0\\n"; exit; fi\n'
FIGURE = 'printf "%s\\t%s\\n" {0}.figure "$(date +%s)" >>"$PK_GPU_FIGURES"; echo "told of {0}"\n'


def build_in(folder, name="build"):
    build = os.path.join(folder, name)
    os.makedirs(os.path.join(build, "tests", "gpu"))
    program(build, "gpu-tests", 'name=$1; shift\nif [ -e "${0%/*}/$name.sh" ]; then exec "${0%/*}/$name.sh" "$@"; fi\n'
            'echo "skipped: no test is called $name"; exit 77')
    os.rename(os.path.join(build, "tests", "gpu", "gpu-tests.sh"), os.path.join(build, "tests", "gpu", "gpu-tests"))
    for name in NAMES:
        program(build, name, (PROBE if name == "status" else "") + FIGURE.format(name) + 'echo trace >"$TMPDIR/trace.json"')
    return build


def run(build, *arguments, **more):
    environment = {**os.environ, "PK_CUPTI_LIBRARY": "none", "PK_NCCL_LIBRARY": "none", "PK_CUBLAS_LIBRARY": "none", **more}
    environment.pop("PK_GPU_FIGURES", None) if "PK_GPU_FIGURES" not in more else None
    return subprocess.run([RUN, *arguments[:-1], build, *arguments[-1]], capture_output=True, text=True, env=environment,
                          check=False)


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def outcomes(path):
    """The order in which tests were begun, and what became of each."""
    told = [(key[5:], text) for key, text in lines(path) if key.startswith("test.")]
    return [name for name, text in told if text == "begun"], {name: text for name, text in told}


def check_order_and_subset(folder):
    build = build_in(folder)
    figures = os.path.join(build, "gpu-figures.tsv")
    done = run(build, "--seconds", "600", PROGRAMS)
    order, became = outcomes(figures)
    check(done.returncode == 0 and order == PROGRAMS, f"all: {done.returncode}, {order}: {done.stdout}{done.stderr}")
    check(all(text.startswith("well") for text in became.values()), f"all: {became}")
    check(not os.path.exists(os.path.join(build, "gpu-traces")), "traces of tests that were well are kept")
    elsewhere = os.path.join(folder, "deep", "er", "mine.tsv")
    done = run(build, ["pairs", "status"], PK_GPU_FIGURES=elsewhere)
    order, _ = outcomes(elsewhere)
    check(done.returncode == 0 and order == ["status", "pairs"], f"a subset, in the order of the list: {order}")
    head = [key for key, _ in lines(elsewhere)[:3]]
    check(head == ["run", "device", "cuda"], f"the head of the figures: {head}")
    check("told of pairs" in open(os.path.join(folder, "deep", "er", "gpu-log.txt"), encoding="utf-8").read(), "no log beside it")
    run(build, ["capture"], PK_GPU_FIGURES=elsewhere)
    check([key for key, _ in lines(elsewhere)].count("run") == 2, "a second run does not append")
    done = run(build, ["nonsense"])
    check(done.returncode == 2 and "nonsense" in done.stderr, f"an unknown test: {done.returncode} {done.stderr}")


def check_list():
    check(all(words[1].isdigit() and words[2] == "s" and len(words) > 6 for words in LIST), f"the list: {LIST}")


def check_failures(folder):
    build = build_in(folder)
    program(build, "pairs", FIGURE.format("pairs") + 'echo kept >"$TMPDIR/pairs.json"; head -c 400000 /dev/zero '
            '>"$TMPDIR/large.json"; exit 1')
    program(build, "capture", 'echo "skipped: for a reason"; exit 77')
    os.unlink(os.path.join(build, "tests", "gpu", "kernels.sh"))
    done = run(build, ["status", "pairs", "capture", "kernels", "holder"])
    _, became = outcomes(os.path.join(build, "gpu-figures.tsv"))
    check(done.returncode == 1, f"one that fails: {done.returncode}")
    check(became["pairs"].startswith("failed (1)") and became["holder"].startswith("well"), f"one that fails: {became}")
    check(became["capture"] == "skipped: for a reason" and "kernels" in became["kernels"], f"skipped: {became}")
    with tarfile.open(os.path.join(build, "gpu-traces.tar.gz")) as archive:
        kept = sorted(name for name in archive.getnames() if name.endswith(".json"))
    check(kept == ["gpu-traces/pairs/large.json", "gpu-traces/pairs/pairs.json"], f"traces of one that failed: {kept}")
    check(not os.path.exists(os.path.join(build, "gpu-traces")), "traces beside their archive")


def check_budget(folder):
    build = build_in(folder)
    program(build, "status", PROBE + FIGURE.format("status") + "exec sleep 600")
    begun = time.monotonic()
    done = run(build, "--seconds", "7", ["status", "pairs"])
    took = time.monotonic() - begun
    figures = os.path.join(build, "gpu-figures.tsv")
    _, became = outcomes(figures)
    check(done.returncode == 1 and "not done in" in became["status"], f"one that takes too long: {done.returncode} {became}")
    check(became["pairs"].startswith("not run: "), f"what there was no time for: {became}")
    check("status.figure" in dict(lines(figures)), "what it had told before it was ended is gone")
    check(took < 300, f"7 s took {took:.0f}")


def check_killed(folder):
    build = build_in(folder)
    program(build, "pairs", FIGURE.format("pairs") + 'echo amid >"$TMPDIR/amid.json"; echo $$ >"$TMPDIR/pid"; exec sleep 600')
    figures = os.path.join(build, "gpu-figures.tsv")
    environment = {**os.environ, "PK_GPU_FIGURES": figures}
    child = subprocess.Popen([RUN, build, "status", "pairs"], stdout=subprocess.DEVNULL, env=environment, start_new_session=True)
    pid = os.path.join(build, "gpu-traces", "pairs", "pid")
    while child.poll() is None and not (os.path.exists(pid) and os.path.getsize(pid)):
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGKILL)
    with open(pid, encoding="utf-8") as file:
        os.kill(int(file.read()), signal.SIGKILL)
    child.wait()
    keys = dict(lines(figures))
    check("status.figure" in keys and "pairs.figure" in keys, f"figures after a kill: {keys}")
    check(keys["test.pairs"] == "begun" and keys["test.status"].startswith("well"), f"outcomes after a kill: {keys}")
    check(os.path.exists(os.path.join(build, "gpu-traces", "pairs", "amid.json")), "traces after a kill")


def check_no_gpu(folder):
    build = build_in(folder)
    program(build, "status", 'echo "skipped: no GPU: of this test"; exit 77')
    done = run(build, [])
    check(done.returncode == 77 and "no GPU: of this test" in done.stdout, f"no GPU: {done.returncode} {done.stdout}")
    check(not os.path.exists(os.path.join(build, "gpu-figures.tsv")), "figures without a GPU")


def check_dev(folder):
    """What was built elsewhere of the same sources is taken as it is; figures of a mock are no device's."""
    for name in ("lib", "include", "examples", "docs"):
        os.mkdir(os.path.join(folder, name))
    for name in ("meson.build", "meson_options.txt", "examples/x.cu", "lib/x.c"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("<!--state--><!--end-->\n")
    shutil.copy(os.path.join(ROOT, "dev"), folder)
    shutil.copytree(os.path.join(ROOT, "tests", "gpu"), os.path.join(folder, "tests", "gpu"))
    build = build_in(folder, os.path.join("build", "gpu"))
    # Nothing to build with.
    tools = os.path.join(folder, "bin")
    os.mkdir(tools)
    for name in TOOLS:  # python3 in PATH may be a script, which has no use for these tools
        os.symlink(sys.executable if name == "python3" else shutil.which(name), os.path.join(tools, name))
    bare = {"PATH": tools, "HOME": folder, "PK_CUPTI_LIBRARY": "none", "PK_NCCL_LIBRARY": "none",
            "PK_CUBLAS_LIBRARY": "none"}

    def dev(*arguments, **more):
        return subprocess.run([os.path.join(folder, "dev"), *arguments], capture_output=True, text=True, env={**bare, **more},
                              check=False)
    done = dev("gpu-test", "--seconds", "60", "pairs", PK_CUDA_LIBRARY="none")
    check(done.returncode == 0 and "of other sources" in done.stdout, f"of other sources: {done.stdout}{done.stderr}")
    sums = subprocess.run(["bash", "-c", 'eval "$(sed -n "/^gpu_sources/,/^}/p" dev)"; gpu_sources'], cwd=folder,
                          capture_output=True, text=True, check=True).stdout
    with open(os.path.join(build, "sources"), "w", encoding="utf-8") as file:
        file.write(sums)
    figures = os.path.join(folder, "mine.tsv")
    done = dev("gpu-test", "--seconds", "60", "pairs", PK_CUDA_LIBRARY="none", PK_GPU_FIGURES=figures)
    check(done.returncode == 0 and "told of pairs" in done.stdout and "sources" not in done.stdout,
          f"of the same sources: {done.stdout}{done.stderr}")
    done = dev("gpu-results", figures)
    with open(os.path.join(folder, "docs", "gpu-results.md"), encoding="utf-8") as file:
        head = file.read()
    check(done.returncode == 0 and "Seen on 1 x Script" in head and len(os.listdir(
        os.path.join(folder, "tests", "gpu", "figures"))) == 1, f"gpu-results: {done.stdout}{done.stderr}{head}")
    with open(figures, "a", encoding="utf-8") as file:
        file.write("device\t2 x Mock of a GPU 0\n")
    check(dev("gpu-results", figures).returncode != 0, "a mock's figures are taken for a device's")
    shutil.rmtree(build)
    done = dev("gpu-test", PK_CUDA_LIBRARY="none")
    check(done.returncode == 77 and "gpu-build elsewhere" in done.stdout, f"nothing: {done.returncode} {done.stdout}")
    done = dev("gpu-test", "nonsense", PK_CUDA_LIBRARY="none")
    check(done.returncode not in (0, 77) and "nonsense" in done.stderr, f"an unknown test: {done.returncode} {done.stderr}")


TOOLS = ["bash", "sh", "env", "cat", "cut", "cp", "mkdir", "rm", "rmdir", "find", "sort", "xargs", "cksum", "sed", "tr", "tail",
         "head", "date", "tee", "touch", "timeout", "realpath", "dirname", "basename", "gzip", "grep", "tar", "python3"]
LIST = [line.split() for line in subprocess.run([RUN, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()]
NAMES = [words[0] for words in LIST]
# Those of Python are not scripts of ours.
PROGRAMS = [name for name in NAMES if not os.path.exists(os.path.join(ROOT, "tests", "gpu", f"{name}.py"))]
check(NAMES[0] == "status" and NAMES[-1] == "clocks", f"the order: {NAMES}")
check_list()
for test in (check_order_and_subset, check_failures, check_budget, check_killed, check_no_gpu, check_dev):
    with tempfile.TemporaryDirectory() as temporary:
        test(temporary)
print("\n".join(complaints))
sys.exit(1 if complaints else 0)
