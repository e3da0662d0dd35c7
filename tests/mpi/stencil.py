"""stencil.py MPIEXEC PROGRAM - examples/mpi_stencil.c: the right temperatures, overlapped or not, and reports
that name the communication and what of it was waited for."""

import os
import re
import sys
import tempfile

import launch
import seen

RANKS, STEPS, EVERY = 4, 60, 10


def check_rank(folder, rank):
    trace = seen.read(folder, f"mpi_stencil-{rank}.json")
    with open(os.path.join(folder, f"mpi_stencil-{rank}.txt"), encoding="utf-8") as file:
        text = file.read()
    events = seen.operations_of(trace)
    kinds = seen.collections.Counter((seen.operation(e)[1], e["args"]["Process Group Name"]) for e in events)
    # Two by two: each rank has two neighbours.
    wanted = {("send", "plate messages"): 2 * STEPS, ("recv", "plate messages"): 2 * STEPS,
              ("all_reduce", "plate"): STEPS // EVERY}
    yield from seen.differences("operations", seen.collections.Counter(wanted), kinds)
    sizes = {event["args"]["bytes"] for event in events if event["ph"] == "b"}
    if sizes != {32 * 8}:
        yield f"the halos have {sizes} bytes"
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"].startswith("ProfilerStep#")]
    if len(steps) != STEPS:
        yield f"{len(steps)} steps"
    for pattern in (r"plate messages +MPI +rank \d of 4: 240 operations", r"waited for, .* hidden",
                    r"start halos +(send|recv) ", r"residual +all_reduce "):
        if not re.search(pattern, text):
            yield f"the report does not say '{pattern}':\n{text}"


def main(mpiexec, program):
    program = os.path.abspath(program)
    complaints, said = [], []
    for more in ([], ["--blocking"]):
        with tempfile.TemporaryDirectory() as folder:
            said.append(launch.run(mpiexec, RANKS, [program, "--cells", "64", "--steps", str(STEPS), *more],
                                   folder))
            for rank in range(RANKS):
                complaints += [f"rank {rank} {more}: {text}" for text in check_rank(folder, rank)]
    if said[0] != said[1] or not re.search(r"64 x 64 cells on 4 ranks, 60 steps: .* error \d\.\d+e-1\d", said[0]):
        complaints.append(f"it prints {said}")
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
