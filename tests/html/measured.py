"""measured.py - what was measured beside time, on the page: events of calls, memory step by step, memory of devices."""

import json

from opened import Pages, scene

CELLS = """(title) => { const card = [...document.querySelectorAll('.card')].find((c) => c.querySelector('h3')?.textContent === title);
    return card ? [...card.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)) : null; }"""


class Measured(Pages):
    def cells(self, page, title):
        return page.ask(f"({CELLS})({title!r})")

    # ---- events ----

    def test_events_of_each_region(self):
        rows = self.cells(self.page, "By the processor")
        self.assertEqual(rows[0], ["backward", "2\u202f000", "20.0\u202f%", "2.50 ±\u202f2.0\u202f%", "4.20 ±\u202f10.0\u202f%", "–",
                                   "5.00\u202fM ±\u202f2.0\u202f%", "2.00\u202fM ±\u202f2.5\u202f%"])
        self.assertEqual(rows[1][:5], [scene.HOSTILE, "900", "10.0\u202f%", "1.10 ±\u202f18.2\u202f%", "10"])  # the error is not known
        self.assertEqual(rows[2][2:4], ["100\u202f%", "0.500 exact"])
        rows = self.cells(self.page, "By the kernel")
        self.assertEqual([row[0] for row in rows], ["backward", "once"])
        self.assertEqual(rows[0][3], "8.00\u202fms ±\u202f1.0\u202f%")
        rows = self.cells(self.page, "By what became of pipeline slots")
        self.assertEqual(rows, [["backward", "2\u202f000", "20.0\u202f%", "12.0\u202fM ±\u202f2.5\u202f%", "40.0\u202f% ±\u202f2.0\u202f%",
                                 "5.0\u202f% ±\u202f1.0\u202f%", "15.0\u202f% exact", "40.0\u202f%"]])  # errors of shares are as the shares are
        said = self.page.ask("document.querySelector('#events').innerText")
        for part in ("not counted: branch misses", "of the CPU time", "1: "):
            self.assertIn(part, said)
        self.assertNotRegex(said, r"NaN|undefined|Infinity|null|\[object")

    def test_events_of_two_runs(self):
        page = self.open(self.both)
        rows = self.cells(page, "Events a call of both runs")
        self.assertEqual(rows[0][:4], ["backward", "2.50 ±\u202f2.0\u202f%", "2 ±\u202f2.5\u202f%", "+25.0\u202f%"])
        self.assertEqual(rows[0][6], "within the error")
        self.assertEqual(rows[1][6], "within the error")  # of which one error is not known
        self.assertEqual(rows[0][-12:-9], ["40.0\u202f% ±\u202f2.0\u202f%", "32.0\u202f% ±\u202f2.0\u202f%", "+25.0\u202f%"])
        self.assertEqual([rows[0][i] for i in (-7, -4, -1)], ["within the error"] * 3)
        self.assertEqual(rows[1][-3:], ["–", "–", "–"])
        page.close()

    # ---- memory ----

    def test_memory_step_by_step(self):
        self.page.ask("plotOf('chart-memory').focus()")
        self.page.key("End")
        tip = self.page.ask("tipOf('chart-memory')")
        self.assertRegex(tip, r"\AStep \d+, ")
        for part in ("resident\n", "allocated, as libpk_alloc counts\n", "grows by 3.00\u202fMB a step\n"):
            self.assertIn(part, tip)
        self.page.key("Home")
        self.assertNotIn("grows by", self.page.ask("tipOf('chart-memory')"))  # the first quarter is not judged
        self.page.key("Escape")
        self.assertTrue(self.page.ask("document.querySelector('#steps #chart-memory') !== null"))

    def test_growth_is_of_what_lives(self):
        """Counters come in the order of their first use: a pool's may be the first, and a second device's."""
        report = json.loads(json.dumps(self.report))
        mine = [c for c in report["counters"] if c["name"].startswith("gpu0.") and c["name"].endswith(("allocated", "reserved"))]
        others = [{**c, "name": c["name"].replace("gpu0", f"gpu{gpu}")} for gpu in (10, 2, 1) for c in mine]
        resident = next(c for c in report["counters"] if c["name"] == "memory.resident")
        report["counters"] = [c for c in report["counters"] if c not in mine and c is not resident] + (mine + others)[::-1]
        report["memory"].update(allocator="", uncounted="nobody has preloaded it")
        report["gpu_memory"].update(unknown_frees=3, unknown_freed=2 * 10 ** 9, untied=4, dropped=5, lost=6, missed_frees=7, pools_beyond=8)
        self.file("pools.json", json.dumps(report))
        page = self.open(self.make("pools.json", "pools.html"))
        page.ask("plotOf('chart-device-memory').focus()")
        page.key("End")
        tip = page.ask("tipOf('chart-device-memory')")
        self.assertIn("gpu0 allocated grows by 2.00\u202fMB a step\n", tip)
        order = [tip.index(f"gpu{gpu} {what}\n") for gpu in range(3) for what in ("allocated", "reserved by pools")]
        self.assertEqual(order, sorted(order))
        self.assertNotIn("gpu10", tip)
        self.assertIn("Without a line of their own: gpu10 allocated, gpu10 reserved by pools.", page.ask("document.querySelector('#chart-device-memory').innerText"))
        page.key("Escape")
        self.assertNotIn("grows by", page.ask("document.querySelector('#chart-memory').innerText"))  # of resident, which has no line
        said = page.ask("document.querySelector('#costs').innerText")
        for part in ("counts nothing: nobody has preloaded it", "2.00\u202fGB in 3 calls", "region of 4 allocations is unknown", "beyond the first 64 at once, not counted: 8",
                     "CUPTI dropped 5 records", "6 were not counted", "7 frees were not seen"):
            self.assertIn(part, said)
        self.assertNotIn("libpk_alloc counts", self.page.ask("document.querySelector('#costs').innerText"))
        page.close()

    def test_memory_of_devices(self):
        self.page.ask("plotOf('chart-device-memory').focus()")
        self.page.key("End")
        tip = self.page.ask("tipOf('chart-device-memory')")
        for part in ("gpu0 allocated\n", "gpu0 reserved by pools\n", "grows by 2.00\u202fMB a step\n"):
            self.assertIn(part, tip)
        self.page.key("Escape")
        self.assertEqual(self.cells(self.page, "Pools of gpu0"), [
            ["0", "8.00\u202fGB", "2.00\u202fGB", "75.0\u202f%", "8.00\u202fGB", "1.00\u202fGB"],
            ["1, given back", "2.00\u202fGB", "2.00\u202fGB", "0\u202f%", "0\u202fB", "0\u202fB"]])
        rows = self.cells(self.page, "Memory of gpu0 by region")
        self.assertEqual((rows[0][0], rows[0][6], rows[1][0]), ("backward", "2.00\u202fMB", scene.HOSTILE))
        self.assertIn("65.0\u202fGB of 80.0\u202fGB at most", self.page.ask("document.querySelector('#costs').innerText"))
