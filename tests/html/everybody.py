"""everybody.py - the page for whoever reads it: by keyboard, by ear, in the dark, on paper, on a phone."""

import itertools
import math

from opened import Pages

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
