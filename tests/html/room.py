"""room.py - what the page does where there is little room for much: long names, narrow screens, one value far from all others."""

import json

from opened import Pages, scene

LONG = 10_000
FULL = "document.documentElement.scrollWidth"

# In first columns: words, whole or between dots, dashes and the like, that stand in two lines.
BROKEN = """[...document.querySelectorAll('tr > :first-child')].flatMap((cell) => {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [], range = document.createRange();
    while (walk.nextNode()) for (const word of walk.currentNode.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
        if (word[0].length > 14 || !cell.clientWidth) continue;
        range.setStart(walk.currentNode, word.index);
        range.setEnd(walk.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) found.push(word[0]);
    }
    return found;
})"""
# Tables that are wider than their place and say nothing, or say so and are not.
UNTOLD = """[...document.querySelectorAll('.scroll')].filter((area) => area.clientWidth &&
    (area.scrollWidth > area.clientWidth + 1) !== (area.classList.contains('to-right') && area.nextElementSibling.checkVisibility() &&
        area.nextElementSibling.textContent.includes('scroll sideways'))).map((area) => area.textContent.slice(0, 60))"""


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
