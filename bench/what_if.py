"""what_if.py PK MPIEXEC PROGRAM [RUNS [SHAPES]] - what `pk job` says that a step takes less without a fault, beside what it takes
without it: 6 ranks whose work is to sleep, with the fault and without, in alternation; medians of RUNS (3) pairs."""

import json
import os
import statistics
import subprocess
import sys
import tempfile

RANKS, STEPS = 6, 120
ALLOW = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
FAULTS = {"late=2,20": "without rank 2's lateness", "late=4,50": "without rank 4's lateness", "uneven=80": "with share divided evenly"}


def run(pk, mpi, program, shape, fault):
    """ns per step, and what is said."""
    with tempfile.TemporaryDirectory() as folder:
        words = [mpi, "-n", str(RANKS), program, shape, str(STEPS), *fault, "%r.report.json"]
        subprocess.run(words, cwd=folder, env=dict(os.environ, **ALLOW), check=True)
        job = json.loads(subprocess.run([pk, "job", "--json", folder], capture_output=True, check=True).stdout)
    causes = job["causes"]["causes"]
    return (job["efficiency"]["runtime"] / job["frontier"]["steps"], {row["text"]: row["share"] for row in job["what_if"]},
            f"rank {causes[0]['rank']} in {causes[0]['stage']}" if causes else "nobody", [v["name"] for v in job["verdicts"]])


def main(pk, mpi, program, runs="3", shapes="reduce,ring,chain,pipe,swap,grid,rows"):
    for shape in shapes.split(","):
        for fault, what in FAULTS.items():
            pairs = [(run(pk, mpi, program, shape, [fault]), run(pk, mpi, program, shape, [])) for _ in range(int(runs))]
            said = [with_it[1].get(what) for with_it, _ in pairs]
            true = statistics.median(1 - without[0] / with_it[0] for with_it, without in pairs)
            known = [share for share in said if share is not None]
            text = f"{100 * statistics.median(known):5.2f} %" if known else "nothing"
            print(f"{shape:7}{fault:10} said {text} in {len(known)} of {runs}, true {100 * true:5.2f} %; dearest {pairs[0][0][2]}, "
                  f"{pairs[0][0][3]}; load {os.getloadavg()[0]:.0f}", flush=True)


if __name__ == "__main__":
    main(*map(lambda word: os.path.realpath(word) if os.path.exists(word) else word, sys.argv[1:]))
