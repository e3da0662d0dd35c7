"""targets.py BUILD SUITE... [--but SUITE] [--needed] [--objects] - what ninja has to make so that the tests of these suites can
run there.

That is all of what is installed, and of tests, examples and benchmarks what these tests are or call: to link each of them
for some suites only would take longer than to run those. --needed: of what is installed no more than they call, either.
--objects: all the rest that users may compile is compiled, too, and not linked: for a compiler's warnings."""

import json
import os
import sys

ONLY_FOR_TESTS = ("tests", "examples", "bench")


def read(build, what):
    with open(os.path.join(build, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
        return json.load(file)


def folder_of(target, source):
    return os.path.relpath(target["defined_in"], source).split(os.sep)[0]


def wanted(target, source, needed, alone):
    """Is it built by itself, and is it either perfkit's own or what a test needs?"""
    return target["id"] in needed or (target["build_by_default"] and folder_of(target, source) not in ONLY_FOR_TESTS and not alone)


def objects(build, source):
    """Those of programs that are not built by default, such as a fuzzer's, are left out."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        made = [command["output"] for command in json.load(file)]
    by_default = {os.path.relpath(name, build) + ".p" for target in read(build, "targets")
                  if target["build_by_default"] and folder_of(target, source) != "tests" for name in target["filename"]}
    return [path for path in made if any(path.startswith(folder + "/") for folder in by_default)]


def main(build, *words):
    build = os.path.abspath(build)
    but = {words[i + 1] for i, word in enumerate(words[:-1]) if word == "--but"}
    suites = {word for word in words if not word.startswith("--")} - but
    tests = []
    for test in read(build, "tests"):
        of = {suite.split(":")[-1] for suite in test["suite"]}
        if suites & of and not but & of:
            tests.append(test)
    needed = {target for test in tests for target in test["depends"]}
    source = os.path.abspath(read(build, "buildsystem_files")[0] + "/..")
    found = [os.path.relpath(name, build) for target in read(build, "targets") if wanted(target, source, needed, "--needed" in words)
             for name in target["filename"]]
    if "--objects" in words:
        found += objects(build, source)
    print("\n".join(found))
    return 0 if tests else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
