"""page.py PK GOLDEN CHROMIUM_FOLDER - the page of `pk report --html` in headless Chromium. Exit status 77: there is no
browser here, or this pk was built without charts."""

import json
import os
import re
import sys
import time
import unittest

from opened import CHARTS, GOLDEN, Pages, chromium, run, scene
from everybody import ForEverybody  # noqa: F401 - its tests run here
from measured import Measured  # noqa: F401 - and its
from room import Room  # noqa: F401 - and its
from slow import SlowStep  # noqa: F401 - and its

MEGABYTE = 1 << 20


class Page(Pages):
    # ---- the file ----

    def test_one_file_that_asks_for_nothing(self):
        with open(self.html, encoding="utf-8") as file:
            text = file.read()
        self.assertNotRegex(text, r"""(?i)<[^>]+\s(src|href)\s*=\s*["']?(https?:)?//""")
        self.assertNotRegex(text, r"(?i)<link|@import|url\(")
        self.assertIn("default-src 'none'", text)
        self.assertIn("Permission is hereby granted, free of charge", text)  # uPlot's licence, whole
        self.assertIn("THE SOFTWARE IS PROVIDED", text)
        self.assertEqual(len(re.findall("</script", text)), 4)  # files, run, the library, ours
        self.assertEqual([name for name in os.listdir(self.folder) if "html" in name and not name.endswith(".html")], [])

    def test_the_data_is_the_report(self):
        self.sound(self.page)
        inside = json.loads(self.page.ask("document.getElementById('run').textContent"))
        wanted = json.loads(run("--json", os.path.join(self.folder, "run.json")).stdout)
        self.assertEqual(inside, wanted)

    def test_to_standard_output(self):
        done = run("--html", "-", os.path.join(self.folder, "run.json"))
        with open(self.html, "rb") as file:
            self.assertEqual(done.stdout, file.read())

    def test_what_is_wrong_is_said(self):
        path = os.path.join(self.folder, "run.json")
        for arguments, says in ((["--html", path, "--json", path], "--html or --json"), (["--against", path, "--json", path], "--against or --json"),
                                (["--html"], "--html needs a file"), (["--html="], "--html needs a file"),
                                (["--html", "/nowhere/out.html", path], "/nowhere/out.html: No such"),
                                (["--html", os.path.join(self.folder, "x.html"), "--against", "/nowhere/b.json", path], "/nowhere/b.json: No such"),
                                (["--html=/dev/null/x", path], "/dev/null/x: Not a directory"),
                                (["--html", self.folder, path], "is a directory: name a file in it")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertIn(says, done.stderr.decode())
        self.assertFalse(os.path.exists(os.path.join(self.folder, "x.html")))

    # ---- charts ----

    def test_every_chart_has_data(self):
        self.assertEqual(set(self.charts(self.page)), CHARTS)
        for chart in CHARTS:
            with self.subTest(chart=chart):
                self.assertGreater(len(self.page.ask(f"inkOf('{chart}')")), 2)

    def test_every_chart_answers_keys(self):
        for chart in sorted(CHARTS):
            with self.subTest(chart=chart):
                self.page.ask(f"plotOf('{chart}').focus()")
                self.assertEqual(self.page.ask(f"tipOf('{chart}')"), "")
                self.page.key("Home")
                first = self.page.ask(f"tipOf('{chart}')")
                for _ in range(3):
                    self.page.key("ArrowRight")
                third, said = self.page.ask(f"[tipOf('{chart}'), document.querySelector('#{chart} .unseen').textContent]")
                self.page.key("End")
                last = self.page.ask(f"tipOf('{chart}')")
                self.assertEqual(len({first, third, last} - {""}), 3, (first, third, last))
                self.assertRegex(third, r"\d")
                self.assertEqual(said.split(":")[0], third.split("\n")[0])
                self.page.key("Escape")
                self.assertEqual(self.page.ask(f"tipOf('{chart}')"), "")

    def test_every_chart_answers_the_mouse_and_a_finger(self):
        for chart in sorted(CHARTS):
            with self.subTest(chart=chart):
                x, y = self.page.ask(f"(() => {{ plotOf('{chart}').scrollIntoView({{block: 'center'}});"
                                     f"const b = document.querySelector('#{chart} .u-over').getBoundingClientRect();"
                                     "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
                self.page.mouse("Moved", x, y)
                self.page.frames(1)
                self.assertRegex(self.page.ask(f"tipOf('{chart}')"), r"\d")
                self.page.mouse("Moved", 1, 1)
                self.assertEqual(self.page.ask(f"tipOf('{chart}')"), "")
                points = [{"x": x, "y": y}]
                self.page.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=points)
                self.assertRegex(self.page.ask(f"tipOf('{chart}')"), r"\d")
                self.page.send("Input.dispatchTouchEvent", type="touchCancel", touchPoints=[])  # no second tap in time
                self.page.ask(f"plotOf('{chart}').focus(), plotOf('{chart}').blur()")

    def test_figures_are_the_reports(self):
        series = self.report["steps"]["series"]
        self.page.ask("plotOf('chart-kinds').focus()")
        self.page.key("Home")
        tip = self.page.ask("tipOf('chart-kinds')")
        self.assertIn("Step 0\n", tip)
        kinds = series[0]["kinds"]
        self.assertIn(f"compute\n{kinds['compute'] / 1e6:.0f}\u202fms", tip)
        self.assertEqual(self.page.ask("[...document.querySelectorAll('.tile b')].map((b) => b.textContent)")[0],
                         f"{self.report['steps']['steady']['p50'] / 1e6:.1f}\u202fms")

    def test_a_table_says_the_same(self):
        for chart in sorted(CHARTS):
            with self.subTest(chart=chart):
                self.page.ask(f"document.querySelector('#{chart} details').open = true")
                rows = self.page.wait(f"document.querySelectorAll('#{chart} details tbody tr').length")
                self.assertGreater(rows, 3)
                self.assertLessEqual(rows, 200)
                self.assertNotIn("undefined", self.page.ask(f"document.querySelector('#{chart} details').innerText"))
                self.page.ask(f"document.querySelector('#{chart} details').open = false")

    def test_costs(self):
        rows = "[...document.querySelectorAll('#costs .card:nth-of-type({}) tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
        goodput = self.report["goodput"]
        shares = sorted((ns / goodput["up"] for ns in goodput["parts"].values() if ns), reverse=True)
        shown = self.page.ask(rows.format(1))
        self.assertEqual([cells[2] for cells in shown], [f"{100 * share:.1f}\u202f%" for share in shares])
        widths = self.page.ask("[...document.querySelectorAll('#costs .stack i')].map((i) => i.getBoundingClientRect().width)")
        whole = self.page.ask("document.querySelector('#costs .stack').getBoundingClientRect().width")
        self.assertEqual(len(widths), len(shares))
        for width, share in zip(widths, shares):
            self.assertAlmostEqual(width, share * whole, delta=1.5)
        energy = self.page.ask(rows.format(3))
        self.assertEqual([cells[0] for cells in energy][:2], ["gpu0, the run", "gpu0, steps"])
        self.assertEqual((energy[0][1], energy[2][1]), ("3.20\u202fMJ", "too short to tell"))
        files = self.page.ask(rows.format(4))
        io = self.report["io"]
        self.assertEqual([cells[3] for cells in files[:2]], ["1.00\u202fM", "5\u202f000"])
        self.assertEqual([(cells[0], cells[4], cells[5]) for cells in files[2:]],
                         [("Read", "6.50\u202fGB", "17"), ("Written", "40.0\u202fGB", "431"), ("For devices", "40.0\u202fGB", "431"),
                          ("Calls", "9\u202f100", "431")])
        self.assertIn(f"{io['read_chars'] / (io['observed'] / 1e9) / 1e9:.0f}"[:2], files[0][2])
        said = self.page.ask("document.querySelector('#costs').innerText")
        for part in ("40.4\u202f%", "bf16", "power cap held", "70.0\u202fGB at most", "24 of 600 steps", "read from a device or wrote for one (1.0\u202f%). 10 share readings"):
            self.assertIn(part, said)
        self.assertNotRegex(said, r"NaN|undefined|Infinity|null|\[object")

    def test_nothing_that_was_not_measured(self):
        bare = {key: value for key, value in self.report.items() if key not in ("io", "energy", "goodput", "memory", "gpu_memory")}
        bare["steps"] = {key: value for key, value in bare["steps"].items() if key != "utilisation"}
        self.file("bare.json", json.dumps(bare))
        page = self.open(self.make("bare.json", "bare.html"))
        self.sound(page)
        self.assertFalse(page.ask("Boolean(document.getElementById('costs'))"))
        page.close()

    def test_zoom_by_keys(self):
        self.page.ask("plotOf('chart-steps').focus()")
        hidden = "[...document.querySelectorAll('#chart-steps button')].find((b) => b.textContent === 'Show all').hidden"
        self.assertTrue(self.page.ask(hidden))
        self.page.key("+")
        self.page.frames(1)
        self.assertFalse(self.page.ask(hidden))
        self.page.key("Home")
        self.assertNotIn("Step 0,", self.page.ask("tipOf('chart-steps')"))
        self.page.key("Escape")
        self.page.frames(1)
        self.assertTrue(self.page.ask(hidden))

    def test_the_usual_range(self):
        press = "[...document.querySelectorAll('#chart-steps button')].find((b) => b.textContent.startsWith('Usual')).click()"
        before = self.page.ask("document.querySelector('#chart-steps canvas').toDataURL()")
        self.page.ask(press)
        self.page.frames()
        self.assertNotEqual(self.page.ask("document.querySelector('#chart-steps canvas').toDataURL()"), before)
        self.page.ask(press)
        self.page.frames()
        self.assertEqual(self.page.ask("document.querySelector('#chart-steps canvas').toDataURL()"), before)

    def test_a_region_is_chosen(self):
        before = self.page.ask("document.querySelector('#chart-shape canvas').toDataURL()")
        self.page.ask("[...document.querySelectorAll('button.name')].find((b) => b.textContent === 'backward').click()")
        self.page.frames()
        self.assertEqual(self.page.ask("document.querySelector('#chart-shape h3').textContent"), "How long backward took")
        self.assertEqual(self.page.ask("document.querySelector('.pick select').selectedOptions[0].textContent"), "backward")
        self.assertNotEqual(self.page.ask("document.querySelector('#chart-shape canvas').toDataURL()"), before)
        choices = self.page.ask("document.querySelector('.pick select').options.length")
        self.assertEqual(choices, 1 + len(self.report["regions"]))
        for choice in range(choices):
            self.page.ask(f"(() => {{ const s = document.querySelector('.pick select'); s.value = {choice}; s.dispatchEvent(new Event('change')); }})()")
            self.page.frames(1)
            self.assertGreater(len(self.page.ask("inkOf('chart-shape')")), 1, choice)
        self.page.ask("(() => { const s = document.querySelector('.pick select'); s.value = 0; s.dispatchEvent(new Event('change')); })()")
        self.assertEqual(self.page.errors, [])

    # ---- two runs ----

    def test_two_runs(self):
        page = self.open(self.both)
        self.sound(page)
        self.assertEqual(set(self.charts(page)), CHARTS | {"chart-compare"})
        self.assertGreater(len(page.ask("inkOf('chart-compare')")), 3)
        page.ask("plotOf('chart-compare').focus()")
        page.key("ArrowRight")
        self.assertRegex(page.ask("tipOf('chart-compare')"), r"(?s)this run\n\d.*other run\n\d")
        text = page.ask("document.querySelector('#comparison').innerText")
        ours, theirs = (r["steps"]["steady"]["p50"] for r in (self.report, scene.report(500, 37 * scene.MS, 2)))
        self.assertRegex(text, rf"Step, median\s+{ours / 1e6:.1f}\u202fms\s+{theirs / 1e6:.1f}\u202fms\s+\+{100 * (ours / theirs - 1):.1f}")
        self.assertIn("This run is run.json, the other one other.json", text)
        page.ask("plotOf('chart-shape').focus()")
        page.key("Home")
        self.assertIn("the other run", page.ask("tipOf('chart-shape')"))
        page.close()

    # ---- whatever there is ----

    def test_other_reports(self):
        big = 2**63 - 1
        dist = {"count": big, "sum": 1e308, "min": -1e308, "max": 1e308, "mean": None, "stddev": 1e-320, "p50": None}
        files = {name: os.path.join(GOLDEN, name) for name in ("report-train.json", "report-gpu.json", "report-comm.json")}
        files["empty"] = self.file("empty.json", '{"format":"perfkit report","schema":1}')
        files["one"] = self.file("one.json", json.dumps(scene.report(1)))
        files["two"] = self.file("two.json", json.dumps(scene.report(2)))
        old = scene.report(30)
        del old["steps"]["histogram"]
        for row in old["steps"]["series"]:
            del row["shortest"], row["median"]
        for row in old["regions"] + old["counters"] + old["gpus"]:
            row.pop("histogram", None), row.pop("series", None)
        files["older"] = self.file("older.json", json.dumps(old))
        files["wild"] = self.file("wild.json", json.dumps(
            {"format": "perfkit report", "schema": 1, "run": {"wall": big, "start_unix": big, "clock_hz": None},
             "steps": {"count": big, "warmup": big, "steady": dist, "all": dist, "kinds": {"data": big}, "broken_down": 1,
                       "series": [{"steps": i % 2, "duration": big, "longest": big} for i in range(9)], "histogram": [[-1, None, 3], [0, 0, 1]],
                       "slowest": [{"duration": big, "parts": [{"self": big, "usual": None}]}]},
             "regions": [{"name": "", "kind": "dance", "time": dist, "histogram": [[None, None, 0], [5, 5, big // 2**12]]}],
             "gpus": [{"per_step": {"busy": dist, "step": dist}, "series": [{"steps": 0, "busy": big}]}],
             "comm": {"communicators": [{}], "collectives": [{"time": dist, "busbw": dist, "size": 1}]},
             "counters": [{"name": "c", "value": dist, "last": None, "series": [[0, 1, None, None, 1e308], [1, 0, 0, -1e308, 0]]}]}))
        for name, path in files.items():
            with self.subTest(name):
                out = os.path.join(self.folder, "any.html")
                done = run("--html", out, "--against", path, path)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                page = self.open(out)
                page.frames()
                self.sound(page)
                if name != "wild":
                    self.assertNotRegex(page.ask("document.body.innerText"), "NaN|undefined|Infinity|null")
                page.close()

    def test_two_runs_where_processors_were_short(self):
        """That comes first, and no change is coloured as if it were one of the program."""
        said = "document.querySelector('#comparison .lead').textContent"
        coloured = "document.querySelectorAll('#comparison td .less, #comparison td .more').length"
        for ready, short in (10 ** 9, False), (4 * 10 ** 9, True):
            mine, other = scene.report(30), scene.report(30)
            mine["steps"]["processor"] = {"observed": 2 * 10 ** 10, "running": 10 ** 10, "ready": ready // 2}
            mine["steps"]["steady"]["p50"] *= 2
            paths = [self.file(f"{name}.json", json.dumps(report)) for name, report in (("mine", mine), ("other", other))]
            out = os.path.join(self.folder, "short.html")
            self.assertEqual(run("--html", out, "--against", paths[1], paths[0]).returncode, 0)
            page = self.open(out)
            self.assertEqual(page.ask(said).startswith("Processors were short: there was none for 10.0"), short)
            self.assertEqual(page.ask(coloured) == 0, short)
            page.close()

    def test_one_way_to_write_a_unit(self):
        """The sentences' ASCII becomes the page's way, but for names."""
        report = scene.report(30)
        report["verdicts"] = [{"name": "unsteady", "severity": "warning", "value": 2, "threshold": 1.5,
                               "text": 'Takes 2.26 x the median, 50 us or less (threshold 1.5 x): "in 5 us x", 7 us.'}]
        report["steps"]["items_per_second"] = 1e30
        out = os.path.join(self.folder, "units.html")
        self.assertEqual(run("--html", out, self.file("units.json", json.dumps(report))).returncode, 0)
        page = self.open(out)
        self.assertIn('Takes 2.26\u202f× the median, 50\u202fµs or less (threshold 1.5\u202f×): "in 5 us x", 7\u202fµs.',
                      page.ask("document.querySelector('#verdicts').textContent"))
        self.assertIn("1.00e+30", page.ask("document.querySelector('.tiles').textContent"))
        self.assertTrue(page.ask("[...document.querySelectorAll('.tile b')].every((b) => b.scrollWidth <= b.clientWidth)"))
        page.close()

    def test_a_hundred_thousand_steps(self):
        self.file("long.json", json.dumps(scene.report()))
        path = self.make("long.json", "long.html")
        self.assertLess(os.path.getsize(path), 5 * MEGABYTE)
        start = time.monotonic()
        page = self.open(path)
        page.ask("plotOf('chart-steps').focus()")
        page.key("Home")
        self.assertIn("shortest", page.ask("tipOf('chart-steps')"))
        took = time.monotonic() - start
        self.sound(page)
        load = page.ask("performance.getEntriesByType('navigation')[0].loadEventEnd")
        print(f"100,000 steps: {os.path.getsize(path) / 1e6:.2f} MB; loaded after {load:.0f} ms, the first answer to a key after {1000 * took:.0f} ms")
        page.close()


def without_charts():
    done = run("--html", "-", os.path.join(GOLDEN, "report-train.json"))
    said = done.stderr.decode()
    if "built without" not in said:
        return False
    if done.returncode != 2 or done.stdout or said.count("\n") != 1:
        raise AssertionError(done)
    print(said.strip())
    return True


def main():
    if without_charts():
        return 77
    try:
        with chromium.Browser() as browser:
            Pages.start(browser)
            program = unittest.main(argv=sys.argv[:1], exit=False)
            Pages.stop()
            return 0 if program.result.wasSuccessful() else 1
    except chromium.Absent as reason:
        print(reason)
        return 77


if __name__ == "__main__":
    sys.exit(main())
