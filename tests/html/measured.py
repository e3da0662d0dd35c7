"""measured.py - what was measured beside time, on the page: events of calls, memory step by step, memory of devices."""

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
