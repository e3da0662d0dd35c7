"""tally.py NAME LOG.json... - a meson test log in few words: what failed and how, what was skipped and
why, which took longest, and in the last line the numbers of tests that passed, failed and were skipped.

tally.py NAME LOG.json... -- MESON TEST... - runs each test that has failed in these logs once more, alone.
One that passes then is UNSTABLE, a defect of the test or of what it tests, and the whole of what it said as it failed is
shown. More than three failures are no matter of luck: nothing runs again. The last line has the numbers of tests that
were unstable and that have failed for good."""

import glob
import json
import os
import subprocess
import sys

GOOD = ("OK", "EXPECTEDFAIL")
TAIL = 60  # lines of what a test printed, of each stream
WIDE = 500  # characters of a line, half of them at its end
LONG = 5  # seconds
MOST = 3  # failures that run again
WHOLE = 2000  # lines of each stream


def read(logs):
    for log in logs:
        with open(log, encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


def has_failed(test):
    return test["result"] not in GOOD + ("SKIP",)


def lines_of(test, stream):
    return (test.get(stream) or "").rstrip().split("\n")


def cut(line):
    return line if len(line) <= WIDE else f"{line[:WIDE // 2]} ... {line[-WIDE // 2:]}"


def show_streams(test, most):
    """The ends, where the cause is: of both, since what is wrong may stand in either."""
    for stream in ("stdout", "stderr"):
        lines = lines_of(test, stream)
        if any(lines):
            left = f", the last {most} of {len(lines)} lines" if len(lines) > most else ""
            print(f"    ---- {stream}{left}")
            print("\n".join("    " + cut(line) for line in lines[-most:]))


def show_failure(name, test, most=TAIL):
    print(f"{name}: {test['name']}: {test['result']}, exit status {test['returncode']}")
    show_streams(test, most)


def reason_of(test):
    lines = [line for stream in ("stdout", "stderr") for line in lines_of(test, stream) if line.strip()]
    return lines[-1] if lines else "no reason given"


def count(name, logs):
    tests = list(read(logs))
    failed = [test for test in tests if has_failed(test)]
    skipped = [test for test in tests if test["result"] == "SKIP"]
    for test in skipped:
        print(f"{name}: {test['name']}: {reason_of(test)}")
    for test in failed:
        show_failure(name, test)
    times = sorted(((test["duration"], test["name"].split(" / ")[-1]) for test in tests), reverse=True)
    longest = [f"{test} {seconds:.0f} s" for seconds, test in times[:4] if seconds >= LONG]
    if longest:
        print(f"{name}: longest: {', '.join(longest)}")
    print(len(tests) - len(failed) - len(skipped), len(failed), len(skipped))


# ---- once more ----


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
    return list(read(glob.glob(os.path.join(folder, base + "*.json"))))


def run_again(test, name, folder, command):
    """Has it passed now?"""
    results = run_alone(test, name, folder, command)
    if results and all(result["result"] in GOOD for result in results):
        print(f"UNSTABLE {name}: {test['name']}: passed when it ran again, alone. This is how it failed:")
        show_failure(name, test, WHOLE)
        return True
    print(f"{name}: {test['name']}: failed again, alone:")
    for result in results:
        show_failure(name, result)
    return False


def again(name, logs, command):
    failed = [test for test in read(logs) if has_failed(test)]
    unstable = 0
    if len(failed) > MOST:
        print(f"{name}: {len(failed)} tests have failed, more than {MOST}: none of them runs again")
    else:
        unstable = sum(run_again(test, name, os.path.dirname(logs[0]), command) for test in failed)
    print(unstable, len(failed) - unstable)


def main(name, *words):
    if "--" in words:
        again(name, words[:words.index("--")], words[words.index("--") + 1:])
    else:
        count(name, words)


if __name__ == "__main__":
    main(*sys.argv[1:])
