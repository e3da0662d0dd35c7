"""opened.py - pages of `pk report --html`, made, opened and asked."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PK, GOLDEN = sys.argv[1], sys.argv[2]
sys.path.insert(0, sys.argv[3])

import chromium  # noqa: E402
import scene  # noqa: E402

CHARTS = {"chart-steps", "chart-kinds", "chart-shape", "chart-roofline", "chart-memory", "chart-device-memory", "chart-gpu-0", "chart-gpu-1", "chart-comm",
          *(f"chart-counter-{i}" for i in range(8))}

# In the page: what a test asks again and again.
HELP = """
    globalThis.plotOf = (id) => document.querySelector(`#${id} .plot`);
    globalThis.tipOf = (id) => { const tip = document.querySelector(`#${id} .tip`); return tip.hidden ? '' : tip.innerText; };
    globalThis.inkOf = (id) => {
        const canvas = document.querySelector(`#${id} canvas`), seen = new Map();
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) {
            const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
            seen.set(key, (seen.get(key) ?? 0) + 1);
        }
        return [...seen].filter(([, n]) => n > 20).map(([key]) => key);
    };
    globalThis.luminance = (colour) => {
        const canvas = new OffscreenCanvas(1, 1).getContext('2d');
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const part = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
    };
    globalThis.contrast = (a, b) => {
        const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    };
    globalThis.named = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
    true;
"""

# In a page before it draws: what is written on its canvases, and the dashed lines, in order.
WRITTEN = """
    globalThis.written = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
        globalThis.written.push({ text, x, y, canvas: this.canvas, align: this.textAlign, wide: this.measureText(text).width });
        return write.call(this, text, x, y, ...more);
    };
    const line = CanvasRenderingContext2D.prototype.lineTo;
    CanvasRenderingContext2D.prototype.lineTo = function (x, y) {
        if (this.getLineDash().length) globalThis.written.push({ line: x, canvas: this.canvas });
        return line.call(this, x, y);
    };
"""

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


def run(*arguments, **more):
    return subprocess.run([PK, "report", *arguments], capture_output=True, timeout=120, check=False, **more)


class Pages(unittest.TestCase):
    """The page of one run, and of two, made and opened once for all tests."""

    browser, html = None, None

    @classmethod
    def start(cls, browser):
        cls.browser = browser
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = cls.keep.name
        cls.report = scene.report(600)
        cls.file("run.json", json.dumps(cls.report))
        cls.file("other.json", json.dumps(scene.report(500, 37 * scene.MS, 2)))
        cls.html = cls.make("run.json", "run.html")
        cls.both = cls.make("run.json", "both.html", "--against", os.path.join(cls.folder, "other.json"))
        cls.page = cls.open(cls.html)
        cls.page.frames()

    @classmethod
    def stop(cls):
        cls.keep.cleanup()

    @classmethod
    def file(cls, name, text):
        path = os.path.join(cls.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    @classmethod
    def make(cls, name, out, *more):
        path = os.path.join(cls.folder, out)
        done = run("--html", path, *more, os.path.join(cls.folder, name))
        if (done.returncode, done.stdout, done.stderr) != (0, b"", b""):
            raise AssertionError(done)
        return path

    @classmethod
    def open(cls, path, **options):
        page = cls.browser.page("file://" + path, **options)
        page.ask(HELP)
        return page

    @classmethod
    def open_watched(cls, path, **options):
        """The same, and `written` has what its canvases say."""
        page = cls.browser.page("about:blank", **options)
        page.send("Page.addScriptToEvaluateOnNewDocument", source=WRITTEN)
        page.go("file://" + path)
        page.ask(HELP)
        return page

    def charts(self, page):
        return page.ask("[...document.querySelectorAll('figure[id^=chart]')].map((f) => f.id)")

    def sound(self, page):
        """What holds of every page."""
        self.assertEqual(page.ask("document.documentElement.dataset.ready"), "yes")
        self.assertEqual(page.errors, [])
        self.assertEqual(page.ask("typeof globalThis.hurt"), "undefined")
        self.assertEqual(page.ask("performance.getEntriesByType('resource').length"), 0)
