"""page.py PK GOLDEN BROWSER - the page of `pk report --html` in a headless browser: charts, figures, everybody who reads it, and captures."""

import hashlib
import itertools
import json
import math
import os
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "tools"))

import traces  # noqa: E402
from opened import BROKEN, CHARTS, GOLDEN, Pages, UNTOLD, chromium, run, scene


# ---- the page for whoever reads it ----

# By keyboard, by ear, in the dark, on paper, on a phone.

KINDS = ("compute", "data", "comm", "io", "wait", "other", "untracked")

# What protanopes, deuteranopes and tritanopes see of linear RGB (Machado, Oliveira and Fernandes 2009, full severity).
EYES = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def seen(colour, eyes):
    """#rrggbb in CIELAB, as such eyes see it."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    r, g, b = (min(1, max(0, sum(m * v for m, v in zip(row, linear)))) for row in eyes)
    white = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047, 0.2126 * r + 0.7152 * g + 0.0722 * b, (
        0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in white)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


class ForEverybody(Pages):
    def test_by_keyboard_alone(self):
        page = self.open(self.html)
        seen = []
        for _ in range(14):
            page.key("Tab")
            seen.append(page.ask("(() => { const a = document.activeElement, s = getComputedStyle(a);"
                                 "return [a.className || a.tagName, a.getAttribute('href') ?? '', s.outlineStyle, a.getBoundingClientRect().height > 0]; })()"))
        self.assertEqual(seen[0][1], "#main")
        self.assertEqual(seen[1][1], "#verdicts")
        self.assertIn("plot", [name for name, *_ in seen])
        self.assertTrue(all(outline != "none" and there for _, _, outline, there in seen), seen)
        page.close()

    def test_names_are_read_out(self):
        unnamed = self.page.ask("[...document.querySelectorAll('button, select, a, [role=group]')].filter((n) =>"
                                "!(n.textContent.trim() || n.getAttribute('aria-label') || n.labels?.[0]?.textContent)).map((n) => n.outerHTML)")
        self.assertEqual(unnamed, [])
        levels = self.page.ask("[...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))")
        self.assertEqual(levels[0], 1)
        self.assertEqual(levels.count(1), 1)
        self.assertTrue(all(b <= a + 1 for a, b in zip(levels, levels[1:])), levels)
        self.assertEqual(self.page.ask("document.documentElement.lang"), "en")
        self.assertEqual(self.page.ask("(() => { const ids = [...document.querySelectorAll('[id]')].map((n) => n.id);"
                                       "return ids.filter((id, i) => ids.indexOf(id) !== i); })()"), [])

    def check_contrast(self, page):
        for name in ("ink", "muted", "warning", "good", "note", "focus"):
            for back in ("surface", "page"):
                self.assertGreaterEqual(page.ask(f"contrast(named('{name}'), named('{back}'))"), 4.5, (name, back))
        for name in ("warning", "good", "note"):
            self.assertGreaterEqual(page.ask(f"contrast(named('{name}'), named('{name}-back'))"), 4.5, name)
        for name in (*KINDS, "main", "against"):
            self.assertGreaterEqual(page.ask(f"contrast(named('{name}'), named('surface'))"), 3, name)
        colours = {name: page.ask(f"named('{name}')") for name in (*KINDS, "main", "against")}
        for (sort, eyes), pairs in itertools.product(EYES.items(), (KINDS, ("main", "against"))):
            for a, b in itertools.combinations(pairs, 2):
                self.assertGreater(math.dist(seen(colours[a], eyes), seen(colours[b], eyes)), 20, (sort, a, b))

    def test_light(self):
        self.check_contrast(self.page)
        self.assertGreater(self.page.ask("luminance(getComputedStyle(document.body).backgroundColor)"), 0.8)

    def test_dark(self):
        page = self.open(self.html, dark=True)
        self.sound(page)
        self.check_contrast(page)
        self.assertLess(page.ask("luminance(getComputedStyle(document.body).backgroundColor)"), 0.02)
        page.frames()
        dark = set(page.ask("inkOf('chart-kinds')"))
        light = set(self.page.ask("inkOf('chart-kinds')"))
        self.assertFalse(dark & light - {"255,255,255"}, "the same colours in both")
        # ... and follows when the reader's wish changes, or paper does not want it.
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        page.frames()
        self.assertEqual(set(page.ask("inkOf('chart-kinds')")), light)
        page.close()

    def test_on_paper(self):
        page = self.open(self.html, dark=True)
        page.ask("dispatchEvent(new Event('beforeprint'))")
        page.frames()
        self.assertEqual(set(page.ask("inkOf('chart-kinds')")), set(self.page.ask("inkOf('chart-kinds')")))
        page.ask("dispatchEvent(new Event('afterprint'))")
        page.send("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertGreater(page.ask("luminance(named('ink')) < luminance(named('surface')) ? 1 : 0"), 0)
        self.assertEqual(page.ask("getComputedStyle(document.querySelector('nav')).display"), "none")
        self.sound(page)
        page.close()

    def test_on_a_phone(self):
        for path in (self.html, self.both):
            page = self.open(path, width=360, height=740, mobile=True, scale=2)
            page.frames()
            self.assertEqual(page.ask("document.documentElement.scrollWidth"), 360)
            self.assertEqual(page.ask("[...document.querySelectorAll('section > *, figure, .tile')].filter((n) =>"
                                      "n.getBoundingClientRect().right > 361).map((n) => n.outerHTML.slice(0, 80))"), [])
            self.assertTrue(page.ask("[...document.querySelectorAll('canvas')].every((c) => c.clientWidth <= 332)"))
            self.sound(page)
            # Turned on its side.
            page.size(740, 360, 2, True)
            page.frames(3)
            self.assertEqual(page.ask("document.documentElement.scrollWidth"), 740)
            self.assertTrue(page.ask("document.querySelector('#chart-steps canvas').clientWidth > 400"))
            page.close()

    def test_names_are_text(self):
        """The page's rules would keep such a script from running; but it does not come so far."""
        self.assertEqual(self.page.ask("document.querySelectorAll('main img, main script').length"), 0)
        for place in ("#verdicts", "#regions", "#gpus", "#communication", "#counters", "#details", "#steps"):
            self.assertIn("<img src=x onerror=", self.page.ask(f"document.querySelector('{place}').textContent"), place)


# ---- what was measured beside time, on the page ----

# Events of calls, memory step by step, memory of devices.

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


# ---- what the page does where there is little room for much ----

# Long names, narrow screens, one value far from all others.

LONG = 10_000

FULL = "document.documentElement.scrollWidth"


class Room(Pages):
    def long_names(self, name):
        """The report with a name of 10 kB without a blank wherever there is one, each another one."""
        text = json.dumps(self.report)
        for i, old in enumerate((scene.HOSTILE, "backward", "forward", "all_reduce", "layer[0]", "node07", "train", "loss", "gpu0.memory")):
            new = ("n" * (LONG // 2)) + str(i) + "m" * (LONG // 2)
            text = text.replace(json.dumps(old)[1:-1], new)
        return self.make_of(name, text)

    def make_of(self, name, text):
        self.file(name + ".json", text)
        return self.make(name + ".json", name + ".html", "--against", self.file(name + "-other.json", text))

    def test_long_names_stay_in_the_page(self):
        path = self.long_names("long")
        for width in 360, 390, 768, 1280:
            with self.subTest(width=width):
                page = self.open(path, width=width, height=800)
                page.frames()
                self.sound(page)
                self.assertEqual(page.ask(FULL), width)
                self.assertEqual(page.ask("[...document.querySelectorAll('section > *, figure, .tile, h1, h2, h3, li, .legend, select')].filter((n) =>"
                                          f"!n.closest('nav') && n.getBoundingClientRect().right > {width + 1}).map((n) => n.outerHTML.slice(0, 60))"), [])
                for chart in self.charts(page):  # and no tip makes it wider
                    page.ask(f"plotOf('{chart}').focus()")
                    page.key("Home")
                    self.assertEqual(page.ask(FULL), width, chart)
                page.close()

    def test_cut_names_keep_what_differs(self):
        """Layers of a model with names too long for a page, which differ amid them, in the number of a layer or in a part."""
        names = [f"{'outer' * 300}.layers[{i}].{part}.{'weight' * 300}" for i in (3, 4, 11, 111) for part in ("attention", "mlp")]
        report = {"format": "perfkit report", "schema": 1, "regions": [scene.region(scene.random.Random(1), name, "compute", 1000, 9) for name in names]}
        page = self.open(self.make_of("apart", json.dumps(report)))
        self.sound(page)
        for place in "#regions", "#comparison .card:last-of-type":
            shown = page.ask(f"[...document.querySelectorAll('{place} tbody th')].map((th) => [th.textContent, th.querySelector('[title]')?.title ?? th.title])")
            self.assertEqual(sorted(whole for _, whole in shown), sorted(names), place)
            self.assertEqual(len({cut for cut, _ in shown}), len(names), shown)
            for cut, whole in shown:
                self.assertLessEqual(len(cut), 206)
                self.assertIn(whole.split(".")[1], cut)
                self.assertIn(whole.split(".")[2], cut)
        page.close()

    def test_no_word_is_broken_on_a_phone(self):
        text = json.dumps(self.report)
        for old, new in (("backward", "mlp.backward"), ("forward", "attention.forward"), ("layer[0]", "model.transformer.layers[0].matmul_backward_fused")):
            text = text.replace(f'"{old}"', f'"{new}"')
        path = self.make_of("words", text)
        for width in 390, 1280:
            with self.subTest(width=width):
                page = self.open(path, width=width, height=800)
                page.frames(3)
                self.assertEqual(page.ask(BROKEN), [])
                self.assertEqual(page.ask(UNTOLD), [])
                self.assertEqual(page.ask(FULL), width)
                wider = page.ask("[...document.querySelectorAll('.scroll')].filter((area) => area.scrollWidth > area.clientWidth).length")
                (self.assertGreater if width == 390 else self.assertLess)(wider, 3)
                if width == 390:  # at its end nothing more is promised, and the other side is
                    page.ask("document.querySelector('#regions .scroll').scrollLeft = 9999")
                    page.frames()
                    self.assertEqual(page.ask("document.querySelector('#regions .scroll').className"), "scroll to-left")
                page.close()

    def test_tiles_that_are_not_there(self):
        """Where they do not fill their last row, its rest is of the tiles' colour."""
        for width in 390, 900, 1280:
            page = self.open(self.html, width=width, height=800, dark=True)
            self.assertEqual(page.ask("getComputedStyle(document.querySelector('.tiles')).backgroundColor"),
                             page.ask("getComputedStyle(document.querySelector('.card')).backgroundColor"))
            page.close()

    # ---- one value that is far from all others ----

    def with_steps(self, name, took):
        """A loop whose steps took that long, in ms, all of it computing."""
        ns = [int(ms * scene.MS) for ms in took]
        report = scene.report(len(took))
        report["steps"] |= {"warmup": 0, "steady": scene.dist(ns), "all": scene.dist(ns), "histogram": scene.histogram(ns), "slowest": [],
                            "series": [{"index": i, "start": 0, "steps": 1, "duration": v, "longest": v, "shortest": v, "median": v, "items": 1,
                                        "kinds": {"compute": v}} for i, v in enumerate(ns)]}
        self.file(name + ".json", json.dumps(report))
        return self.open_watched(self.make(name + ".json", name + ".html"), width=1280, height=900)

    def columns(self, page, chart, colour):
        """In how many of a hundred columns of the plot its lower end has this colour."""
        return page.ask(f"""(() => {{
            const canvas = document.querySelector('#{chart} canvas'), over = document.querySelector('#{chart} .u-over');
            const box = over.getBoundingClientRect(), at = canvas.getBoundingClientRect(), probe = document.createElement('canvas').getContext('2d');
            probe.fillStyle = colourOf('{colour}'); probe.fillRect(0, 0, 1, 1);
            const wanted = probe.getImageData(0, 0, 1, 1).data, y = Math.round((box.bottom - at.top - 4) * devicePixelRatio);
            const row = canvas.getContext('2d').getImageData((box.left - at.left) * devicePixelRatio, y, box.width * devicePixelRatio, 1).data;
            let found = 0;
            for (let i = 0; i < row.length; i += 4) found += [0, 1, 2].every((k) => Math.abs(row[i + k] - wanted[k]) < 8);
            return 400 * found / row.length; }})()""".replace("colourOf", "named"))

    def test_one_outlier_leaves_the_bars_their_width(self):
        usual = [40 + (i * 7 % 23) / 10 for i in range(60)]
        for name, far in (("linear", 400), ("logarithmic", 90_000), ("shorter", 0.01)):
            with self.subTest(name):
                page = self.with_steps(name, [*usual, far])
                page.frames(3)
                self.assertGreater(self.columns(page, "chart-shape", "main"), 8)
                note = page.ask("document.querySelector('#chart-shape .meta').textContent")
                self.assertIn("Of these 1 is outside the part that is shown.", note)
                show = "[...document.querySelectorAll('#chart-shape button')].find((b) => b.textContent === 'Show all')"
                self.assertFalse(page.ask(show + ".hidden"))
                page.ask(show + ".click()")
                page.frames()
                self.assertTrue(page.ask(show + ".hidden"))
                page.close()
        page = self.with_steps("two", [40, 41, 42, 400, 410, 420] * 10)  # two sorts are no outliers
        self.assertNotIn("outside", page.ask("document.querySelector('#chart-shape .meta').textContent"))
        page.close()

    def test_a_step_above_the_chart_is_marked(self):
        page = self.with_steps("above", [*([40] * 50), 200, *([43] * 50)])
        page.frames(3)
        note = "document.querySelector('#chart-kinds .meta').textContent"
        self.assertIn("One step of 200\u202fms is above the chart, marked ▲.", page.ask(note))
        warning = page.ask("inkOf('chart-kinds')")
        press = page.ask("(() => { const b = [...document.querySelectorAll('#chart-kinds button')].find((b) => b.textContent.startsWith('Usual'));"
                         "const was = b.getAttribute('aria-pressed'); b.click(); return [was, b.getAttribute('aria-pressed'), b.hidden]; })()")
        self.assertEqual(press, ["true", "false", False])
        page.frames()
        self.assertNotIn("above", page.ask(note))
        self.assertGreater(len(warning), len(page.ask("inkOf('chart-kinds')")))  # the mark's colour
        page.close()

    def test_no_line_goes_through_a_name(self):
        """p50, p95 and p99 near each other: a line that is drawn behind a name's place is drawn before it."""
        page = self.with_steps("near", [40 + i / 50 for i in range(100)])
        page.frames(3)
        seen = page.ask("written.filter((w) => w.canvas === document.querySelector('#chart-shape canvas')).map(({ text, line, x, wide, align }) => ({ text, line, x, wide, align }))")
        last = max(i for i, what in enumerate(seen) if (what.get("text") or "").startswith("p50"))
        names = [what for what in seen[last:] if what.get("text")]
        self.assertEqual([name["text"].split()[0] for name in names], ["p50", "p95", "p99"])
        self.assertEqual([what for what in seen[last:] if what.get("line")], [])
        page.close()


# ---- the page of a capture ----

# Why its step was slow, both steps as a timeline, the call tree.

MS = traces.MS

TOLD = "document.querySelector('#timeline .told').textContent"


def text_of(page, chosen):
    return page.ask(f"document.querySelector('{chosen}').innerText")


class SlowStep(Pages):
    """One page of a capture for all tests, made at the first."""

    made = None

    def setUp(self):
        if SlowStep.made is None:
            events, rows = traces.loop([2 * MS, 2 * MS + 40_000, 2 * MS - 20_000, 43 * MS])
            self.file("slow.json", traces.capture(events, rows, kernels=[41]))
            SlowStep.made = self.open(self.make("slow.json", "slow.html"))
            SlowStep.made.frames()
        self.shown = SlowStep.made

    def focus(self, pane):
        self.shown.ask(f"document.querySelectorAll('#timeline canvas')[{pane}].focus()")
        self.shown.key("Escape")

    def ink(self, pane):
        url = self.shown.ask(f"document.querySelectorAll('#timeline canvas')[{pane}].toDataURL()")
        return hashlib.sha256(url.encode()).hexdigest()

    def test_it_says_why(self):
        self.sound(self.shown)
        text = text_of(self.shown, "#slow")
        self.assertIn("step 41 took 53.7\u202fms, 4.23 × the median", text)
        self.assertIn("load +41.0\u202fms; all else", text)
        self.assertRegex(text, r"loader: read file\s+43.0\u202fms\s+3.00\u202fms\s+\+40.0\u202fms")
        self.assertRegex(text, r"GPU 0: gemm\s+1.00\u202fms\s+1.00\u202fms")
        self.assertRegex(text, r"With kernels\s+41")
        self.assertNotRegex(text, "NaN|undefined|Infinity|null")
        self.assertEqual(self.shown.ask("document.querySelector('main section').id"), "slow")

    def test_both_steps_are_drawn_at_one_scale(self):
        for pane in 0, 1:
            colours = self.shown.ask(f"""(() => {{
                const canvas = document.querySelectorAll('#timeline canvas')[{pane}], seen = new Set();
                const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
                for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) seen.add(data[i] + ',' + data[i + 1] + ',' + data[i + 2]);
                return seen.size; }})()""")
            self.assertGreater(colours, 2)
        data = json.loads(self.shown.ask("document.getElementById('timeline-data').textContent"))
        self.assertEqual([(step["index"], step["took"]) for step in data["steps"]], [(41, 53_700_000), (38, 12_700_000)])
        self.assertEqual([lane["sort"] for lane in data["lanes"]].count("device"), 1)

    def test_keys_choose_and_zoom(self):
        self.focus(0)
        self.assertIn("use the arrow keys", self.shown.ask(TOLD))
        whole = self.ink(0)
        self.shown.key("ArrowRight")
        self.assertEqual(self.shown.ask(TOLD), "load, 43.0\u202fms on trainer, 0\u202fns after the step’s beginning")
        self.shown.key("ArrowRight")
        self.assertIn("forward, 10.2\u202fms on trainer, 43.0\u202fms", self.shown.ask(TOLD))
        self.shown.key("ArrowDown")
        self.assertIn("attention, 3.00\u202fms", self.shown.ask(TOLD))
        self.shown.key("ArrowUp")
        self.assertIn("forward,", self.shown.ask(TOLD))
        chosen = self.ink(0)
        self.shown.key("+")
        self.assertNotEqual(self.ink(0), chosen)
        self.shown.key("Escape")
        self.assertEqual(self.ink(0), whole)
        self.focus(1)
        self.shown.key("ArrowRight")
        self.assertIn("load, 2.00\u202fms", self.shown.ask(TOLD))
        self.shown.key("Escape")

    def test_the_mouse_chooses_and_moves(self):
        self.focus(0)
        x, y, wide = self.shown.ask("(() => { const c = document.querySelector('#timeline canvas'); c.scrollIntoView({block: 'center'});"
                                    "const b = c.getBoundingClientRect(); return [b.x, b.y, b.width]; })()")
        self.shown.mouse("Moved", x + wide / 3, y + 26)
        self.assertIn("load, 43.0", self.shown.ask(TOLD))
        self.shown.key("ArrowRight")  # forward: near it there is more than one slice
        self.shown.ask("document.querySelector('#timeline .tools button').click()")
        before = self.ink(0)
        self.shown.ask("""(() => { const c = document.querySelector('#timeline canvas'), b = c.getBoundingClientRect();
            const at = (type, x) => c.dispatchEvent(new PointerEvent(type, { clientX: b.x + x, clientY: b.y + 26, buttons: 1, bubbles: true }));
            at('pointerdown', 200); at('pointermove', 120); at('pointerup', 120); })()""")
        self.assertNotEqual(self.ink(0), before)
        self.focus(0)

    def test_the_tree_opens_and_sorts(self):
        names = "[...document.querySelectorAll('#tree tbody th')].map((h) => h.textContent.replace(/[▾▸] /, ''))"
        self.assertIn("attention", self.shown.ask(names))
        toggle = "document.querySelector('#tree tbody button[aria-expanded]')"
        self.shown.ask(f"{toggle}.focus()")
        self.shown.key("Enter")
        self.assertEqual(self.shown.ask(f"{toggle}.getAttribute('aria-expanded')"), "false")
        self.assertNotIn("attention", self.shown.ask(names))
        self.assertTrue(self.shown.ask(f"document.activeElement === {toggle}"))
        self.shown.ask("document.querySelector('[data-sort=calls]').click()")
        self.assertEqual(self.shown.ask("document.querySelector('#tree th[aria-sort]').textContent"), "Calls ↓")
        calls = self.shown.ask("[...document.querySelectorAll('#tree tbody tr')].map((r) => Number(r.cells[1].textContent))")
        self.assertEqual(calls, sorted(calls, reverse=True))
        self.shown.ask("document.querySelector('[data-sort=time]').click()")
        self.shown.ask("document.querySelector('#tree .tools button').click()")
        self.assertIn("attention", self.shown.ask(names))

    def test_on_a_phone(self):
        page = self.open(os.path.join(self.folder, "slow.html"), width=390, height=800)
        page.frames()
        self.sound(page)
        self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), 390)
        self.assertLessEqual(page.ask("document.querySelector('#slow table').getBoundingClientRect().right"), 390)
        self.assertGreater(page.ask("document.querySelector('#timeline canvas').clientWidth"), 280)
        page.close()

    def test_names_are_not_markup(self):
        events, rows = traces.loop([2 * MS, 43 * MS])
        hostile = [line.replace('"load"', json.dumps(scene.HOSTILE)).replace('"loader"', json.dumps(scene.HOSTILE)) for line in events]
        self.file("hostile.json", traces.capture(hostile, rows, text=scene.HOSTILE))
        page = self.open(self.make("hostile.json", "hostile.html"))
        self.sound(page)
        page.ask("document.querySelector('#timeline canvas').focus()")
        page.key("ArrowRight")
        self.assertIn("</script>", page.ask(TOLD))
        self.sound(page)
        page.close()

    def test_the_longest_step_of_a_trace(self):
        self.file("trace.json", traces.trace())
        page = self.open(self.make("trace.json", "trace.html"))
        self.sound(page)
        self.assertEqual(page.ask("document.querySelector('#slow h2').textContent"), "The longest step")
        self.assertEqual(page.ask("document.querySelectorAll('#timeline canvas').length"), 2)
        page.close()

    def test_its_size_is_bounded(self):
        lines, now = [traces.named(traces.PID, "main")], 0
        for step in range(2):
            begin = now
            for i in range(60_000):
                lines.append(traces.slice_of(f"r{i % 7}", traces.PID, now, now + 700 + 300 * step))
                now += 1500 + 300 * step
            lines.append(traces.step_of(step, begin, now))
        self.file("many.json", traces.trace(lines))
        path = self.make("many.json", "many.html")
        self.assertLess(os.path.getsize(path), 2_000_000)
        page = self.open(path)
        self.sound(page)
        data = json.loads(page.ask("document.querySelector('script#timeline-data').textContent"))
        self.assertLessEqual(len(data["slices"]), 20_000)
        self.assertEqual(sum(row[6] for row in data["slices"]), 120_000)
        self.assertIn("are drawn together with their neighbours", text_of(page, "#slow"))
        page.close()

    def test_a_report_has_none_of_it(self):
        self.assertIsNone(self.page.ask("document.getElementById('slow')"))
        self.assertIsNone(self.page.ask("document.getElementById('tree')"))
        done = run("--html", "-", os.path.join(self.folder, "run.json"))
        self.assertNotIn(b"timeline-data", done.stdout.replace(b"embedded('timeline-data')", b""))


# ---- the page of `pk report --html` in headless Chromium ----

# Exit status 77: there is no browser here, or this pk was built without charts.

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
