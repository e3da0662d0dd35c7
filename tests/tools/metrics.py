"""metrics.py RUNS - metrics_path: whole at any moment, bounded, exact, and what promtool and
python3-prometheus-client have to say of it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

RUNS = sys.argv[1]
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
