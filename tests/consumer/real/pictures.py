"""pictures.py BUILD [OUT] - the pictures of the demo's trace in README.md and docs/: a few steps of examples/train, as
speedscope and catapult (the page behind chrome://tracing) show them. OUT: docs/images.

    python3 -B tests/consumer/real/pictures.py build docs/images"""

import json
import os
import subprocess
import sys
import tempfile

import pages
import chromium
import viewers

CTRL = 2


def train(build, folder):
    """Begin and end of the shortest step, and of the trainer's slices, in microseconds from the first event."""
    path = os.path.join(folder, "train.json")
    subprocess.run([os.path.join(build, "examples/train/pk-train"), "--quiet", "--steps", "6", "--trace", path],
                   check=True, stdout=subprocess.DEVNULL)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    step = min((e for e in events if e["name"].startswith("ProfilerStep#")), key=lambda e: e["dur"])
    whole = [e for e in events if e["ph"] == "X" and e["tid"] == e["pid"]]
    first, last = min(e["ts"] for e in whole), max(e["ts"] + e["dur"] for e in whole)
    zero = min(e["ts"] for e in events if e["ph"] != "M")
    return [time - zero for time in (step["ts"], step["ts"] + step["dur"], first, last)]


def zoom_speedscope(page, begin, end, width):
    """Its wheel zooms by 1 + delta / 40 around the mouse: to begin and end, which are shares of the whole."""
    fixed, shown = begin / (1 - (end - begin)) * width, 1.0
    while shown > end - begin:
        page.mouse("Wheel", fixed, 250, deltaX=0, deltaY=-2, modifiers=CTRL)
        page.frames(1)
        shown *= 1 - 2 / 40


def speedscope(browser, served, out, begin, end, first, last, width=1400):
    page = browser.page(f"{served.url}/speedscope/index.html#profileURL={served.url}/traces/train.json", width=width,
                        height=330, dark=False)
    page.wait(r"/\(tid \d+\)/.test(document.body.innerText)")
    page.frames(5)
    zoom_speedscope(page, (begin - first) / (last - first), (end - first) / (last - first), width)
    page.frames(10)
    page.picture(os.path.join(out, "trace-speedscope.png"), clip=(0, 20, width, 185))


ZOOM = """(() => {
    const viewport = view.trackView.viewport, shown = viewport.currentDisplayTransform.clone();
    const width = document.querySelector('canvas').clientWidth;
    shown.xSetWorldBounds(%f, %f, width);
    viewport.setDisplayTransformImmediately(shown);
})()"""
TIDY = """(() => {
    for (const one of ['tr-ui-b-mouse-mode-selector', 'tr-ui-b-info-bar-group', 'tr-ui-a-analysis-view', 'tr-ui-b-drag-handle',
                       'tr-ui-side-panel-container', '#control'])
        if (document.querySelector(one)) document.querySelector(one).style.display = 'none';
})()"""


def catapult(browser, served, out, begin, end):
    page = browser.page(f"{served.url}/here/catapult.html", width=1400, height=520)
    page.wait("!!window.view")
    page.ask("open_trace('train.json')")
    page.wait("document.querySelectorAll('tr-ui-b-heading').length")
    page.ask(TIDY)
    page.frames(20)
    page.ask(ZOOM % (begin / 1000 - 2, end / 1000 + 2))
    page.frames(20)
    page.picture(os.path.join(out, "trace-catapult.png"), clip=(0, 0, 1400, 236))


def main(build, out="docs/images"):
    parts = os.path.join(build, "tests/consumer")
    with tempfile.TemporaryDirectory() as folder:
        begin, end, first, last = train(build, folder)
        folders = {"speedscope": viewers.package("speedscope", parts), "traces": folder, "here": pages.HERE,
                   "catapult": os.path.dirname(viewers.page(parts))}
        with chromium.Served(**folders) as served, chromium.Browser() as browser:
            speedscope(browser, served, out, begin, end, first, last)
            catapult(browser, served, out, begin, end)


if __name__ == "__main__":
    main(*sys.argv[1:])
