"""How this folder starts ranks: Open MPI and MPICH, as root and not, on fewer processors than ranks."""

import os
import re
import subprocess
import sys

# Open MPI warns of what containers forbid; MPICH takes no notice. Ranks that wait let others have the processor: other
# tests run beside them.
ALLOW = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
         "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "OMPI_MCA_mpi_yield_when_idle": "1", "UCX_LOG_LEVEL": "info"}

# UCX, below MPICH, writes to stdout what it has to say: with the level above in every run, and without it where
# something is missing (/sys). That is not what the program prints.
UCX = re.compile(r"^\[[\d.]+\] \[[^\]\n]*\] .*\bUCX +[A-Z]+ .*\n", re.MULTILINE)


def finish(mpiexec, ranks, command, folder, settings=None, fails=False):
    """Runs the ranks; what became of them. Ends the test if they fail, or if they do not although they should."""
    env = dict(os.environ, **ALLOW)
    for name in [name for name in env if name.startswith("PK_")]:
        del env[name]
    words = ["env"] + [f"{name}={value}" for name, value in (settings or {}).items()]
    done = subprocess.run([mpiexec, "-n", str(ranks), *words, *command], cwd=folder, env=env, timeout=250,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        print("skipped: this MPI does not support MPI_THREAD_MULTIPLE")
        sys.exit(77)
    if (done.returncode != 0) != fails:
        need_ranks(mpiexec)
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    done.stdout = UCX.sub("", done.stdout)
    return done


def run(*args, **options):
    """What the ranks print."""
    return finish(*args, **options).stdout


def need_ranks(mpiexec):
    """Ends with 77 where this machine's MPI cannot start processes at all. Asked once something has failed: it takes
    half a second."""
    env = dict(os.environ, **ALLOW)
    done = subprocess.run([mpiexec, "-n", "2", "true"], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=60)
    if done.returncode != 0:
        print(f"skipped: {mpiexec} starts no processes here: {done.stderr.strip()[-500:]}")
        sys.exit(77)
