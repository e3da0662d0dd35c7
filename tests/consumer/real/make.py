"""make.py - the traces of real programs: the demo's trainer, one that is killed, ranks of MPI, GPUs and NCCL by their
doubles. They are made once for all viewers, in the build's folder, and anew when a program has changed."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import time

RANKS = 4
TRAINER = ["--quiet", "--dim", "32", "--heads", "2", "--layers", "2", "--seq", "32", "--batch", "4"]
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


class Wrong(Exception):
    """A trace could not be made."""


def run(command, folder, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith("PK_")} | MPI
    done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120, check=False, **more)
    if done.returncode:
        raise Wrong(f"{command[0]}: exit status {done.returncode}: {done.stdout[-1000:]}")


def demo(tools, folder):
    for name in ("demo.json", "demo.json.gz"):
        run([tools["train"], *TRAINER, "--steps", "30", "--checkpoint", "state", "--checkpoint-every", "10",
             "--trace", name], folder)
    return ["demo.json", "demo.json.gz"]


def kill_one(tools, folder, trace):
    """Is what it left whole? The kernel cuts a write that a SIGKILL comes amid."""
    victim = subprocess.Popen([tools["train"], *TRAINER, "--steps", "1000000", "--trace", trace], cwd=folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not (os.path.exists(trace) and os.path.getsize(trace) > 100000) and time.monotonic() < end:
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    with open(trace, "rb") as file:
        return file.read().endswith(b"]}\n")


def killed(tools, folder):
    """As it was left, and recovered."""
    trace, left = os.path.join(folder, "killed.json"), os.path.join(folder, "left.json")
    if not any(kill_one(tools, folder, trace) for _ in range(5)):
        raise RuntimeError("five killed runs in a row left half a trace")
    shutil.copy(trace, left)
    run([tools["pk"], "recover", "killed.json.arena", "-o", "recovered.json"], folder)
    os.remove(os.path.join(folder, "killed.json.arena"))
    return ["left.json", "recovered.json"]


def devices(tools, folder):
    run([tools["cupti"], tools["cupti_mock"], "gpu.json"], folder)
    run([tools["streams"], tools["cuda_mock"], "streams.json", tools["shim"]], folder)
    return ["gpu.json", "streams.json"]


def ranks(tools, folder):
    try:
        run([tools["mpiexec"], "-n", "2", "true"], folder)
    except Wrong as reason:
        print(f"without MPI, which starts no processes here: {reason}")
        return []
    run([tools["mpiexec"], "-n", str(RANKS), tools["stencil"], "--cells", "64", "--steps", "60"], folder)
    names = [f"mpi_stencil-{rank}.json" for rank in range(RANKS)]
    run([tools["pk"], "merge", *names, "-o", "merged.json"], folder)
    return [*names, "merged.json"]


# Which programs each needs.
KINDS = {demo: ("train",), killed: ("train", "pk"), devices: ("cupti", "streams"), ranks: ("mpiexec", "stencil", "pk")}


def age(tools):
    return {name: os.path.getmtime(path) for name, path in sorted(tools.items())
            if os.path.exists(path) and not os.path.isdir(path)}


def make(tools, folder):
    """Paths of all, made anew if they have to be."""
    stamp = os.path.join(folder, "made-by")
    now = json.dumps(age(tools) | {"make.py": os.path.getmtime(__file__)})
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            then, names = json.load(file)
        if then == now:
            return [os.path.join(folder, name) for name in names]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    names = [name for kind, needs in KINDS.items() if all(need in tools for need in needs)
             for name in kind(tools, folder)]
    with open(stamp, "w", encoding="utf-8") as file:
        json.dump([now, names], file)
    return [os.path.join(folder, name) for name in names]


def text_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return file.read()


def report_of(path, pk):
    """By `pk report`, where the trace has none of its own."""
    done = subprocess.run([pk, "report", "--json", path], check=False, capture_output=True, text=True)
    if done.returncode:
        raise Wrong(f"pk report: {done.stderr}")
    return json.loads(done.stdout)
