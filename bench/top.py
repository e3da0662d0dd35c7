"""top.py PK RUNS [PROCESSES [SECONDS]] - what `pk top` takes of a core while it looks at 64 processes each second.

The processes make steps of a millisecond or so, each by itself; what is measured is pk top's own processor time.
RUNS is tests/tools/runs.c as built."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

PK, RUN = sys.argv[1:3]
PROCESSES = int(sys.argv[3]) if len(sys.argv) > 3 else 64
SECONDS = int(sys.argv[4]) if len(sys.argv) > 4 else 20

folder = tempfile.mkdtemp()
env = {k: v for k, v in os.environ.items() if not k.startswith("PK_")}
env.update(PK_TRACE_PATH=folder + "/run-%p.json")
jobs = []
for i in range(PROCESSES):
    meeting = f"{folder}/meeting-{i}"
    with open(meeting, "wb") as file:
        file.write(bytes(4096))
    jobs.append(subprocess.Popen([RUN, "hang", "0", "1", meeting, "-1", "stopped", "2"], stdout=subprocess.PIPE, env=env,
                                 preexec_fn=lambda: os.nice(19)))
for job in jobs:
    job.stdout.readline()
before = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(os.devnull, "wb") as nowhere:
    for what, arguments in ("pages", []), ("JSON", ["--json"]):
        begun = time.monotonic()
        top = subprocess.Popen([PK, "top", folder, *arguments], stdout=nowhere)
        time.sleep(SECONDS)
        top.terminate()
        top.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"pk top, {PROCESSES} processes, {what}: {used * 100 / (time.monotonic() - begun):.2f} % of a core, "
              f"opening them included", flush=True)
        before = after
for job in jobs:
    job.kill()
    job.wait()
shutil.rmtree(folder, ignore_errors=True)
