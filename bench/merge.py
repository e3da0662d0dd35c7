"""merge.py PK [RANKS] [EVENTS] [FOLDER] [OTHER_PK] - what `pk merge` takes for traces of so many events each (64 of a million need
8 GB in FOLDER, and as much for the merged one), one in twenty of which is a collective: events per second of CPU time, of
the user's and of the kernel's, and the most memory. With OTHER_PK, another build, in turns."""

import os
import statistics
import sys
import tempfile

NAMES = ("read", "forward", "backward", "optimizer", "dispatch", "copy in", "copy out", "norm")
TURNS = 5


def head(rank, ranks):
    return (f'{{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":1795173753000000000,\n"metadata":{{"perfkit":"0.1.0",'
            f'"host":"node0","program":"train","pid":{1000 + rank},"rank":{rank},"world_size":{ranks},"clock":{{"source":"tsc",'
            f'"base_monotonic_ns":{10**12},"id":"boot-node0"}}}},\n"traceEvents":[\n')


def event(i, pid, rank, ranks):
    ts = f"{i * 5}.{i % 1000:03d}"
    if i % 20:
        name = NAMES[i % len(NAMES)]
        return (f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":{pid},"tid":{pid},"ts":{ts},"dur":{2 + i % 3}.{i * 7 % 1000:03d},'
                f'"args":{{"self_us":{1 + i % 2}.{i * 3 % 1000:03d}}}}}')
    return (f'{{"ph":"X","cat":"cpu_op","name":"MPI_Allreduce","pid":{pid},"tid":{pid},"ts":{ts},"dur":{2 + rank % 3}.500,"args":{{'
            f'"bytes":8192,"Collective name":"all_reduce","dtype":"Double","In msg nelems":1024,"Out msg nelems":1024,'
            f'"Group size":{ranks},"Process Group Name":"MPI_COMM_WORLD","Process Group Description":"MPI","Rank":{rank},'
            f'"Comms Id":"00112233445566aa","Seq":{i // 20 + 1},"region":"step"}}}}')


def forge(folder, ranks, events):
    for rank in range(ranks):
        with open(os.path.join(folder, f"run-{rank}.json"), "w", encoding="utf-8") as file:
            file.write(head(rank, ranks))
            for first in range(0, events, 10000):
                file.write(",\n" * (first > 0) + ",\n".join(event(i, 1000 + rank, rank, ranks)
                                                          for i in range(first, min(first + 10000, events))))
            file.write("\n]}\n")


def measure(pk, folder, out):
    """User s, kernel s, MB."""
    child = os.posix_spawn(pk, [pk, "merge", folder, "-o", out], os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{pk}: status {status}")
    os.unlink(out)
    return used.ru_utime, used.ru_stime, used.ru_maxrss / 1024


def main(pk, ranks="8", events="1000000", beside=None, *others):
    ranks, events = int(ranks), int(events)
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        traces = os.path.join(folder, "run")
        os.mkdir(traces)
        forge(traces, ranks, events)
        builds = (pk, *others)
        found = {build: [] for build in builds}
        for _ in range(TURNS):
            for build in builds:
                found[build].append(measure(build, traces, os.path.join(folder, "all.json")))
        for build, turns in found.items():
            user, kernel, memory = (statistics.median(column) for column in zip(*turns))
            total = statistics.median(u + k for u, k, _ in turns)
            print(f"{build}: {user:.2f} + {kernel:.2f} s of CPU, {ranks * events / total / 1e6:.2f} million events per second "
                  f"({ranks * events / user / 1e6:.2f} without the kernel), {memory:.0f} MB, load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
