"""viewers.py - the programs that read traces: where they come from, and what they say of one."""

import fcntl
import glob
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = "usr/share/go-*/src/**/trace_viewer_full.html"  # `go tool trace` shows catapult's page
PAGE_PACKAGE = "golang-1.19-src"  # Debian 12's
LEAST_NODE = 18
OURS = ("EINTEGRITY", "EUSAGE")  # npm's complaints that are about the lock file
NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1",
               "--fetch-timeout=30000")


class Skip(Exception):
    """This viewer cannot be had here."""


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


def install(folder):
    """npm's packages, exactly those of the lock file. Their scripts are not run."""
    done = run(tool("npm"), "ci", *NPM_OPTIONS, cwd=folder)
    if done.returncode == 0:
        return
    lines = [line for line in done.stderr.splitlines() if re.match(r"npm (error|ERR!) ", line)]
    if any(code in line for line in lines for code in OURS):
        raise RuntimeError("\n".join(lines))
    raise Skip("npm ci: " + (lines[0] if lines else f"exit status {done.returncode}"))


def text_in(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def modules(build):
    """The folder of npm's packages, made once and anew when the lock file changes."""
    folder, source = os.path.join(build, "npm"), os.path.join(HERE, "npm")
    mark = os.path.join(folder, "installed")
    wanted = text_in(os.path.join(source, "package-lock.json"))
    with Alone(build):
        if text_in(mark) != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(source, folder)
            install(folder)
            with open(mark, "w", encoding="utf-8") as file:
                file.write(wanted)
    return os.path.join(folder, "node_modules")


def fetch_page(folder):
    """Out of Debian's package, which need not be installed for that."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    got = run(tool("apt-get"), "download", PAGE_PACKAGE, cwd=folder)
    packages = glob.glob(os.path.join(folder, "*.deb"))
    if got.returncode or not packages:
        why = (got.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Skip(f"apt-get download {PAGE_PACKAGE}: {why}")
    subprocess.run([tool("dpkg-deb"), "-x", packages[0], folder], check=True)
    os.remove(packages[0])


def page(build):
    folder = os.path.join(build, "page")

    def found():
        return [path for root in ("/", folder)
                for path in glob.glob(os.path.join(root, PAGES), recursive=True)]

    with Alone(build):
        if not found():
            fetch_page(folder)
    if not found():
        raise Skip(f"{PAGE_PACKAGE} has no trace viewer")
    return found()[0]


# ---- asking them ----

def ask(script, *args):
    asked = run(node(), os.path.join(HERE, script), *args, timeout=120)
    if asked.returncode:
        raise RuntimeError(f"{script}: {asked.stderr.strip()[-2000:]}")
    return json.loads(asked.stdout)


def perfetto(path, build):
    node()
    return ask("perfetto.mjs", modules(build), path)


def speedscope(path, build):
    node()
    return ask("speedscope.mjs", modules(build), path)


def catapult(path, build):
    node()
    return ask("catapult.mjs", page(build), path)


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


def sqlite(path, _):
    """SQL's view: no nesting, but every event, through a parser that takes nothing but JSON."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        text = file.read()
    base = sqlite3.connect(":memory:")
    base.execute("create table event as select value e from json_each(?, '$.traceEvents')", [text])
    base.execute("create view track as select distinct e ->> 'tid' tid, e ->> '$.args.name' name from event"
                 " where e ->> 'name' = 'thread_name' and e ->> 'ph' = 'M'")
    seen = {what: [list(row) for row in base.execute(sql)] for what, sql in SQL.items()}
    seen["processes"], seen["tracks"] = sum(seen["processes"], []), sum(seen["tracks"], [])
    valid = base.execute("select json_valid(?)", [text]).fetchone()[0]
    return {"errors": [] if valid else ["not JSON"], **seen}


VIEWERS = {"perfetto": perfetto, "speedscope": speedscope, "catapult": catapult, "sqlite": sqlite}
MARKS_ARE_SLICES = ("perfetto", "catapult", "sqlite")
