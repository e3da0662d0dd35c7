"""room.py - what the page does where there is little room for much: long names, narrow screens, one value far from all others."""

import json

from opened import Pages, scene

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
