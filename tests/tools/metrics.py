"""metrics.py CASE,... RUNS - metrics_path: whole at any moment, bounded, exact, and what others make of it."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

CASES = sys.argv[1].split(",")
RUNS = sys.argv[2]


# ---- metrics_path ----

# Whole at any moment, bounded, exact, and what promtool and python3-prometheus-client have to say
# of it.

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None


class Metrics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.prom = os.path.join(self.folder, "pk.prom")

    def environment(self, **options):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PK_")}
        environment.update(PK_METRICS_PATH=self.prom, PK_METRICS_SECONDS="1", PK_BACKENDS="none", PK_LOG="stderr")
        environment.update((key, str(value)) for key, value in options.items())
        return environment

    def record(self, *arguments, expect=0, **options):
        done = subprocess.run([RUNS, "windows", *map(str, arguments)], env=self.environment(**options), capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stderr

    def text(self):
        with open(self.prom, encoding="utf-8") as file:
            return file.read()

    def samples(self):
        """Name with labels -> value."""
        return dict(line.rsplit(" ", 1) for line in self.text().splitlines() if not line.startswith("#"))

    def value(self, start):
        found = [value for key, value in self.samples().items() if key.startswith(start)]
        self.assertEqual(len(found), 1, start)
        return float(found[0])

    def test_figures_are_the_reports(self):
        self.figures_are_the_reports(65536)
        self.assertEqual(self.value("pk_items_total"), 96000)

    def test_with_calls_dropped(self):
        self.figures_are_the_reports(1024)

    def figures_are_the_reports(self, ring):
        report = os.path.join(self.folder, "r.json")
        self.record(3000, PK_REPORT_PATH=report, PK_RING_RECORDS=ring)
        with open(report, encoding="utf-8") as file:
            own = json.load(file)
        self.assertEqual(self.value("pk_steps_total"), 3000)
        self.assertEqual(self.value("pk_step_duration_seconds_count"), 3000)
        self.assertEqual(self.value("pk_dropped_records_total{program=\"tools-runs\",rank=\"0\",what=\"region"),
                         own["counts"]["dropped"])
        self.assertEqual(self.value("pk_running"), 0)
        for row in own["regions"]:
            name = row["name"].replace('"', '\\"')
            rest = f'{{program="tools-runs",rank="0",region="{name}",kind="{row["kind"]}"}}'
            self.assertEqual(self.value("pk_region_calls_total" + rest), row["time"]["count"])
            self.assertAlmostEqual(self.value("pk_region_seconds_total" + rest), row["time"]["sum"] / 1e9, places=9)
            self.assertAlmostEqual(self.value("pk_region_self_seconds_total" + rest), row["self"] / 1e9, places=9)
            self.assertEqual(self.value("pk_region_bytes_total" + rest), row["bytes"])

    def test_costs(self):
        report = os.path.join(self.folder, "r.json")
        self.record(300, PK_COSTS="io,energy", PK_GOODPUT_PATH=os.path.join(self.folder, "life"), PK_REPORT_PATH=report)
        with open(report, encoding="utf-8") as file:
            own = json.load(file)
        labels = '{program="tools-runs",rank="0"'
        for name, member in (("pk_io_read_bytes_total", "read_chars"), ("pk_io_written_bytes_total", "write_chars"),
                             ("pk_io_read_calls_total", "read_calls"),
                             ("pk_io_device_written_bytes_total", "write_device")):
            self.assertEqual(self.value(name + labels), own["io"][member])
        self.assertEqual(self.value("pk_process_resident_memory_bytes" + labels), own["memory"]["resident"])
        for part, ns in own["goodput"]["parts"].items():
            self.assertAlmostEqual(self.value(f'pk_goodput_seconds{labels},part="{part}"'), ns / 1e9, places=9)
        self.assertEqual({row["counter"] for row in own["energy"]["rows"]},
                         {re.search('counter="(.*?)"', key)[1] for key in self.samples() if key.startswith("pk_energy")})

    def test_bounded(self):
        self.record(60000)  # 60 variants of a region
        self.assertLessEqual(len(self.samples()), 300)
        calls = {key: int(value) for key, value in self.samples().items() if key.startswith("pk_region_calls_total")}
        self.assertEqual(len(calls), 20)
        self.assertEqual(sum(calls.values()), 60000 * 3 + 60000 + 60)  # none is missing

    def test_whole_at_any_moment(self):
        process = subprocess.Popen([RUNS, "windows", "4000", "slow"], env=self.environment(), stderr=subprocess.DEVNULL)
        seen, last = set(), 0
        while process.poll() is None:
            if os.path.exists(self.prom):
                samples = self.samples()
                self.assertTrue(any(key.startswith("pk_overhead_cpu_seconds_total") for key in samples))
                steps = float(next(v for k, v in samples.items() if k.startswith("pk_steps_total")))
                self.assertGreaterEqual(steps, last)
                last = steps
                seen.add(steps)
                self.assertLessEqual(len(os.listdir(self.folder)), 2)
            time.sleep(0.05)
        self.assertEqual(process.returncode, 0)
        self.assertGreater(len(seen), 1)

    def test_rank_and_parts_of_the_name(self):
        self.prom = os.path.join(self.folder, "pk-%r.prom")
        self.record(10, PK_RANK=5, PK_WORLD_SIZE=8)
        self.prom = os.path.join(self.folder, "pk-5.prom")
        self.assertIn('rank="5"', self.text())

    def test_nowhere(self):
        self.prom = "/nonexistent/folder/pk.prom"
        self.assertIn("metrics /nonexistent", self.record(10, expect=1))

    def test_every_family_is_declared_once_before_its_samples(self):
        self.record(100)
        declared = re.findall(r"^# TYPE (\S+) (\S+)$", self.text(), re.MULTILINE)
        self.assertEqual(len(dict(declared)), len(declared))
        for key in self.samples():
            name = re.sub(r"_(bucket|sum|count)$", "", key.split("{")[0])
            self.assertIn(name, dict(declared))

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_promtool(self):
        self.record(1000, PK_WINDOWS_PATH=os.path.join(self.folder, "w"), PK_WINDOW_STEPS=100, PK_COSTS="io,energy",
                    PK_GOODPUT_PATH=os.path.join(self.folder, "life"))
        with open(self.prom, encoding="utf-8") as file:
            done = subprocess.run(["promtool", "check", "metrics"], stdin=file, capture_output=True, text=True,
                                  timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @unittest.skipUnless(text_string_to_metric_families, "no python3-prometheus-client")
    def test_python_client(self):
        self.record(1000)
        families = {family.name: family for family in text_string_to_metric_families(self.text())}
        histogram = families["pk_step_duration_seconds"]
        self.assertEqual(histogram.type, "histogram")
        buckets = [(float(s.labels["le"]), s.value) for s in histogram.samples if s.name.endswith("_bucket")]
        self.assertEqual(buckets, sorted(buckets))
        self.assertEqual(buckets[-1], (float("inf"), 1000))
        self.assertIn('reduce "all"', [s.labels["region"] for s in families["pk_region_calls"].samples])


# ---- scrape ----

# Debian's node exporter reads metrics_path's files, two ranks' beside each other, and Debian's
# Prometheus scrapes them: on loopback, on ports that nobody has.

WAIT = 60  # s; they take two


def skip(why):
    print(why)
    sys.exit(77)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_for(what, ask):
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        try:
            answer = ask()
            if answer:
                return answer
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"{what}: not within {WAIT} s")


def query(port, text):
    answer = json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?query=" + urllib.parse.quote(text)))
    return answer["data"]["result"]


def record(folder, rank):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PK_")}
    environment.update(PK_METRICS_PATH=os.path.join(folder, "pk-%r.prom"), PK_RANK=str(rank), PK_WORLD_SIZE="2",
                       PK_BACKENDS="none")
    subprocess.run([RUNS, "windows", str(1000 + rank)], env=environment, check=True, timeout=60)


def look(exporter, prometheus):
    page = wait_for("the node exporter", lambda: get(f"http://127.0.0.1:{exporter}/metrics"))
    assert "node_textfile_scrape_error 0" in page, page
    assert 'pk_steps_total{program="tools-runs",rank="1"} 1001' in page, page
    found = wait_for("Prometheus", lambda: query(prometheus, "pk_steps_total"))
    steps = {sample["metric"]["rank"]: float(sample["value"][1]) for sample in found}
    assert steps == {"0": 1000, "1": 1001}, found
    median = query(prometheus, "histogram_quantile(0.5, pk_step_duration_seconds_bucket)")
    assert all(0 < float(sample["value"][1]) < 1 for sample in median) and len(median) == 2, median
    inside = query(prometheus, 'pk_step_duration_seconds_bucket{le="+Inf"}')
    assert {float(sample["value"][1]) for sample in inside} == {1000, 1001}, inside


def main():
    for tool in ("prometheus", "prometheus-node-exporter"):
        if not shutil.which(tool):
            skip(f"no {tool}")
    with tempfile.TemporaryDirectory() as folder:
        files = os.path.join(folder, "textfile")
        os.mkdir(files)
        for rank in range(2):
            record(files, rank)
        exporter, prometheus = free_port(), free_port()
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("scrape_configs:\n- job_name: pk\n  scrape_interval: 1s\n  static_configs:\n"
                       f"  - targets: ['127.0.0.1:{exporter}']\n")
        commands = [["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{exporter}",
                     "--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={files}"],
                    ["prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{prometheus}",
                     f"--storage.tsdb.path={folder}/data"]]
        with open(os.path.join(folder, "log"), "w+b") as log:
            processes = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]
            try:
                look(exporter, prometheus)
            finally:
                for process in processes:
                    process.terminate()
                for process in processes:
                    process.wait(30)


if __name__ == "__main__":
    if CASES == ["scrape"]:
        main()
    else:
        unittest.main(argv=sys.argv[:1] + CASES)
