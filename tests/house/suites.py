"""suites.py SOURCE BUILD - `./dev help` names every suite that there is, by what meson knows of the tests."""

import json
import os
import subprocess
import sys


def main(source, build):
    with open(os.path.join(build, "meson-info", "intro-tests.json"), encoding="utf-8") as file:
        there = {suite.split(":")[-1] for test in json.load(file) for suite in test["suite"]}
    said = subprocess.run(["bash", os.path.join(source, "dev"), "help"], check=True, capture_output=True,
                          text=True).stdout
    named = set(said.split("Suites", 1)[1].split(":", 1)[1].split("What is missing")[0].split())
    for suite in sorted(there - named):
        print(f"./dev help does not name the suite {suite}")
    return bool(there - named)  # without some headers there are fewer suites than it names


sys.exit(main(*sys.argv[1:]))
