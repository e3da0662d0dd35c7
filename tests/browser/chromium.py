"""chromium.py - pages in headless Chromium, as tests and pictures need them: through its DevTools protocol, over a pipe
of its own, so that no port is open and no library is needed.

    with chromium.Browser() as browser:
        page = browser.page("file:///...", width=1200, height=800, dark=True)
        page.wait("document.querySelector('table')")          # until it is true
        rows = page.ask("document.querySelectorAll('tr').length")
        page.picture("out.png")
        assert not page.errors                                 # exceptions, console.error, what did not load

One start of the browser serves any number of pages. Served(name=FOLDER, ...) serves files on 127.0.0.1, as /name/...,
for pages that may not read files."""

import base64
import functools
import http.server
import json
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
LIMIT = 60  # seconds for anything


class Absent(Exception):
    """There is no browser, or it does not start here."""


class Failed(Exception):
    """The page did not do what was asked."""


def command(profile):
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if not path:
        raise Absent("Chromium is not installed (chromium-headless-shell)")
    return [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-site-isolation-trials", "--renderer-process-limit=1",
            "--force-color-profile=srgb", "--font-render-hinting=none", "--remote-debugging-pipe",
            f"--user-data-dir={profile}", "about:blank"]


class Browser:
    """The process, and the two pipes on which it listens and answers."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pk-chromium-", ignore_cleanup_errors=True)
        theirs_in, self.ours_out = os.pipe()
        self.ours_in, theirs_out = os.pipe()
        self.pages, self.answers, self.number, self.rest = {}, {}, 0, b""
        # It wants them as 3 and 4, whatever they are here.
        pipes = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "chromium"]
        self.process = subprocess.Popen([*pipes, *command(self.folder.name)], pass_fds=(theirs_in, theirs_out),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, HOME=self.folder.name, TMPDIR=self.folder.name))
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self):
        try:
            self.send("Browser.getVersion")
        except Failed as failed:
            self.close()
            raise Absent(f"Chromium does not start here: {failed}") from failed
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            os.write(self.ours_out, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.ours_out)
        os.close(self.ours_in)
        self.clean()

    def clean(self):
        """Its children end a little later than it does, and write until then."""
        end = time.monotonic() + LIMIT
        while os.path.exists(self.folder.name) and time.monotonic() < end:
            shutil.rmtree(self.folder.name, ignore_errors=True)
            time.sleep(0.05)
        self.folder.cleanup()

    def send(self, method, session=None, **params):
        """Asks, and waits for the answer."""
        self.number += 1
        number, message = self.number, {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.ours_out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + LIMIT
        while number not in self.answers:
            self.receive(end, method)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def receive(self, end, what):
        ready = select.select([self.ours_in], [], [], max(end - time.monotonic(), 0))[0]
        data = os.read(self.ours_in, 1 << 20) if ready else b""
        if not data:
            raise Failed(f"{what}: {'no answer' if not ready else 'the browser is gone'}")
        *messages, self.rest = (self.rest + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            elif page := self.pages.get(message.get("sessionId")):
                page.hear(message["method"], message["params"])

    def page(self, url, **options):
        return Page(self, url, **options)


class Page:
    """One page. errors: all that its console calls an error."""

    def __init__(self, browser, url, width=1280, height=800, dark=False, scale=1, mobile=False):
        self.browser, self.errors, self.loaded, self.title = browser, [], False, None
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.target = target
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")
        self.size(width, height, scale, mobile)
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.go(url)

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def size(self, width, height, scale=1, mobile=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=mobile)

    def hear(self, method, params):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def go(self, url):
        """Opens it, and waits until it has loaded."""
        self.loaded = False
        self.send("Page.navigate", url=url)
        end = time.monotonic() + LIMIT
        while not self.loaded:
            self.browser.receive(end, url)

    def ask(self, expression):
        """What the expression, or its promise, comes to."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if details := answer.get("exceptionDetails"):
            raise Failed(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait(self, expression, limit=None):
        """Until the expression is true; what it is then."""
        end = time.monotonic() + (limit or LIMIT)
        while not (value := self.ask(expression)):
            if time.monotonic() > end:
                raise Failed(f"never true: {expression}; errors: {self.errors}")
            time.sleep(0.02)
        return value

    def frames(self, count=2):
        """Lets it draw."""
        self.ask("new Promise(done => { let n = %d; const next = () => n-- ? requestAnimationFrame(next) : done(); next(); })"
                 % count)

    def key(self, key, code=None, number=None):
        """Presses a key: "a", "Tab", "Enter", "ArrowRight", ..."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        more = {"code": code or key, "windowsVirtualKeyCode": number or KEYS.get(key, ord(key[0].upper()))}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def mouse(self, kind, x, y, **more):
        """kind: Moved, Pressed, Released, Wheel"""
        self.send("Input.dispatchMouseEvent", type="mouse" + kind, x=x, y=y, **more)

    def click(self, x, y):
        for kind in ("Pressed", "Released"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def picture(self, path, clip=None, whole=False):
        """A PNG; of clip = (x, y, width, height), or of the whole page."""
        more = {"clip": dict(zip(("x", "y", "width", "height"), clip), scale=1)} if clip else {}
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **more)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.browser.send("Target.closeTarget", targetId=self.target)
        self.browser.pages.pop(self.session, None)


KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
        "Home": 36, "End": 35}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of several folders, by their names."""

    def __init__(self, *args, folders, **more):
        self.folders = folders
        super().__init__(*args, **more)

    def translate_path(self, path):
        name, _, rest = path.split("?")[0].split("#")[0].lstrip("/").partition("/")
        self.directory = self.folders.get(name, "/nowhere")
        return super().translate_path("/" + rest)

    def log_message(self, *_):
        pass


class Served:
    """The folders at self.url + "/name/" while the `with` lasts."""

    def __init__(self, **folders):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, folders=folders))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
