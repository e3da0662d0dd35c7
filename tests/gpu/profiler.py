"""profiler.py BUILD - torch.profiler before, during and after a window in which perfkit has CUPTI, and the other way round:
neither takes the other's kernels away for good, and each places its own in time. Each order in a process of its own."""

import os
import statistics
import subprocess
import sys
import time

from figures import check, figure, finish, import_torch, library, of_category, skip, trace_of

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.environ.get("TMPDIR", "/tmp")
PRODUCTS = 20
ROUNDS = 3 if os.environ.get("PK_GPU_MOCK") else 50


def work(torch):
    a = torch.randn(512, 512, device="cuda")
    for _ in range(PRODUCTS):
        a = a @ a
        a = a / a.norm()
    torch.cuda.synchronize()


def placed(kernels, others):
    """How many lie where the host's events are, give or take a second: another clock's would not."""
    if not others:
        return 0
    first = min(event["ts"] for event in others) - 1e6
    last = max(event["ts"] + event.get("dur", 0) for event in others) + 1e6
    return sum(first <= event["ts"] and event["ts"] + event["dur"] <= last for event in kernels)


def told(kernels, others):
    return f"{len(kernels)} kernels, {placed(kernels, others)} of them when the program ran"


def theirs(torch, name):
    """Kernels that torch.profiler sees of one round of work, and the host's events beside them."""
    path = os.path.join(FOLDER, f"torch-{os.getpid()}-{name}.json")
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        work(torch)
    profile.export_chrome_trace(path)
    events, _ = trace_of(path)
    return of_category(events, "kernel"), of_category(events, "cpu_op")


def ours(torch, pk, name, within=None):
    """The same by perfkit, its reason if CUPTI is off, and what `within` has answered amid it."""
    path = os.path.join(FOLDER, f"ours-{os.getpid()}-{name}.json")
    answer, region = None, pk.region("profiler.work")
    with pk.session(trace_path=path, backends="cuda,cupti"):
        with region:
            work(torch)
        live, _, reason = pk.backend("cupti")
        if within:
            answer = within()
            with region:
                work(torch)
    events, _ = trace_of(path)
    return of_category(events, "kernel"), of_category(events, "cpu_op"), "" if live else reason, answer


def costs(torch, pk):
    """A round of work without, with perfkit, and with torch.profiler: medians; each session has a first round for itself."""
    def timed():
        begun = time.monotonic()
        work(torch)
        return (time.monotonic() - begun) * 1e3

    def median():
        work(torch)
        return statistics.median(timed() for _ in range(ROUNDS))
    alone = median()
    with pk.session(backends="cupti", trace_path=os.path.join(FOLDER, f"ours-{os.getpid()}-cost.json")):
        ours_ms = median()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities):
        theirs_ms = median()
    figure("profiler.cost", f"{alone:.3f} ms alone, {ours_ms / alone:.3f} x with perfkit, {theirs_ms / alone:.3f} x with torch.profiler")


def well_placed(kernels, others, what):
    check(placed(kernels, others) == len(kernels), f"{what}: {told(kernels, others)}")


def torch_first(torch, pk):
    before = theirs(torch, "before")
    figure("profiler.before", told(*before))
    check(before[0], "torch.profiler sees no kernel even without perfkit: no control")
    kernels, others, reason, during = ours(torch, pk, "between", lambda: theirs(torch, "during"))
    figure("profiler.ours", f"{told(kernels, others)}{'; off: ' if reason else ''}{reason}")
    figure("profiler.during", told(*during))
    check(kernels or reason, "perfkit sees no kernel, and does not say why")
    well_placed(kernels, others, "perfkit's")
    well_placed(*during, "torch.profiler's amid a session")
    after = theirs(torch, "after")
    figure("profiler.after", told(*after))
    check(len(after[0]) == len(before[0]), f"{len(after[0])} kernels after a session, {len(before[0])} before it")
    well_placed(*after, "torch.profiler's after a session")


def ours_first(torch, pk):
    kernels, others, reason, _ = ours(torch, pk, "first")
    figure("profiler.ours_first", f"{told(kernels, others)}{'; off: ' if reason else ''}{reason}")
    check(kernels or reason, "perfkit sees no kernel, and does not say why")
    well_placed(kernels, others, "perfkit's")
    after = theirs(torch, "later")
    figure("profiler.after_ours", told(*after))
    check(after[0], "torch.profiler sees no kernel after a session")
    well_placed(*after, "torch.profiler's after a session")


def main():
    torch, path = import_torch(), library(BUILD, "libpk.so.1")
    if not path:
        skip(f"{BUILD} has no libpk.so.1")
    if len(sys.argv) > 2:
        os.environ["PK_LIBRARY"] = path
        sys.path.insert(0, os.path.join(HERE, "..", "..", "bindings", "python"))
        import pk
        {"torch": torch_first, "ours": ours_first, "costs": costs}[sys.argv[2]](torch, pk)
        finish()
    for which in ("torch", "ours", "costs"):
        status = subprocess.run([sys.executable, "-B", sys.argv[0], BUILD, which], check=False).returncode
        check(status == 0, f"{which} first: ended with {status}")
    finish()


main()
