"""job_measured.py - on the page of a job: events of calls and memory of devices, over its ranks and beside another job's."""

import json
import os

import job_kit as kit

CELLS = "[...document.querySelectorAll('{} tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"


def counted(rank, ipc):
    return {"region": "backward", "calls": 100, "sampled": 20, "missed": 0, "time": 10 ** 8, "instructions": 1e6 * ipc, "instructions_error": 0,
            "cycles": 1e6, "cycles_error": 0, "cache_misses": -1, "branch_misses": -1, "ipc": ipc + rank / 10, "ipc_error": 0.04,
            "cache_misses_per_1000": -1, "branch_misses_per_1000": -1, "processor_time": -1, "slots": 4e6, "retiring": ipc / 4, "retiring_error": 0.01,
            "bad_speculation": 0.1, "bad_speculation_error": 0.01, "frontend_bound": 0.2, "frontend_bound_error": -1,
            "backend_bound": 0.7 - ipc / 4, "backend_bound_error": 0.01}


class Measured:
    def forged(self, folder, ipc, forge):
        kit.forge(forge, folder, ranks=4)
        for path in kit.files(folder):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            rank = report["run"]["rank"]
            report["events"] = {"asked": 1, "why_not_hardware": "", "rows": [counted(rank, ipc)]}
            report["gpu_memory"] = {"asked": 1, "why_not": "", "places": [{"place": "gpu0", "peak": 10 ** 9 * (rank + 1), "most_held": 4 * 10 ** 9},
                                                                         {"place": "host", "peak": 7}]}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report, file, separators=(",", ":"))

    def test_events_and_memory_of_devices(self):
        before, now, path = (os.path.join(self.folder, name) for name in ("slower", "faster", "events.html"))
        self.forged(before, 2, self.forge)
        self.forged(now, 2.5, self.forge)
        kit.pk_job(self.pk, "--html", path, "--against", before, now)
        job = json.loads(kit.pk_job(self.pk, "--json", "--against", before, now).stdout)
        self.assertEqual(job["costs"]["device_memory"]["job"], 10 ** 10)
        self.assertEqual(job["costs"]["device_taken"]["by_rank"]["max"], 4 * 10 ** 9)
        self.assertAlmostEqual(job["costs"]["device_memory"]["by_rank"]["imbalance"], 0.6)
        page = self.open(path)
        self.sound(page)
        shown = page.ask(CELLS.format("#events"))
        self.assertEqual(shown[0][:3] + shown[0][7:], ["backward", "20.0\u202f%", "IPC", "2.80", "rank 3", "5.7\u202f%"])
        self.assertRegex(shown[0][3], r"\A2\.65 ±\u202f0\.75\u202f%\Z")
        self.assertEqual(shown[1][:4], ["", "", "Instructions", "2.50\u202fM exact"])
        self.assertEqual(shown[2][2:4], ["Retiring", "62.5\u202f% ±\u202f0.50\u202f%"])
        self.assertEqual(shown[4][3], "20.0\u202f%")
        rows = [cells for cells in page.ask(CELLS.format("#against .card:nth-of-type(2)"))]
        self.assertEqual([row[1] for row in rows], ["IPC", "Instructions", "Retiring", "Bad speculation", "Front-end bound", "Back-end bound"])
        self.assertEqual(rows[2][2:], ["50.0\u202f% ±\u202f0.50\u202f%", "62.5\u202f% ±\u202f0.50\u202f%", "+25.0\u202f%"])
        self.assertEqual([row[4] for row in rows[3:5]], ["within the errors"] * 2)
        self.assertEqual((rows[0][0], rows[0][4]), ("backward", "+23.3\u202f%"))
        costs = {cells[0]: cells for cells in page.ask(CELLS.format("#costs"))}
        self.assertEqual(costs["Device memory at most"][5:], ["4.00\u202fGB", "rank 3", "60.0\u202f%"])
        self.assertNotRegex(page.ask("document.querySelector('main').innerText"), r"NaN|undefined|Infinity|\[object")
        page.close()
