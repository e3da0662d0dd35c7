"""dask_job.py PAGE PK RUN_TRACE SCRIPT RANKS - the questions of docs/query.md to all ranks, as they stand, on Dask distributed
(examples/on_dask.py): workers with 200 MB each, equal to pk query. The figures in docs are those of 1,024 ranks. As root the workers are two hosts each in a
network of its own."""

import csv
import importlib.util
import io
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

RANKS, WORKERS, LIMIT = int(sys.argv[5]), 4, 200 * 10**6
BLOCK = re.compile(r"<!-- on: (rank0.json rank1.json rank2.json rank3.json) -->\n```sql\n(.*?)```\n", re.S)
# What a question is known by, its table, by what its rows may be apart, and what is made of the answers.
HOW = [
    ("stddev_us", "steps", "rank", "SELECT * FROM answers ORDER BY rank"),
    ("was_last", "collectives", "communicator,sequence",
     "SELECT rank, round(sum(waited_ms), 1), sum(was_last) FROM answers GROUP BY rank ORDER BY rank"),  # see ROUNDED
    ("above_mean", "calls", "name", "SELECT * FROM answers ORDER BY above_mean DESC LIMIT 3"),
    ("busbw", "collectives", "operation,bytes", "SELECT * FROM answers ORDER BY operation, mib"),
    ("sender", "messages", "rank", "SELECT * FROM answers ORDER BY sender, receiver, tag"),
]


ROUNDED = ("round(sum(waited_ns) / 1e6, 1)", "sum(waited_ns) / 1e6")  # sums of parts are put together before that


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def command(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Hosts:
    """Two network namespaces on a bridge; without them, this host."""

    def __init__(self):
        tag = f"pk{os.getpid() % 100000}"
        self.bridge, self.names, self.address = tag, [tag + "a", tag + "b"], "127.0.0.1"
        if os.geteuid() or not command("ip", "link", "add", tag, "type", "bridge"):
            self.names = []
            return
        self.address = "10.213.77.1"
        done = command("ip", "addr", "add", self.address + "/24", "dev", tag) and command("ip", "link", "set", tag, "up")
        for i, name in enumerate(self.names):
            done = done and command("ip", "netns", "add", name) and command(
                "ip", "link", "add", name + "v", "type", "veth", "peer", "name", "eth0", "netns", name) and command(
                "ip", "link", "set", name + "v", "master", tag, "up") and command(
                "ip", "-n", name, "addr", "add", f"10.213.77.{i + 2}/24", "dev", "eth0") and command(
                "ip", "-n", name, "link", "set", "eth0", "up") and command("ip", "-n", name, "link", "set", "lo", "up")
        if not done:
            self.close()
            self.names, self.address = [], "127.0.0.1"

    def on(self, i):
        return ["ip", "netns", "exec", self.names[i % 2]] if self.names else []

    def close(self):
        for name in self.names:
            command("ip", "netns", "del", name)
        command("ip", "link", "del", self.bridge)


def most_memory():
    with open("/proc/self/status") as file:
        own = int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) * 1024
    return own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def rows_of(text):
    return [tuple(row) for row in list(csv.reader(io.StringIO(text)))[1:]]


def as_text(rows):
    """Numbers as CSV may have written them: 20 and 20.0 are one."""
    def one(value):
        try:
            return f"{float(value):.9g}"
        except (TypeError, ValueError):
            return str(value or "")
    return [tuple(one(value) for value in row) for row in rows]


def compare(client, script, page):
    files = [os.path.abspath(f"{rank}.json") for rank in range(RANKS)]
    with open(page, encoding="utf-8") as file:
        statements = [sql for _, sql in BLOCK.findall(file.read())]
    assert len(statements) == len(HOW), f"{len(statements)} questions to all ranks in {page}"
    for sql, (word, table, key, merge) in zip(statements, HOW):
        assert word in sql, f"{word} is not in\n{sql}"
        began = time.monotonic()
        theirs = as_text(script.ask(client, table, key, sql.replace(*ROUNDED), files, merge))
        between = time.monotonic()
        ours = as_text(rows_of(script.query(sql, files)))
        print(f"{word}: {len(ours)} rows, Dask {between - began:.1f} s, pk query {time.monotonic() - between:.1f} s", flush=True)
        if key not in ("rank", "name"):
            ours, theirs = sorted(ours), sorted(theirs)
        different = [(a, b) for a, b in zip(ours, theirs) if a != b]
        assert ours and len(ours) == len(theirs) and not different, f"{word}: {different[:3]}, {len(ours)} and {len(theirs)} rows"
    for worker, (own, child) in client.run(most_memory).items():
        print(f"{worker}: {own / 1e6:.0f} MB, and at most {child / 1e6:.0f} in a pk")
        assert own + child < LIMIT, f"{worker} took {own + child} bytes"


def main(page, pk, run_trace, script):
    try:
        from dask.distributed import Client
    except ImportError as why:
        skip(f"python3-distributed is not installed ({why})")
    page, run_trace, script = (os.path.abspath(path) for path in (page, run_trace, script))
    os.environ.update(PK=os.path.abspath(pk), PYTHONPATH=os.path.dirname(script), DASK_DISTRIBUTED__DASHBOARD__LINK="",
                      DASK_DISTRIBUTED__ADMIN__TICK__LIMIT="60s", OPENBLAS_NUM_THREADS="1")
    os.environ.pop("MALLOC_PERTURB_", None)  # it would touch what Python only reserves
    sys.path.insert(0, os.path.dirname(script))
    spec = importlib.util.spec_from_file_location("on_dask", script)
    module = importlib.util.module_from_spec(spec)
    sys.modules["on_dask"] = module
    spec.loader.exec_module(module)
    hosts, running = Hosts(), []
    print(f"{len(hosts.names) or 1} hosts, {WORKERS} workers")
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda rank: subprocess.run([run_trace, f"{rank}.json", str(rank), str(RANKS), "2"], check=True), range(RANKS)))
            dask = [sys.executable, "-m"]
            start = lambda *words: running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=open("dask.log", "ab")))
            start(*dask, "distributed.cli.dask_scheduler", "--host", hosts.address, "--port", "0", "--no-dashboard", "--scheduler-file",
                  folder + "/scheduler.json")
            for i in range(WORKERS):
                start(*hosts.on(i), *dask, "distributed.cli.dask_worker", "--scheduler-file", folder + "/scheduler.json", "--nthreads", "1",
                      "--memory-limit", str(LIMIT), "--no-dashboard", "--local-directory", f"{folder}/worker{i}")
            while not os.path.exists("scheduler.json"):
                assert running[0].poll() is None, open("dask.log").read()[-2000:]
                time.sleep(0.1)
            with Client(scheduler_file="scheduler.json", timeout=60) as client:
                client.wait_for_workers(WORKERS, timeout=120)
                compare(client, module, page)
            os.chdir("/")
    finally:
        for process in running[::-1]:
            process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        hosts.close()


if __name__ == "__main__":
    main(*sys.argv[1:5])
