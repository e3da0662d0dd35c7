"""job.py MPIEXEC PROGRAM PK [PLAIN LIBRARY...] - one file of the job, by rank 0, in MPI_Finalize: of sessions that
ended before it and that end after it, of which `pk job` says the same as of the ranks' files; without a rank that is
late, was not asked, has no session, no library (of PLAIN, which is not linked with it), or has been killed, and what is
left then. Where all have to come, ranks have the patience of a day; and whoever is to wait for nobody has it, too."""

import gzip
import json
import os
import re
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
PK = sys.argv[3]


def read(*path):
    """What pk job says of it, as text."""
    done = subprocess.run([os.path.abspath(PK), "job", "--json", os.path.join(*path)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"pk job {path}: {done.stderr}")
    return done.stdout


def job_in(*path):
    return json.loads(read(*path))["job"]


def unzip(path):
    with gzip.open(path, "rb") as file:
        return file.read()


def files_in(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def parts(ranks):
    return [f"job.json.ranks/0/{rank}.rank.json" for rank in ranks]


def told(text):
    """But for where it was read from: to the last byte."""
    return re.sub(r'"file":"[^"]*"|"files":\d+', "", text)


def gathered(mpiexec, ranks, command, when):
    """All ranks come."""
    settings = {"PK_JOB_PATH": "job.json", **FOREVER}
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, ranks, [*command, when], folder, settings)
        if files_in(folder) != ["job.json"]:
            yield f"{when}: it leaves {files_in(folder)}"
            return
        job = job_in(folder, "job.json")
        if (job["world_size"], job["ranks"], job["missing"], job["cut_off"], job["notes"]) != (ranks, ranks, [], [], []):
            yield f"{when}: {job}"
        if SENT not in done.stdout or done.stderr:
            yield f"{when}: {done.stdout} {done.stderr}"


def on_stderr(mpiexec, command):
    """A report that each rank is asked for is each rank's own, and nobody waits for it."""
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, RANKS, [*command, "before"], folder, {"PK_REPORT_PATH": "-", **FOREVER})
        if done.stderr.count(OWN) != RANKS or SENT in done.stdout:
            yield f"on stderr: {done.stderr[-1500:]} {done.stdout}"


def same_as_files(mpiexec, command):
    """The same bits as of the ranks' own files; compressed if the name says so."""
    for name in ("job.json", "job.json.gz"):
        settings = {"PK_JOB_PATH": name, "PK_REPORT_PATH": "own/%r.rank.json", **FOREVER}
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "own"))
            launch.finish(mpiexec, RANKS, [*command, "before"], folder, settings)
            if told(read(folder, name)) != told(read(folder, "own")):
                yield f"{name}: pk job says another thing of the ranks' files"
            with open(os.path.join(folder, name), "rb") as file:
                bits = file.read()
            if (bits[:2] == b"\x1f\x8b") != name.endswith(".gz"):
                yield f"{name} begins with {bits[:20]}"
            own = []
            for rank in range(RANKS):
                with open(os.path.join(folder, "own", f"{rank}.rank.json"), "rb") as file:
                    text = file.read()
                own.append(b'{"format":"perfkit ranks","schema":1,"rank":%d,"ranks":%d,"bytes":%d}\n' % (rank, RANKS, len(text)) + text)
            if (unzip(os.path.join(folder, name)) if name.endswith(".gz") else bits) != b"".join(own):
                yield f"{name} holds something else than the ranks' files, one behind the other"


def late(mpiexec, command):
    """One is not there: the file is without it, and its part is in a file with the others'. Then it is the first, which
    writes the job's file and comes when the others have given up: it has its own part."""
    settings = {"PK_JOB_PATH": "job.json", **SOON}
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "job.json.ranks/0"))
        launch.finish(mpiexec, RANKS, [*command, "before", "0", *parts([1])], folder, settings)
        if files_in(folder) != ["job.json", *parts(range(RANKS))] or 0 in job_in(folder, "job.json")["missing"]:
            yield f"the first is late: {files_in(folder)}"
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "job.json.ranks/0"))
        launch.finish(mpiexec, RANKS, [*command, "before", "2", "job.json"], folder, settings)
        if 2 not in job_in(folder, "job.json")["missing"]:
            yield f"late: missing are {job_in(folder, 'job.json')['missing']}"
        if files_in(folder) != ["job.json", *parts(range(RANKS))]:
            yield f"late: it leaves {files_in(folder)}"
        if job_in(folder, "job.json.ranks")["ranks"] != RANKS:
            yield f"late: pk job of what it leaves: {job_in(folder, 'job.json.ranks')}"


def pipe(mpiexec, command):
    """In place of rank 1's part there is a pipe, which nobody writes to: it waits for it no more than for others."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "job.json.ranks/0"))
        os.mkfifo(os.path.join(folder, *parts([1])))
        launch.finish(mpiexec, RANKS, [*command, "before", "2", "job.json"], folder, {"PK_JOB_PATH": "job.json", **SOON})
        if job_in(folder, "job.json")["missing"] != [1, 2] or files_in(folder) != ["job.json", *parts(range(RANKS))]:
            yield f"a pipe: missing are {job_in(folder, 'job.json')['missing']}, there are {files_in(folder)}"


def without_session(mpiexec, command):
    """Rank 1 has none: it answers all the same."""
    with tempfile.TemporaryDirectory() as folder:
        launch.finish(mpiexec, RANKS, [*command, "some"], folder, {"PK_JOB_PATH": "job.json", **FOREVER})
        if files_in(folder) != ["job.json"] or job_in(folder, "job.json")["missing"] != [1]:
            yield f"without a session: {files_in(folder)}"


def no_room(mpiexec, command):
    """Where rank 0 cannot write it each rank leaves its own, and rank 0 says why, once."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "job.json"))
        done = launch.finish(mpiexec, RANKS, [*command, "before"], folder, {"PK_JOB_PATH": "job.json", **FOREVER})
        if files_in(folder) != parts(range(RANKS)) or done.stderr.count("there is no file of the job: ") != 1:
            yield f"no room: {files_in(folder)} {done.stderr}"


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
        if files_in(folder) != ["job.json", *parts(range(2))] or 2 not in job_in(folder, "job.json")["missing"]:
            yield f"the last is not asked: {files_in(folder)}"
    with tempfile.TemporaryDirectory() as folder:
        rest = [":", "-n", "2", *words({"PK_JOB_PATH": "job.json", **SOON}), *steps]
        launch.finish(mpiexec, 1, steps + rest, folder, FOREVER)
        if files_in(folder) != parts((1, 2)):
            yield f"the first is not asked: {files_in(folder)}"


def without_library(mpiexec, plain, libraries):
    """The last of four has none, and does not answer: the others wait no longer than asked."""
    preloaded = {"LD_PRELOAD": ":".join(os.path.abspath(library) for library in libraries), "PK_MPI_START": "1"}
    command = [os.path.abspath(plain), ":", "-n", "1", os.path.abspath(plain)]
    with tempfile.TemporaryDirectory() as folder:
        launch.finish(mpiexec, 3, command, folder, {**preloaded, "PK_REPORT_PATH": "own-%r.txt", **FOREVER})
    with tempfile.TemporaryDirectory() as folder:
        launch.finish(mpiexec, 3, command, folder, {**preloaded, "PK_JOB_PATH": "job.json", **SOON})
        left = [name for name in files_in(folder) if name.startswith("job.json")]
        if left != ["job.json", *parts(range(3))] or 3 not in job_in(folder, "job.json")["missing"]:
            yield f"without the library: {left}"


def killed(mpiexec, command):
    """By SIGKILL, or gone without MPI_Finalize: mpiexec ends, whatever it makes of the other ranks."""
    for how in ("killed", "left"):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, **launch.ALLOW, PK_JOB_PATH="job.json", **FOREVER)
            subprocess.run([mpiexec, "-n", str(RANKS), *command, how], cwd=folder, env=env, timeout=200,
                           stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if "job.json" in files_in(folder):
                yield f"{how}: {files_in(folder)}"


def alone(command):
    """One process without a launcher: its part is left at exit, since MPI_Finalize does not come."""
    env = dict(os.environ, **launch.ALLOW, PK_JOB_PATH="job.json")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, "never"], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=200)
        if len(files_in(folder)) != 1 or not files_in(folder)[0].startswith("job.json.ranks/0/"):
            yield f"alone: it leaves {files_in(folder)}"


def main(mpiexec, program, _, plain=None, *libraries):
    command = [os.path.abspath(program)]
    complaints = [*gathered(mpiexec, MORE, command, "before"), *gathered(mpiexec, RANKS, command, "after"), *on_stderr(mpiexec, command),
                  *same_as_files(mpiexec, command), *late(mpiexec, command), *pipe(mpiexec, command), *no_room(mpiexec, command),
                  *without_session(mpiexec, command), *unasked(mpiexec, command), *killed(mpiexec, command), *alone(command)]
    complaints += without_library(mpiexec, plain, libraries) if plain else []
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
