"""job.py MPIEXEC PROGRAM PK - one report of the job, by rank 0, in MPI_Finalize: of sessions that ended before it and
that end after it, the same as `pk job` makes of the ranks' files; without a rank that is late, and what is left then."""

import json
import os
import subprocess
import sys
import tempfile

import launch

RANKS = 5
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


def reduced(mpiexec, command, when):
    """All ranks come."""
    settings = {"PK_JOB_PATH": "job.json", "PK_REPORT_PATH": "-"}
    with tempfile.TemporaryDirectory() as folder:
        done = launch.finish(mpiexec, RANKS, [*command, when], folder, settings)
        if files_in(folder) != ["job.json"]:
            yield f"{when}: it leaves {files_in(folder)}"
            return
        job = read(folder, "job.json")["job"]
        if (job["world_size"], job["ranks"], job["missing"], job["cut_off"]) != (RANKS, RANKS, [], []):
            yield f"{when}: {job}"
        if done.stderr.count(REPORT) != 1 or f"{RANKS} of {RANKS} ranks" not in done.stderr:
            yield f"{when}: on stderr there are {done.stderr.count(REPORT)} reports: {done.stderr[-1500:]}"


def same_as_files(mpiexec, command, pk):
    """The same bits as `pk job` of the ranks' own files."""
    settings = {"PK_JOB_PATH": "job.json", "PK_REPORT_PATH": "own/%r.rank.json"}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "own"))
        launch.finish(mpiexec, RANKS, [*command, "before"], folder, settings)
        ours = told(read(folder, "job.json"))
        done = subprocess.run([pk, "job", "--json", "own"], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or told(json.loads(done.stdout)) != ours:
            yield f"pk job says another thing of the ranks' files: {done.stdout[-500:]}{done.stderr}"


def late(mpiexec, command, pk):
    """One is not there: the report names it, and its part is in a file with the others'."""
    settings = {"PK_JOB_PATH": "job.json", "PK_MPI_PATIENCE": "2"}
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "job.json.ranks/0"))
        launch.finish(mpiexec, RANKS, [*command, "before", "2", "job.json"], folder, settings)
        if read(folder, "job.json")["job"]["missing"] != [2]:
            yield f"late: missing are {read(folder, 'job.json')['job']['missing']}"
        if files_in(folder) != ["job.json", *parts(range(RANKS))]:
            yield f"late: it leaves {files_in(folder)}"
        done = subprocess.run([pk, "job", "--json", "job.json.ranks"], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or json.loads(done.stdout)["job"]["ranks"] != RANKS:
            yield f"late: pk job of what it leaves: {done.stdout[-500:]}{done.stderr}"


def alone(command):
    """One process without a launcher: its part is left at exit, since MPI_Finalize does not come."""
    env = dict(os.environ, **launch.ALLOW, PK_JOB_PATH="job.json")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, "never"], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=200)
        if len(files_in(folder)) != 1 or not files_in(folder)[0].startswith("job.json.ranks/0/"):
            yield f"alone: it leaves {files_in(folder)}"


def main(mpiexec, program, pk):
    launch.need_ranks(mpiexec)
    command, pk = [os.path.abspath(program)], os.path.abspath(pk)
    complaints = [*reduced(mpiexec, command, "before"), *reduced(mpiexec, command, "after"), *same_as_files(mpiexec, command, pk),
                  *late(mpiexec, command, pk), *alone(command)]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
