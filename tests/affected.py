"""affected.py SOURCE BUILD FILE... - what has to be built and tested after these files were edited, as lines:

    build TARGET        for ninja; none if there is nothing to build
    all                 to be built: what the suites need, and the objects of the rest
    suite NAME          a whole suite
    test NAME           one test
    page docs/PAGE.md   a page of the documentation, whose blocks are run

Files below tests/ affect the tests that are made of them or run them, which ninja and meson know. All others affect the
suites of FOLDERS, the first entry that fits; what is in none of them is the documentation's, the packages' or ours."""

import glob
import json
import os
import re
import subprocess
import sys

ALWAYS = ["house"]
FOLDERS = [
    # that each rule can fail, and what ./dev does with tests
    (("tests/house/", "tests/affected.py", "tests/tally.py", "tests/targets.py", "dev"), ["proof"]),
    ("include/", ["unit", "headers", "abi", "ffi"]),
    ("lib/comm/plugin/", ["unit", "nccl"]),
    ("lib/backend/nvtx/", ["unit", "nvtx"]),
    ("lib/backend/shim", ["nvtx", "nccl"]),
    ("lib/comm/nccl/", ["nccl"]),
    ("lib/comm/mpi/", ["mpi"]),
    ("lib/attach/", ["unit", "tools"]),
    ("lib/core/ffi", ["unit", "ffi"]),
    ("lib/", ["unit", "tools"]),
    ("tools/html/", ["tools", "html"]),
    ("tools/", ["tools"]),
    ("bindings/", ["ffi"]),
    ("contrib/", ["contrib", "ffi"]),
    ("examples/", ["examples"]),
    ("package/", ["install"]),
]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read(source, name):
    with open(os.path.join(source, name), encoding="utf-8") as file:
        return file.read()


def known_to_meson(build, what):
    """What `meson introspect` would say, without meson's second of starting up."""
    with open(os.path.join(build, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
        return json.load(file)


def objects_of(build, files):
    """The object files that one of these is compiled into, headers included, as ninja has seen it."""
    wanted = {os.path.realpath(file) for file in files}
    names = tuple("/" + os.path.basename(file) for file in files)
    current, found = None, set()
    for line in run("ninja", "-C", build, "-t", "deps").splitlines():
        if line[:1].strip():
            current = line.split(": #deps")[0]
        elif line.endswith(names) and os.path.realpath(os.path.join(build, line.strip())) in wanted:
            found.add(current)
    return found


def outputs_of(build, files):
    """What is linked of them: a target's objects lie in a folder of its name and .p."""
    return {os.path.join(build, name.split(".p/")[0]) for name in objects_of(build, files) if ".p/" in name}


def tests_of(build, files):
    """(tests, targets) of what lies below tests/: what runs the file or a program made of it, and what depends on one."""
    outputs = outputs_of(build, files)
    targets = {target["id"]: target["filename"] for target in known_to_meson(build, "targets")}
    of_output = {os.path.realpath(name): key for key, names in targets.items() for name in names}
    ids = {of_output[os.path.realpath(o)] for o in outputs if os.path.realpath(o) in of_output}
    paths = {os.path.realpath(p) for p in list(outputs) + list(files)}
    tests = []
    for test in known_to_meson(build, "tests"):
        if ids & set(test["depends"]) or paths & {os.path.realpath(word) for word in test["cmd"]}:
            tests.append(test["name"])
    return tests, sorted(os.path.relpath(name, build) for key in ids for name in targets[key])


def suites_of(file):
    for folder, suites in FOLDERS:
        if file.startswith(folder):
            return suites
    return []


def is_test(file):
    return file.startswith("tests/") and not suites_of(file)


def suites_below(build, files):
    """Files below tests/ of which no target is made and which no test names, such as a golden file: their folder's suite."""
    known = {suite.split(":")[-1] for test in known_to_meson(build, "tests")
             for suite in test["suite"]}
    for file in files:
        folder = file.split("/")[1]
        yield {"golden": "unit", "browser": "html", "fake": "unit"}.get(folder, folder if folder in known else "unit")


def is_page(file):
    return file.endswith(".md")


def called_by(source, build, page):
    """What the blocks of a page may call: all that is installed, the examples, and what of the tests is named there or in
    what such pages are given."""
    texts = [page, *glob.glob("tests/docs/given/*.sh", root_dir=source)]
    text = "".join(read(source, name) for name in texts if os.path.exists(os.path.join(source, name)))
    named = set(re.findall(r"(?:\$BUILD|build/check/gcc)/([\w/.-]+)", text))
    for target in known_to_meson(build, "targets"):
        folder = os.path.relpath(target["defined_in"], os.path.realpath(source)).split(os.sep)[0]
        for name in (os.path.relpath(name, os.path.realpath(build)) for name in target["filename"]):
            if target["build_by_default"] and folder not in ("tests", "bench") or name in named:
                yield name


def main(source, build, *files):
    suites, tests, targets = list(ALWAYS), [], []
    for file in files:
        suites += suites_of(file)
    for file in filter(is_test, files):
        found, made = tests_of(build, [os.path.join(source, file)])
        tests += found
        targets += made
        if not found:
            suites += suites_below(build, [file])
    for page in filter(is_page, files):
        targets += called_by(source, build, page)
    lines = [f"build {name}" for name in targets]
    if any(suites_of(file) for file in files) or len(suites) > len(ALWAYS):
        lines.append("all")
    lines += [f"suite {name}" for name in suites]
    lines += [f"test {name}" for name in tests]
    lines += [f"page {file}" for file in filter(is_page, files)]
    print("\n".join(dict.fromkeys(lines)))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
