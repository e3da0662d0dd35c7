"""pages.py BUILD NAME=PATH... - the same traces in the viewers' own pages, in headless Chromium, which is started once
for all: what speedscope and catapult show on the screen, and no error in their consoles. Perfetto's page comes from
its makers' server only; its engine, which is all that reads a trace there, is asked by perfetto.mjs.

Exit status 77: there is no browser, or none of the pages."""

import os
import re
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, ".."), os.path.join(HERE, "../../browser")]

import chromium  # noqa: E402
import make  # noqa: E402
import truth  # noqa: E402
import viewers  # noqa: E402

TITLE = re.compile(r"^(.*) \(pid (\d+)\), (.*) \(tid (\d+)\) \((\d+)/(\d+)\)$", re.MULTILINE)
RANK = re.compile(r"mpi_stencil-[1-9]")  # they are in the merged one
STEP = "ProfilerStep#"


def frames(document):
    """(pid, tid) -> names of its slices."""
    found = {}
    for e in document["traceEvents"]:
        if e["ph"] == "X":
            found.setdefault((e["pid"], e["tid"]), set()).add(e["name"])
    return found


def names_in_table(text):
    """Of speedscope's table: self time, total time, name, each on its line; arguments behind the name."""
    lines = [line.strip() for line in text.split("Symbol Name", 1)[-1].split("\n")]
    return {re.sub(r" \{\".*\}$", "", line) for line in lines[3::3] if line}


def settled(page, text, wanted):
    """What the table shows when it has been drawn: at the latest after ten seconds."""
    end = time.monotonic() + 10
    while names_in_table(text) != wanted and time.monotonic() < end:
        page.frames(1)
        text = page.ask("document.body.innerText")
    return names_in_table(text)


def rows_of(document):
    """The most lines that a table of one track has: names with each of their arguments."""
    lines = {}
    for e in document["traceEvents"]:
        if e["ph"] == "X":
            lines.setdefault((e["pid"], e["tid"]), set()).add((e["name"], str(e.get("args"))))
    return max(map(len, lines.values()))


def speedscope(browser, served, name, document):
    """Each track by itself, in the view that lists what is in it. The page makes only those rows that can be seen."""
    wanted, threads = frames(document), truth.names_of(document["traceEvents"], "thread_name")
    page = browser.page(f"{served.url}/speedscope/index.html#profileURL={served.url}/traces/{name}", width=600,
                        height=300 + 20 * rows_of(document))
    page.wait(r"/\(tid \d+\)/.test(document.body.innerText)")
    page.key("3")
    page.wait("/Symbol Name/.test(document.body.innerText)")
    tracks = len(wanted)
    for number in range(1, tracks + 1):
        text = page.wait(f"document.body.innerText.includes('({number}/{tracks})') && document.body.innerText")
        title = TITLE.search(text)
        track = int(title.group(2)), int(title.group(4))
        if title.group(3) != threads.get(track):
            yield f"{title.group(0)}: the track is {threads.get(track)}"
        if (shown := settled(page, text, names := wanted.pop(track, set()))) != names:
            yield f"{title.group(0)}: shows {shown}"
        page.key("n")
        page.frames(1)
    yield from page.errors
    page.close()


FIND = """(() => {
    const box = document.querySelector('tr-ui-find-control #filter');
    box.value = '%s';
    box.dispatchEvent(new Event('input'));
})()"""


def catapult(browser, served, name, document):
    """Names of processes and tracks, and how many steps its search finds."""
    events, page = document["traceEvents"], the_page(browser, served)
    page.ask(f"open_trace('{name}')")
    page.wait("document.querySelectorAll('tr-ui-b-heading').length")
    threads = truth.names_of(events, "thread_name")
    used = {threads[e["pid"], e["tid"]] for e in events if e["ph"] == "X"}
    names = used | set(truth.names_of(events, "process_name").values())
    end = time.monotonic() + 10
    while (missing := [name for name in names if name not in page.ask("document.body.innerText")]) \
            and time.monotonic() < end:
        page.frames(1)
    if missing:
        yield f"no track or process is called {missing}"
    steps = sum(e["name"].startswith(STEP) for e in events)
    page.ask(FIND % STEP)
    try:
        page.wait(f"document.querySelector('#hitCount').innerText.endsWith('of {steps}')", 20)
    except chromium.Failed:
        yield f"{steps} steps recorded, found: {page.ask('document.querySelector(`#hitCount`).innerText')}"
    yield from page.errors
    page.errors.clear()


def the_page(browser, served):
    """catapult's takes a second to start, and opens one trace after the other."""
    found = next((page for page in browser.pages.values() if page.title == "catapult"), None)
    if not found:
        found = browser.page(f"{served.url}/here/catapult.html", width=800, height=600)
        found.title = "catapult"
        found.wait("!!window.view")
    return found


def look(pages, folders, paths, documents):
    found = {}
    with chromium.Served(**folders) as served, chromium.Browser() as browser:
        for show in pages:
            for path, document in zip(paths, documents):
                name = os.path.basename(path)
                try:
                    found[f"{show.__name__}: {name}"] = list(show(browser, served, name, document))
                except chromium.Failed as failed:
                    found[f"{show.__name__}: {name}"] = [str(failed)]
    return found


def get(build):
    """The pages that can be had, and where they are."""
    pages, folders, reasons = [], {}, []
    for page, folder in ((speedscope, lambda: viewers.package("speedscope", build)),
                         (catapult, lambda: os.path.dirname(viewers.page(build)))):
        try:
            folders[page.__name__] = folder()
            pages.append(page)
        except viewers.Skip as reason:
            reasons.append(str(reason))
    if not pages:
        raise viewers.Skip("; ".join(reasons))
    return pages, folders


def main(build, *named):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and take the folder along
    tools = dict(word.split("=", 1) for word in named)
    traces = os.path.join(build, "traces")
    try:
        pages, folders = get(os.path.dirname(build))
        with viewers.Alone(build):
            paths = [path for path in make.make(tools, traces) if not RANK.search(path)]
        documents = [truth.load(make.text_of(path)) for path in paths]
        found = look(pages, folders | {"traces": traces, "here": HERE}, paths, documents)
    except (viewers.Skip, chromium.Absent) as reason:
        print(reason)
        return 77
    except make.Wrong as reason:
        found = {"traces": [str(reason)]}
    for name, complaints in found.items():
        print("\n".join(f"{name}: {complaint}" for complaint in complaints[:12]) or f"{name}: as recorded")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
