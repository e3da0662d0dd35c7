"""traces.py - the traces that the viewers get to see, and what each has to show."""

import json
import os
import shutil
import signal
import subprocess

MODES = {"flushed": "pause", "killed": "kill", "drained": "drain", "died": "die"}
KILLED = ("killed", "drained", "died")  # last events in memory; all in the file; just in a region


class Wrong(Exception):
    """The trace could not be made."""


def start(program, path, mode, clock):
    """The program, without a word from the environment about how to record."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PK_")}
    if clock:
        env["PK_CLOCK"] = clock
    return subprocess.Popen([program, path, mode], env=env, text=True, encoding="utf-8",
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def expect_exit(run, code):
    if run.wait() != code:
        raise Wrong(f"make_trace: exit status {run.returncode} where {code} was expected")


def without_open(want):
    """What has been flushed lacks the regions that are still open: the outermost of one track."""
    for row in want["slices"] + want["marks"]:
        if row[0] == "main":
            row[3] -= want["open"]
            row[2] = row[2] if row[3] else None
    return want


def flushed(run, path):
    """The file as it is between two flushes."""
    want = without_open(json.loads(run.stdout.readline()))
    copy = path.replace("run.", "copy.")
    shutil.copy(path, copy)
    run.communicate("go on\n")
    expect_exit(run, 0)
    return copy, want


def recover(pk, path):
    """What `pk recover` makes of a killed run."""
    whole = path.replace("run.", "recovered.")
    done = subprocess.run([pk, "recover", path + ".arena", "-o", whole], capture_output=True,
                          text=True)
    if done.returncode:
        raise Wrong(f"pk recover: {done.stderr.strip()}")
    return whole


def program_of(kind, tools):
    return tools["coarse" if kind == "coarse" else "program"]


def make(kind, tools, folder):
    """(path, what it has to show)"""
    what, _, ending = kind.partition("-")
    path = os.path.join(folder, "run.json" + ("." + ending if ending else ""))
    clock = "monotonic" if what == "coarse" else None
    run = start(program_of(kind, tools), path, MODES.get(what, ""), clock)
    if what == "flushed":
        return flushed(run, path)
    said = run.communicate()[0].splitlines()
    expect_exit(run, -signal.SIGKILL if what in KILLED else 0)
    return recover(tools["pk"], path) if what in KILLED else path, json.loads(said[1])
