"""What the tests on a GPU that are in Python share; tests/gpu/gpu.h is the same for those in C."""

import glob
import json
import os
import sys

failures = 0


def append(key, text):
    path = os.environ.get("PK_GPU_FIGURES")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{key}\t{text}\n")


def skip(reason):
    print(f"skipped: {reason}", flush=True)
    sys.exit(77)


def figure(key, text):
    print(f"  {key:28} {text}", flush=True)
    append(key, text)


def check(so, text):
    global failures
    if not so:
        failures += 1
        name = os.path.basename(sys.argv[0])
        print(f"{name}: not so: {text}", flush=True)
        append("wrong", f"{name}: not so: {text}")
    return so


def finish():
    sys.exit(1 if failures else 0)


def library(build, name):
    """A shared library of a build folder, of meson's or of one to be carried."""
    for folder in ("lib", "lib/comm/nccl"):
        for path in sorted(glob.glob(os.path.join(build, folder, name))):
            return path
    return None


def import_torch():
    try:
        import torch
    except Exception as error:
        skip(f"torch is not there: {type(error).__name__}: {error}".split("\n", 1)[0])
    if not torch.cuda.is_available():
        skip(f"torch {torch.__version__} has no GPU here")
    return torch


def trace_of(path):
    """The events of a trace, and its head."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    return trace["traceEvents"], trace


def of_category(events, category):
    return [event for event in events if event.get("cat") == category and event.get("ph") == "X"]
