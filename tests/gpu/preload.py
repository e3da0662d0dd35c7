"""preload.py BUILD - LD_PRELOAD of libpk_nccl into a program of PyTorch's that knows nothing of perfkit: the same result, and
each collective in the trace. One process for each GPU."""

import os
import subprocess
import sys
import tempfile

from figures import check, figure, finish, import_torch, library, of_category, skip, trace_of

BUILD = os.path.abspath(sys.argv[1])
FOLDER = os.environ.get("TMPDIR", "/tmp")
REDUCTIONS = 20


def program(rank, world, store):
    torch = import_torch()
    import torch.distributed as distributed
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=world)
    value = torch.ones(1 << 20, device="cuda") * (rank + 1)
    for _ in range(REDUCTIONS):
        distributed.all_reduce(value)
        value = value / world
    torch.cuda.synchronize()
    print(f"result {value.sum().item():.6f}", flush=True)
    distributed.destroy_process_group()


def run(world, **settings):
    """What each rank has said; None of one that failed."""
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        ranks = [subprocess.Popen([sys.executable, "-B", sys.argv[0], BUILD, str(rank), str(world), store], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, **{key: text.replace("%r", str(rank)) for key, text in settings.items()}})
                 for rank in range(world)]
        said = [rank.communicate()[0] for rank in ranks]
    for rank, text in zip(ranks, said):
        if rank.returncode:
            print(text[-2000:])
    return [text if rank.returncode == 0 else None for rank, text in zip(ranks, said)]


def result(text):
    return next((line for line in (text or "").splitlines() if line.startswith("result ")), "no result")


def main():
    torch, wrapper = import_torch(), library(BUILD, "libpk_nccl.so.1")
    if not torch.distributed.is_nccl_available():
        skip(f"torch {torch.__version__} has no NCCL")
    if not wrapper:
        skip(f"{BUILD} has no libpk_nccl.so.1")
    world = min(torch.cuda.device_count(), 8)
    alone = [result(text) for text in run(world)]
    if "no result" in alone:
        skip("torch.distributed does not run without perfkit either")
    trace = os.path.join(FOLDER, "preload-%r.json")
    said = run(world, LD_PRELOAD=wrapper, PK_NCCL_START="1", PK_TRACE_PATH=trace, PK_BACKENDS="cuda")
    check([result(text) for text in said] == alone, f"{[result(text) for text in said]} with perfkit, {alone} without")
    found, timed = [], 0
    for rank in range(world):
        path = trace.replace("%r", str(rank))
        if not check(os.path.exists(path), f"rank {rank} has left no trace"):
            continue
        events = [event for event in of_category(trace_of(path)[0], "collective")
                  if event["args"].get("Collective name") == "all_reduce"]
        found.append(len(events))
        timed += sum(event["args"].get("timed by") == "stream" for event in events)
    figure("preload.operations", f"{' + '.join(map(str, found))} all_reduce of {REDUCTIONS} on each of {world}, "
           f"{timed} timed on their stream")
    # PyTorch may have made one of its own, for a barrier.
    check(len(found) == world and min(found) >= REDUCTIONS and timed == sum(found), f"{found} of {REDUCTIONS}, {timed} timed")
    figure("preload.result", f"{alone[0]} without and {result(said[0])} with it")
    finish()


if len(sys.argv) > 2:
    program(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
else:
    main()
