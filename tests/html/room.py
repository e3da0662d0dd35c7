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
