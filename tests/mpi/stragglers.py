"""stragglers.py MPIEXEC PROGRAM - ranks that are compared while they run (PK_MPI_STRAGGLERS): who is late is named, with the
stage, on all ranks, once in the log, and so is its end; nobody else is. Ranks that end at different moments, have no
steps, differ in what they were asked, or abort, keep nobody."""

import os
import sys
import tempfile

import launch

RANKS = 2  # where it does not matter: those of MPICH poll
ON = {"PK_MPI_START": "1", "PK_LOG": "stderr", "PK_MPI_STRAGGLERS": "10",
      "PK_FLUSH_MS": "10"}  # rounds, and so verdicts, in quick succession


def go(mpiexec, program, how, more=None, fails=False, script=None, ranks=RANKS):
    with tempfile.TemporaryDirectory() as folder:
        command = ["sh", "-c", script, program, how] if script else [program, how]
        done = launch.finish(mpiexec, ranks, command, folder, ON | (more or {}), fails=fails)
        done.files = sorted(os.listdir(folder))
        return done


def named(mpiexec, program):
    """All of a straggler's life."""
    done = go(mpiexec, program, "late", {"PK_CAPTURE": "straggler", "PK_CAPTURE_PATH": "late-%r-%s.json"}, ranks=3)
    if done.stdout not in ("late:\nlate: 1 in load\nlate:\nends\n", "late: 1 in load\nlate:\nends\n"):
        yield f"late: {done.stdout}"
    said = [line for line in done.stderr.splitlines() if "ank " in line]
    if len(said) != 2 or "Rank 1 (host " not in said[0] or " in load: " not in said[0] \
            or "rank 1 is not late any more" not in said[1]:
        yield f"late: the log has {said}"
    if len(done.files) != 1 or not done.files[0].startswith("late-1-"):
        yield f"late: there are {done.files}"


def others(mpiexec, program):
    for how, wanted in ("healthy", "late:\nends\n"), ("threads", "late:\nends\n"), ("uneven", None), ("silent", "ends\n"):
        done = go(mpiexec, program, how, ranks=3 if how == "uneven" else RANKS)
        if done.stdout not in ([wanted] if wanted else ["ends\n", "late:\nends\n"]) or "ank " in done.stderr:
            yield f"{how}: {done.stdout}{done.stderr[-1500:]}"
    done = go(mpiexec, program, "apart", ranks=8)
    if done.stdout != "late:\nends\n" or "ank " in done.stderr:
        yield f"apart: {done.stdout}{done.stderr[-1500:]}"
    done = go(mpiexec, program, "real", {"PK_MPI_STRAGGLERS": "2"})
    if "late: 1" not in done.stdout:  # the stage may be hidden by time without a processor
        yield f"real: {done.stdout}{done.stderr[-1500:]}"


def off(mpiexec, program):
    """A value that differs, or is none: said, and nothing is compared. Who aborts ends all."""
    for value, line in ("$(( 10 * (${PMIX_RANK:-$PMI_RANK} % 2) ))", "PK_MPI_STRAGGLERS differs"), ("yes", "PK_MPI_STRAGGLERS=yes is no"):
        done = go(mpiexec, program, "silent", script=f'PK_MPI_STRAGGLERS="{value}" exec "$0" "$1"')
        if done.stdout != "ends\n" or done.stderr.count(line) != RANKS:
            yield f"{value}: {done.stdout}{done.stderr[-1500:]}"
    without = '[ "${PMIX_RANK:-$PMI_RANK}" = 1 ] && unset PK_MPI_STRAGGLERS; exec "$0" "$1"'
    done = go(mpiexec, program, "silent", {"PK_MPI_PATIENCE": "1"}, script=without)
    if done.stdout != "ends\n" or done.stderr.count("not all processes of MPI_COMM_WORLD have it") != RANKS - 1:
        yield f"without: {done.stdout}{done.stderr[-1500:]}"
    done = go(mpiexec, program, "abort", fails=True)
    if "ends" in done.stdout:
        yield f"abort: {done.stdout}"


def main(mpiexec, program):
    launch.need_ranks(mpiexec)
    program = os.path.abspath(program)
    complaints = [*named(mpiexec, program), *others(mpiexec, program), *off(mpiexec, program)]
    for complaint in complaints[:20]:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
