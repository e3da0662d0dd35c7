"""command.py NAME ARGUMENT... - what the `pk` command takes, and whether what it says is right. Prints; asserts nothing
but goodput's sums.

merge PK [RANKS] [EVENTS] [FOLDER] [OTHER_PK]: `pk merge` of traces of so many events each (64 of a million need 8 GB in
FOLDER, and as much for the merged one), one in twenty of which is a collective: events per second of CPU time, of the
user's and of the kernel's, and the most memory. With OTHER_PK, another build, in turns.

reading PK RUN_TRACE [EVENTS]: traces of five million events, of a CPU's run and of a GPU's: seconds of CPU time, of the
wall, and the most memory. The traces hold no report, so each event is looked at.

machine PK STREAM: pk machine's triad beside STREAM's, compiled here, in turns; and its peak beside the processor's
formula, clock x operations a cycle, where these are known. Best of the turns each; the bars are 5 % and 3 %.

requests PK CAPTURE_RUN [PROCESSES [TIMES]]: `pk capture` of many processes: how often the same step of all is captured,
how long that takes, and whether one that is stopped is named.

top PK RUNS [PROCESSES [SECONDS]]: what `pk top` takes of a core while it looks at 64 processes each second. They make
steps of a millisecond or so, each by itself; what is measured is pk top's own processor time.

hang PK RUNS [NUMBER]: a job of 8 ranks, one of which is stopped, spins, blocks in a read, or is gone: in how many of so
many runs (100) do the others' watchdogs name it, through hang_command, within hang_seconds + 2 s? A line for each way to
hang and one for all.

goodput PK PK_TRAIN [KILLS]: the demo, killed and started again so many times (20): whether the parts of its life sum to
its wall time as it is measured from outside, and whether the steps that were lost are those that were made again.

RUNS is tests/tools/runs.c as built."""

import collections
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time


def clean_environment(**more):
    """Without variables of perfkit's own, but for these."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith("PK_")}, **more}


# ---- merge ----

MERGE_NAMES = ("read", "forward", "backward", "optimizer", "dispatch", "copy in", "copy out", "norm")
MERGE_TURNS = 5


def merge_head(rank, ranks):
    return (f'{{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":1795173753000000000,\n"metadata":{{"perfkit":"0.1.0",'
            f'"host":"node0","program":"train","pid":{1000 + rank},"rank":{rank},"world_size":{ranks},"clock":{{"source":"tsc",'
            f'"base_monotonic_ns":{10**12},"id":"boot-node0"}}}},\n"traceEvents":[\n')


def merge_event(i, pid, rank, ranks):
    ts = f"{i * 5}.{i % 1000:03d}"
    if i % 20:
        name = MERGE_NAMES[i % len(MERGE_NAMES)]
        return (f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":{pid},"tid":{pid},"ts":{ts},"dur":{2 + i % 3}.{i * 7 % 1000:03d},'
                f'"args":{{"self_us":{1 + i % 2}.{i * 3 % 1000:03d}}}}}')
    return (f'{{"ph":"X","cat":"cpu_op","name":"MPI_Allreduce","pid":{pid},"tid":{pid},"ts":{ts},"dur":{2 + rank % 3}.500,"args":{{'
            f'"bytes":8192,"Collective name":"all_reduce","dtype":"Double","In msg nelems":1024,"Out msg nelems":1024,'
            f'"Group size":{ranks},"Process Group Name":"MPI_COMM_WORLD","Process Group Description":"MPI","Rank":{rank},'
            f'"Comms Id":"00112233445566aa","Seq":{i // 20 + 1},"region":"step"}}}}')


def merge_forge(folder, ranks, events):
    for rank in range(ranks):
        with open(os.path.join(folder, f"run-{rank}.json"), "w", encoding="utf-8") as file:
            file.write(merge_head(rank, ranks))
            for first in range(0, events, 10000):
                file.write(",\n" * (first > 0) + ",\n".join(merge_event(i, 1000 + rank, rank, ranks)
                                                          for i in range(first, min(first + 10000, events))))
            file.write("\n]}\n")


def measure_merge(pk, folder, out):
    """User s, kernel s, MB."""
    child = os.posix_spawn(pk, [pk, "merge", folder, "-o", out], os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{pk}: status {status}")
    os.unlink(out)
    return used.ru_utime, used.ru_stime, used.ru_maxrss / 1024


def merge(pk, ranks="8", events="1000000", beside=None, *others):
    ranks, events = int(ranks), int(events)
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        traces = os.path.join(folder, "run")
        os.mkdir(traces)
        merge_forge(traces, ranks, events)
        builds = (pk, *others)
        found = {build: [] for build in builds}
        for _ in range(MERGE_TURNS):
            for build in builds:
                found[build].append(measure_merge(build, traces, os.path.join(folder, "all.json")))
        for build, turns in found.items():
            user, kernel, memory = (statistics.median(column) for column in zip(*turns))
            total = statistics.median(u + k for u, k, _ in turns)
            print(f"{build}: {user:.2f} + {kernel:.2f} s of CPU, {ranks * events / total / 1e6:.2f} million events per second "
                  f"({ranks * events / user / 1e6:.2f} without the kernel), {memory:.0f} MB, load {os.getloadavg()[0]:.0f}")


# ---- reading ----

PER_STEP = {"cpu": 57, "gpu": 256}  # lines, about
QUERIES = {
    "pk report": ("report",),
    "calls by name": ("query", "SELECT name, count(*), sum(self_ns) FROM calls GROUP BY name"),
    "percentiles of calls": ("query", "SELECT name, percentile(duration_ns, 99) FROM calls GROUP BY name"),
    "ten longest calls": ("query", "SELECT * FROM calls ORDER BY duration_ns DESC LIMIT 10"),
    "kernels by name": ("query", "SELECT name, count(*), sum(duration_ns) FROM kernels GROUP BY name"),
    "longest step": ("query", "SELECT max(duration_ns) FROM steps"),
}


def measure_reading(*command):
    """Wall s, CPU s, MB."""
    before = os.times().elapsed
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: status {status}")
    child.returncode = 0
    return os.times().elapsed - before, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def reading(pk, run_trace, events="5000000"):
    with tempfile.TemporaryDirectory() as folder:
        for kind, lines in PER_STEP.items():
            trace = os.path.join(folder, "trace.json")
            subprocess.run([run_trace, trace, "0", "4", str(int(events) // lines)] + (["cpu"] if kind == "cpu" else []), check=True)
            size = os.path.getsize(trace) / 1e9
            print(f"{kind}: {events} events, {size:.2f} GB\n  {'':22}  wall s  CPU s  CPU s/GB    MB")
            for name, arguments in QUERIES.items():
                if kind == "gpu" or "kernels" not in name:
                    wall, cpu, memory = min((measure_reading(pk, *arguments, trace) for _ in range(3)), key=lambda m: m[1])
                    print(f"  {name:22} {wall:7.2f} {cpu:6.2f} {cpu / size:9.2f} {memory:5.0f}", flush=True)


# ---- machine ----

MACHINE_TURNS = 3
# Doubles a cycle by fused multiply-adds: units x lanes x 2. By "cpu family:model" of /proc/cpuinfo, in hexadecimal.
UNITS = {"6:4f": 16, "6:55": 32, "6:6a": 32, "6:8f": 32, "6:cf": 32, "17:31": 16, "19:1": 16, "19:11": 16, "19:a0": 16,
         "1a:2": 32}


def run_machine(pk, path):
    done = subprocess.run([pk, "machine", "--json", "-o", path], capture_output=True, text=True, check=True, timeout=500)
    return json.loads(done.stdout)


def run_stream(stream, mib, threads):
    done = subprocess.run([stream, str(mib), str(threads)], capture_output=True, text=True, check=True, timeout=500)
    return float(done.stdout)


def family_and_model():
    words = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            words.setdefault(name.strip(), value.strip())
    if "cpu family" not in words:
        return ""
    return f"{int(words['cpu family']):x}:{int(words['model']):x}"


def best(runs, name, who):
    """Of a limit, or of those whose names begin so, if it ends in "-"; 0: there is none."""
    return max((limit["best"] for run in runs for limit in run["limits"] if limit["threads"] == who
                and (limit["name"].startswith(name) if name.endswith("-") else limit["name"] == name)), default=0)


def machine(pk, stream):
    runs, theirs = [], {"one": 0.0, "all": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(MACHINE_TURNS):
            runs.append(run_machine(pk, os.path.join(folder, "m")))
            mib = runs[-1]["array_bytes"] >> 20
            theirs["one"] = max(theirs["one"], run_stream(stream, mib, 1))
            theirs["all"] = max(theirs["all"], run_stream(stream, mib, runs[-1]["processors_allowed"]))
    for who in ("one", "all"):
        plain, streamed = best(runs, "triad", who), best(runs, "triad-streamed", who)
        print(f"triad, {who}: pk machine {plain / 1e9:.1f} GB/s, STREAM's loop {theirs[who] / 1e9:.1f} GB/s: "
              f"{plain / theirs[who] - 1:+.1%} (streamed {streamed / 1e9:.1f})")
    clock, units = max(run["clock_hz"] for run in runs), UNITS.get(family_and_model())
    peak = best(runs, "double-", "one")
    print(f"double, one: {peak / 1e9:.1f} Gflop/s at {clock / 1e9:.3f} GHz: {peak / clock:.1f} a cycle"
          + (f", by formula {units}: {peak / clock / units - 1:+.1%}" if units else ", no formula for this processor")
          if clock else f"double, one: {peak / 1e9:.1f} Gflop/s; the clock is not known")
    print(f"threads had a processor for {min(run['on_processor'] for run in runs):.1%} of the rounds")


# ---- requests ----

PAUSE_MS = 50


def start_one(run, folder, rank, processes):
    env = clean_environment(
        PK_CAPTURE="request", PK_HISTORY_STEPS="64", PK_HISTORY_BYTES="1M", PK_MEMORY_BYTES="64M", PK_CAPTURES_PER_HOUR="3600",
        PK_WORLD_SIZE=str(processes), PK_RANK=str(rank), PK_BACKENDS="none",
        PK_ARENA_PATH=os.path.join(folder, "%r.arena"), PK_CAPTURE_PATH=os.path.join(folder, "%r-%s.json"))
    return subprocess.Popen([run, "capture", str(PAUSE_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)


def ask(pk, folder, *arguments):
    begin = time.monotonic()
    done = subprocess.run([pk, "capture", "--json", *arguments, folder], capture_output=True, check=False)
    return json.loads(done.stdout), time.monotonic() - begin


def requests(pk, run, processes="64", times="100"):
    processes, times = int(processes), int(times)
    folder = tempfile.mkdtemp()
    ranks = [start_one(run, folder, rank, processes) for rank in range(processes)]
    for p in ranks:
        p.stdout.readline()
    whole, took, answers = 0, [], collections.Counter()
    for _ in range(times):
        said, seconds = ask(pk, folder)
        paths = [t.get("path", "") for t in said["targets"] if t["answer"] == "captured"]
        same = sum(path.endswith(f"-{said['first']}.json") for path in paths)
        whole += same == processes
        took.append(seconds)
        answers.update(t["answer"] for t in said["targets"])
    took.sort()
    print(f"{processes} processes, steps of {PAUSE_MS} ms and what the machine adds; {times} requests")
    print(f"  the same step of all: {whole} of {times}; answers: {dict(answers)}")
    print(f"  seconds from the command to its end: median {took[len(took) // 2]:.2f}, longest {took[-1]:.2f}")
    ranks[processes // 2].send_signal(signal.SIGSTOP)
    said, _ = ask(pk, folder, "--wait", "30")
    named = [t["rank"] for t in said["targets"] if t["answer"] == "stopped"]
    print(f"  rank {processes // 2} is stopped; named as stopped: {named}")
    for p in ranks:
        p.send_signal(signal.SIGCONT)
        p.kill()
        p.wait()
    shutil.rmtree(folder)


# ---- top ----

def top(pk, run, processes="64", seconds="20"):
    processes, seconds = int(processes), int(seconds)
    folder = tempfile.mkdtemp()
    env = clean_environment(PK_TRACE_PATH=folder + "/run-%p.json")
    jobs = []
    for i in range(processes):
        meeting = f"{folder}/meeting-{i}"
        with open(meeting, "wb") as file:
            file.write(bytes(4096))
        jobs.append(subprocess.Popen([run, "hang", "0", "1", meeting, "-1", "stopped", "2"], stdout=subprocess.PIPE, env=env,
                                     preexec_fn=lambda: os.nice(19)))
    for job in jobs:
        job.stdout.readline()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.devnull, "wb") as nowhere:
        for what, arguments in ("pages", []), ("JSON", ["--json"]):
            begun = time.monotonic()
            program = subprocess.Popen([pk, "top", folder, *arguments], stdout=nowhere)
            time.sleep(seconds)
            program.terminate()
            program.wait()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"pk top, {processes} processes, {what}: {used * 100 / (time.monotonic() - begun):.2f} % of a core, "
                  f"opening them included", flush=True)
            before = after
    for job in jobs:
        job.kill()
        job.wait()
    shutil.rmtree(folder, ignore_errors=True)


# ---- hang ----

HANG_RANKS, HANG_STEP, HANG_SECONDS = 8, 20, 2
HANG_WAYS = ("stopped", "spinning", "blocked", "gone")


def named(folder, wanted, until):
    """When the first report of a rank that waits names that one, and no other; None if none does in time."""
    while time.time() < until:
        for name in os.listdir(folder):
            if not name.startswith("said-"):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                behind = json.load(file)["behind"]
            if [b["rank"] for b in behind] == [wanted]:
                return os.stat(path).st_mtime
        time.sleep(0.02)
    return None


def run_hang(pk, run, how, victim):
    folder = tempfile.mkdtemp()
    meeting = os.path.join(folder, "meeting")
    with open(meeting, "wb") as file:
        file.write(bytes(4096))
    command = f"cd {folder} && '{pk}' where --json . > new-%r && mv new-%r said-%r.json"
    env = clean_environment(PK_TRACE_PATH=folder + "/run-%r.json", PK_HANG_SECONDS=str(HANG_SECONDS), PK_HANG_COMMAND=command)
    ranks = [subprocess.Popen([run, "hang", str(rank), str(HANG_RANKS), meeting, str(victim), how, str(HANG_STEP)],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) for rank in range(HANG_RANKS)]
    ranks[0].stdout.readline()
    begun = time.time()
    at = named(folder, victim, begun + HANG_SECONDS + 10)
    for p in ranks:
        p.kill()
        p.wait()
        p.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)
    return None if at is None else at - begun


def hang(pk, run, runs="100"):
    pk, run = os.path.abspath(pk), os.path.abspath(run)
    total, good, worst = 0, 0, 0.0
    for i, way in enumerate(HANG_WAYS):
        times = [run_hang(pk, run, way, (7 * i + n) % HANG_RANKS) for n in range(int(runs) // len(HANG_WAYS))]
        seen = [t for t in times if t is not None]
        within = sum(t <= HANG_SECONDS + 2 for t in seen)
        print(f"{way:9} named {len(seen)} of {len(times)}, within {HANG_SECONDS} + 2 s: {within}, "
              f"latest {max(seen, default=float('nan')):.2f} s", flush=True)
        total, good, worst = total + len(times), good + within, max([worst, *seen])
    print(f"all       {good} of {total} within {HANG_SECONDS} + 2 s, latest {worst:.2f} s")


# ---- goodput ----

def last_line(path, offset):
    """The last whole line behind that place; one without a checkpoint if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        lines = []
    return lines[-2] if len(lines) > 1 else b" saves=0 "


def run_training(train, folder, kill):
    """Until there is a checkpoint of this run, and somewhat longer; then it is killed, or asked to end."""
    state = os.path.join(folder, "run.goodput")
    before = os.path.getsize(state) if os.path.exists(state) else 0
    environment = clean_environment(PK_GOODPUT_PATH=state, PK_BACKENDS="none")
    program = subprocess.Popen(
        [train, "--quiet", "--steps", "1000000", "--layers", "1", "--dim", "16", "--seq", "32", "--resume",
         "--checkpoint", os.path.join(folder, "checkpoint"), "--checkpoint-every", "50"],
        env=environment, cwd=folder, stdout=subprocess.DEVNULL)
    while b" saves=0 " in last_line(state, before):
        if program.poll() is not None:
            sys.exit(f"pk-train has ended by itself: {program.returncode}")
        time.sleep(0.02)
    time.sleep(random.uniform(0, 0.3))
    program.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
    program.wait()


def goodput(pk, train, kills="20"):
    pk, train, kills = os.path.abspath(pk), os.path.abspath(train), int(kills)
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        for i in range(kills + 1):
            run_training(train, folder, i < kills)
        measured = time.monotonic() - began
        path = os.path.join(folder, "run.goodput")
        text = subprocess.run([pk, "job", path], check=True, capture_output=True, text=True).stdout
        life = json.loads(subprocess.run([pk, "job", "--json", path], check=True, capture_output=True).stdout)
    life = life["goodput"][0]
    parts, wall = sum(life["parts"].values()), life["wall"] / 1e9
    print(text)
    print(f"{kills} kills: parts sum to {parts / life['wall']:.4%} of the wall time, which is {wall / measured:.3%} of the"
          f" {measured:.2f} s measured from outside")
    problems = [what for what, wrong in (
        ("the parts do not sum to the wall time", parts != life["wall"]),
        ("the wall time is more than has passed", wall > measured + 0.02),  # a process's start is known to 10 ms
        (f"{life['runs']} runs, {life['ended']} ended", life["runs"] != kills + 1 or life["ended"] != 1),
        ("no step was made again", kills > 2 and not life["recomputed"]),
        ("steps are missing", life["steps"] - life["recomputed"] < life["furthest"] - 50 * kills),
        ("more steps than the training has", life["steps"] - life["recomputed"] > life["furthest"] + 50 * kills),
        ("lines are damaged", life["damaged"] > 0),
        ("the last checkpoint is not the end", life["checkpoint_step"] != life["furthest"])) if wrong]
    sys.exit("; ".join(problems) or 0)


NAMES = {f.__name__: f for f in (merge, reading, machine, requests, top, hang, goodput)}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"which one? {' '.join(NAMES)}")
    NAMES[sys.argv[1]](*sys.argv[2:])
