"""job.py MPIEXEC PROGRAM PK [PLAIN LIBRARY...] - one report of the job, by rank 0, in MPI_Finalize: of sessions that
ended before it and that end after it, the same as `pk job` makes of the ranks' files; without a rank that is late, was
not asked, has no session, no library (of PLAIN, which is not linked with it), or has been killed, and what is left
then. Where all have to come, ranks have the patience of a day; and whoever is to wait for nobody has it, too."""

import json
import os
import subprocess
import sys
import tempfile

import launch

RANKS = 3
MORE = 5  # of whom some pass on what others have
OWN = ", pid "  # in a rank's alone
SENT = "libpk_mpi asked MPI"
SOON = {"PK_MPI_PATIENCE": "1"}
FOREVER = {"PK_MPI_PATIENCE": "86400"}
REPORT = "mpi-job-"  # the program: the first word of a job's report, and in a rank's


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def files_in(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def parts(ranks):
    return [f"job.json.ranks/0/{rank}.rank.json" for rank in ranks]


def told(job):
    """What does not depend on which file a rank was in, nor on when it ended."""
    job["job"].pop("files")
    for rank in job["ranks"]:
        rank.pop("file")
    return job


def reduced(mpiexec, ranks, command, when):
    """All ranks come."""
    settings = {"PK_JOB_PATH": "job.json", "PK_REPORT_PATH": "-", **FOREVER}
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, ranks, [*command, when], folder, settings)
        if files_in(folder) != ["job.json"]:
            yield f"{when}: it leaves {files_in(folder)}"
            return
        job = read(folder, "job.json")["job"]
        if (job["world_size"], job["ranks"], job["missing"], job["cut_off"]) != (ranks, ranks, [], []):
            yield f"{when}: {job}"
        if SENT not in done.stdout:
            yield f"{when}: nothing was sent"
        if done.stderr.count(REPORT) != 1 or f"{ranks} of {ranks} ranks" not in done.stderr:
            yield f"{when}: on stderr there are {done.stderr.count(REPORT)} reports: {done.stderr[-1500:]}"


def after_for_stderr(mpiexec, command):
    """Sessions end after MPI_Finalize, and the job's report has taken the place of theirs by then."""
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, RANKS, [*command, "after"], folder, {"PK_REPORT_PATH": "-", **FOREVER})
        if f"{RANKS} of {RANKS} ranks" not in done.stderr or OWN in done.stderr or done.stderr.count(REPORT) != 1:
            yield f"after, for stderr alone: {done.stderr[-1500:]}"


def same_as_files(mpiexec, command, pk):
    """The same bits as `pk job` of the ranks' own files."""
    settings = {"PK_JOB_PATH": "job.json", "PK_REPORT_PATH": "own/%r.rank.json", **FOREVER}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "own"))
        launch.finish(mpiexec, RANKS, [*command, "before"], folder, settings)
        ours = told(read(folder, "job.json"))
        done = subprocess.run([pk, "job", "--json", "own"], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or told(json.loads(done.stdout)) != ours:
            yield f"pk job says another thing of the ranks' files: {done.stdout[-500:]}{done.stderr}"


def late(mpiexec, command, pk):
    """One is not there: the report names it, and its part is in a file with the others'. Then it is the first, which
    writes the report and comes when the others have given up: it has its own part."""
    settings = {"PK_JOB_PATH": "job.json", **SOON}
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "job.json.ranks/0"))
        launch.finish(mpiexec, RANKS, [*command, "before", "0", *parts([1])], folder, settings)
        if files_in(folder) != ["job.json", *parts(range(RANKS))] or 0 in read(folder, "job.json")["job"]["missing"]:
            yield f"the first is late: {files_in(folder)}"
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "job.json.ranks/0"))
        launch.finish(mpiexec, RANKS, [*command, "before", "2", "job.json"], folder, settings)
        if 2 not in read(folder, "job.json")["job"]["missing"]:
            yield f"late: missing are {read(folder, 'job.json')['job']['missing']}"
        if files_in(folder) != ["job.json", *parts(range(RANKS))]:
            yield f"late: it leaves {files_in(folder)}"
        done = subprocess.run([pk, "job", "--json", "job.json.ranks"], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or json.loads(done.stdout)["job"]["ranks"] != RANKS:
            yield f"late: pk job of what it leaves: {done.stdout[-500:]}{done.stderr}"


def pipe(mpiexec, command):
    """In place of rank 1's part there is a pipe, which nobody writes to: it waits for it no more than for others."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "job.json.ranks/0"))
        os.mkfifo(os.path.join(folder, *parts([1])))
        launch.finish(mpiexec, RANKS, [*command, "before", "2", "job.json"], folder, {"PK_JOB_PATH": "job.json", **SOON})
        if read(folder, "job.json")["job"]["missing"] != [1, 2] or files_in(folder) != ["job.json", *parts(range(RANKS))]:
            yield f"a pipe: missing are {read(folder, 'job.json')['job']['missing']}, there are {files_in(folder)}"


def apart(mpiexec, command):
    """Who was over before rank 0 began is of another job: its part is not in the report, and stays."""
    with tempfile.TemporaryDirectory() as folder:
        launch.finish(mpiexec, RANKS, [*command, "apart"], folder, {"PK_JOB_PATH": "job.json", **FOREVER})
        job = read(folder, "job.json")["job"]
        if files_in(folder) != ["job.json", *parts((1, 2))] or (job["ranks"], job["missing"]) != (1, [1, 2]):
            yield f"apart: {files_in(folder)}, {job}"


def without_session(mpiexec, command):
    """Rank 1 has none: it answers all the same."""
    with tempfile.TemporaryDirectory() as folder:
        launch.finish(mpiexec, RANKS, [*command, "some"], folder, {"PK_JOB_PATH": "job.json", **FOREVER})
        if files_in(folder) != ["job.json"] or read(folder, "job.json")["job"]["missing"] != [1]:
            yield f"without a session: {files_in(folder)}"
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, RANKS, [*command, "some"], folder, {"PK_REPORT_PATH": "-", **FOREVER})
        if f"{RANKS - 1} of {RANKS} ranks" not in done.stderr or OWN in done.stderr:
            yield f"without a session, on stderr: {done.stderr[-1500:]}"


def words(settings):
    return ["env"] + [f"{name}={value}" for name, value in settings.items()]


def unasked(mpiexec, command):
    """No rank; then one that stands before the others, or behind them, and they go on without it."""
    steps = [*command, "before"]
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, 2, steps, folder, {"PK_REPORT_PATH": "own-%r.txt", **FOREVER})
        if SENT in done.stdout:
            yield f"unasked: {done.stdout}"
    with tempfile.TemporaryDirectory() as folder:
        rest = [":", "-n", "1", *words(FOREVER), *steps]
        launch.finish(mpiexec, 2, steps + rest, folder, {"PK_JOB_PATH": "job.json", **SOON})
        if files_in(folder) != ["job.json", *parts(range(2))] or 2 not in read(folder, "job.json")["job"]["missing"]:
            yield f"the last is not asked: {files_in(folder)}"
    with tempfile.TemporaryDirectory() as folder:
        rest = [":", "-n", "2", *words({"PK_JOB_PATH": "job.json", "PK_REPORT_PATH": "-", **SOON}), *steps]
        done = launch.finish(mpiexec, 1, steps + rest, folder, FOREVER)
        if files_in(folder) != parts((1, 2)) or done.stderr.count(OWN) != 2:
            yield f"the first is not asked: {files_in(folder)} {done.stderr[-1500:]}"


def without_library(mpiexec, plain, libraries):
    """The last of four has none, and does not answer: the others wait no longer than asked."""
    preloaded = {"LD_PRELOAD": ":".join(os.path.abspath(library) for library in libraries), "PK_MPI_START": "1"}
    command = [os.path.abspath(plain), ":", "-n", "1", os.path.abspath(plain)]
    with tempfile.TemporaryDirectory() as folder:
        launch.finish(mpiexec, 3, command, folder, {**preloaded, "PK_REPORT_PATH": "own-%r.txt", **FOREVER})
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, 3, command, folder, {**preloaded, "PK_REPORT_PATH": "-", **SOON})
        if done.stderr.count(OWN) != 3:
            yield f"without the library, on stderr: {done.stderr[-1500:]}"
    with tempfile.TemporaryDirectory() as folder:
        launch.finish(mpiexec, 3, command, folder, {**preloaded, "PK_JOB_PATH": "job.json", **SOON})
        left = [name for name in files_in(folder) if name.startswith("job.json")]
        if left != ["job.json", *parts(range(3))] or 3 not in read(folder, "job.json")["job"]["missing"]:
            yield f"without the library: {left}"


def killed(mpiexec, command):
    """By SIGKILL, or gone without MPI_Finalize: mpiexec ends, whatever it makes of the other ranks."""
    for how in ("killed", "left"):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, **launch.ALLOW, PK_REPORT_PATH="-", **FOREVER)
            subprocess.run([mpiexec, "-n", str(RANKS), *command, how], cwd=folder, env=env, timeout=200,
                           stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if files_in(folder):
                yield f"{how}: {files_in(folder)}"


def alone(command):
    """One process without a launcher: its part is left at exit, since MPI_Finalize does not come."""
    env = dict(os.environ, **launch.ALLOW, PK_JOB_PATH="job.json")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, "never"], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=200)
        if len(files_in(folder)) != 1 or not files_in(folder)[0].startswith("job.json.ranks/0/"):
            yield f"alone: it leaves {files_in(folder)}"


def main(mpiexec, program, pk, plain=None, *libraries):
    command, pk = [os.path.abspath(program)], os.path.abspath(pk)
    complaints = [*reduced(mpiexec, MORE, command, "before"), *reduced(mpiexec, RANKS, command, "after"), *after_for_stderr(mpiexec, command), *same_as_files(mpiexec, command, pk),
                  *late(mpiexec, command, pk), *pipe(mpiexec, command),
                  *apart(mpiexec, command), *without_session(mpiexec, command), *unasked(mpiexec, command), *killed(mpiexec, command), *alone(command)]
    complaints += without_library(mpiexec, plain, libraries) if plain else []
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
