"""again.py NAME LOG.json... -- MESON TEST... - runs each test that has failed in these logs once more, alone.

One that passes then is UNSTABLE, a defect of the test or of what it tests, and the whole of what it said as it failed is
shown. More than three failures are no matter of luck: nothing runs again. The last line has the numbers of tests that
were unstable and that have failed for good."""

import glob
import os
import subprocess
import sys

import tally

MOST = 3
WHOLE = 2000  # lines of each stream


def words_of(test):
    """What names one test to meson: "perfkit:nccl / report" is a project, its suites and a name."""
    where, name = test["name"].split(" / ", 1)
    project, _, suites = where.partition(":")
    return (["--suite", suites.split("+")[0]] if suites else []) + [f"{project}:{name}"]


def run_alone(test, name, folder, command):
    """What came of it; nothing if meson could not run it."""
    base = f"{name}-again"
    for log in glob.glob(os.path.join(folder, base + "*")):
        os.remove(log)
    subprocess.run([*command, "--logbase", base, "--num-processes", "1", *words_of(test)],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return list(tally.read(glob.glob(os.path.join(folder, base + "*.json"))))


def run_again(test, name, folder, command):
    """Has it passed now?"""
    results = run_alone(test, name, folder, command)
    if results and all(result["result"] in tally.GOOD for result in results):
        print(f"UNSTABLE {name}: {test['name']}: passed when it ran again, alone. This is how it failed:")
        tally.show_failure(name, test, WHOLE)
        return True
    print(f"{name}: {test['name']}: failed again, alone:")
    for result in results:
        tally.show_failure(name, result)
    return False


def main(name, *words):
    logs, command = words[:words.index("--")], words[words.index("--") + 1:]
    failed = [test for test in tally.read(logs) if tally.has_failed(test)]
    unstable = 0
    if len(failed) > MOST:
        print(f"{name}: {len(failed)} tests have failed, more than {MOST}: none of them runs again")
    else:
        unstable = sum(run_again(test, name, os.path.dirname(logs[0]), command) for test in failed)
    print(unstable, len(failed) - unstable)


if __name__ == "__main__":
    main(*sys.argv[1:])
