"""finalize.py ROUNDS RANKS NAME MPIEXEC PROGRAM [NAME MPIEXEC PROGRAM]... - how much longer MPI_Finalize takes with
job_path: the same job with it and without, in turns; medians and quartiles of ROUNDS, in ms, on rank 0, from a barrier
to where MPI_Finalize returns."""

import os
import statistics
import subprocess
import sys
import tempfile

ALLOW = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "UCX_LOG_LEVEL": "fatal", "PK_MPI_PATIENCE": "600"}


def took(mpiexec, ranks, program, path, *more):
    """What rank 0 prints."""
    env = dict(os.environ, **ALLOW)
    env.pop("PK_JOB_PATH", None)
    if path:
        env["PK_JOB_PATH"] = path
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([mpiexec, "-n", ranks, os.path.abspath(program), "finalize", *more], cwd=folder, env=env, check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if path and os.listdir(folder) != [path]:
            sys.exit(f"it left {os.listdir(folder)}")
    return [float(word) for word in done.stdout.split()[-4:]]


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.0f} ({low:.0f} .. {high:.0f})"


def main(rounds, ranks, *mpis):
    print(f"MPI_Finalize of {ranks} ranks on {os.cpu_count()} processors, {rounds} times in turns, ms: median (quartiles)")
    for name, mpiexec, program in zip(mpis[::3], mpis[1::3], mpis[2::3]):
        alone, asked = [], []
        for i in range(int(rounds)):
            for wanted in (False, True) if i % 2 else (True, False):
                (asked if wanted else alone).append(took(mpiexec, ranks, program, "job.json" if wanted else None))
        more = [a[0] - b[0] for a, b in zip(asked, alone)]
        cpu = [took(mpiexec, ranks, program, "job.json", "--cpu", "1") for _ in range(5)]
        print(f"{name}: alone {spread([a[0] for a in alone])}, with job_path {spread([a[0] for a in asked])}, more "
              f"{spread(more)}\n  until MPI's own begins {spread([a[1] for a in asked])}; processor time until then: rank 0 "
              f"{statistics.median(c[2] for c in cpu):.1f}, all ranks {statistics.median(c[3] for c in cpu):.0f}; load "
              f"{os.getloadavg()[0]:.0f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
