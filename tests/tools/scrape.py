"""scrape.py RUNS - Debian's node exporter reads metrics_path's files, two ranks' beside each other, and Debian's
Prometheus scrapes them: on loopback, on ports that nobody has.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

RUNS = sys.argv[1]
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
    main()
