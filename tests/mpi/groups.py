"""groups.py MPIEXEC PK PROGRAM LIBRARY... - communicators of one name: `pk merge` tells them apart, all members number
them alike, what is made again and again is one, and partners are ranks of the job."""

import os
import subprocess
import sys
import tempfile

import launch
import run
import seen

RANKS, TIMES = 4, 5


def ids(operations, name):
    """Of the barriers of communicators of that name, in whatever order the rank has used them."""
    return sorted(event["args"]["Comms Id"] for event in operations
            if event["args"]["Process Group Name"].startswith(name) and event["args"]["Collective name"] == "barrier")


def check(folder):
    halves, again = [], []
    for rank in range(RANKS):
        operations = seen.operations_of(seen.read(folder, f"run-{rank}.json"))
        halves.append(ids(operations, "half"))
        again.append(ids(operations, "again"))
        partners = seen.read(folder, f"report-{rank}.json")["comm"].get("partners")
        if [row[:3] + row[4:6] for row in partners or []] != [[rank ^ 1, 1, 4, 1, 4]]:
            yield f"rank {rank} has the partners {partners}"
    if len(halves[0]) != 2 or halves[0] != halves[1] or halves[2] != halves[3]:
        yield f"members do not agree: {halves}"
    if len({*halves[0], *halves[2]}) != 4:
        yield f"two communicators are one: {halves}"
    if len({number for rank in again for number in rank}) != 1 or any(len(rank) != TIMES for rank in again):
        yield f"what is made again and again: {again}"


def check_merged(pk, folder):
    said = subprocess.run([pk, "merge", folder, "-o", os.path.join(folder, "all.json")], capture_output=True, text=True, check=False)
    if said.returncode or "ambiguous: " in said.stdout or "4 messages" not in said.stdout:
        yield f"pk merge: {said.stdout}{said.stderr}"


def main(mpiexec, pk, program, *libraries):
    settings = dict(run.SETTINGS, LD_PRELOAD=":".join(os.path.abspath(library) for library in libraries))
    with tempfile.TemporaryDirectory() as folder:
        launch.run(mpiexec, RANKS, [os.path.abspath(program)], folder, settings)
        complaints = [*check(folder), *(check_merged(os.path.abspath(pk), folder) if pk != "none" else [])]
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
