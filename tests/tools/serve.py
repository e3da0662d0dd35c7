"""serve.py PK - pk serve --metrics: several files as one page that promtool takes, and nothing else."""

import os
import shutil
import signal
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from folder import InFolder

PK = sys.argv[1]
HEAD = "# HELP pk_steps_total Steps that have ended.\n# TYPE pk_steps_total counter\n"
HISTOGRAM = "# HELP pk_x_seconds Of x.\n# TYPE pk_x_seconds histogram\n"


def text(rank):
    label = f'{{rank="{rank}"}}'
    return (HEAD + f"pk_steps_total{label} {rank + 100}\n" + HISTOGRAM
            + f'pk_x_seconds_bucket{{rank="{rank}",le="+Inf"}} 3\npk_x_seconds_sum{label} 1.5\n'
            + f"pk_x_seconds_count{label} 3\n")


class Serve(InFolder):
    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def serve(self, *paths, listen="127.0.0.1:0"):
        process = subprocess.Popen([PK, "serve", "--metrics", "--listen", listen, *paths], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def get(self, url, **more):
        with urllib.request.urlopen(urllib.request.Request(url, **more), timeout=20) as answer:
            return answer.read().decode(), answer.headers

    def status(self, url, **more):
        try:
            self.get(url, **more)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        return 200

    def test_two_files_are_one_page(self):
        process, url = self.serve(self.file("a.prom", text(0)), self.file("b.prom", text(1)))
        self.assertRegex(url, r"^http://127\.0\.0\.1:[0-9]+/metrics$")
        page, headers = self.get(url)
        self.assertIn("version=0.0.4", headers["Content-Type"])
        self.assertEqual((page.count("# HELP pk_steps_total"), page.count("# TYPE pk_steps_total")), (1, 1))
        self.assertIn('# TYPE pk_steps_total counter\npk_steps_total{rank="0"} 100\npk_steps_total{rank="1"} 101\n', page)
        order = [line.split("{")[0] for line in page.splitlines() if line.startswith("pk_x")]
        self.assertEqual(order, ["pk_x_seconds_bucket", "pk_x_seconds_sum", "pk_x_seconds_count"] * 2)
        self.assertIn("pk_serve_files 2\n", page)
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)

    def test_a_folder_as_it_is_at_the_moment(self):
        self.file("a.prom", text(0))
        self.file("a.prom.x7k2", "half of")
        _, url = self.serve(self.folder)
        self.assertIn("pk_serve_files 1\n", self.get(url)[0])
        self.file("b.prom", text(1))
        self.assertIn('pk_steps_total{rank="1"} 101', self.get(url)[0])
        os.unlink(os.path.join(self.folder, "a.prom"))
        self.assertNotIn('rank="0"', self.get(url)[0])

    def test_without_libmicrohttpd(self):
        done = subprocess.run([PK, "serve", "--metrics", self.folder], text=True, capture_output=True, check=False,
                              env=os.environ | {"PK_MICROHTTPD_LIBRARY": "/nowhere/libmicrohttpd.so.12"})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^pk: serve needs libmicrohttpd: .*/nowhere/libmicrohttpd\.so\.12.*\n$")

    def test_what_cannot_be_read(self):
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        large = self.file("large", "x" * (2 << 20))
        _, url = self.serve("/nonexistent", pipe, large, self.file("a", text(0)))
        page = self.get(url)[0]
        self.assertIn("pk_serve_unreadable_files 3\n", page)
        self.assertIn("pk_steps_total", page)

    def test_nonsense_is_left_out(self):
        _, url = self.serve(self.file("a", "# HELP\n#\n\n{}\n\x00\n# HELP x\nx 1\ncut off"))
        page = self.get(url)[0]
        self.assertIn("\nx 1\n", page)
        self.assertNotIn("cut", page)

    def test_other_requests(self):
        _, url = self.serve(self.file("a", text(0)))
        self.assertEqual(self.status(url.replace("/metrics", "/")), 404)
        self.assertEqual(self.status(url.replace("/metrics", "/../etc/passwd")), 404)
        self.assertEqual(self.status(url, data=b"x", method="POST"), 405)
        self.assertEqual(self.status(url), 200)

    def test_refused(self):
        for arguments, says in (((), "--metrics"), (("--metrics",), "files"),
                                (("--metrics", "--listen", "nowhere", "x"), "no address"),
                                (("--metrics", "--listen", "127.0.0.1:99999999", "x"), ""),
                                (("--metrics", "--listen", "localhost:0", "x"), "no address")):
            done = subprocess.run([PK, "serve", *arguments], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(says, done.stderr)

    def test_a_port_that_is_taken(self):
        path = self.file("a", text(0))
        _, url = self.serve(path)
        taken = url.split("//")[1].split("/")[0]
        done = subprocess.run([PK, "serve", "--metrics", "--listen", taken, path], capture_output=True, text=True,
                              timeout=20, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot listen", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
