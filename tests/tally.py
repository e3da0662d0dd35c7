"""tally.py NAME LOG.json... - a meson test log in few words: what failed and how, what was skipped and
why, which took longest, and in the last line the numbers of tests that passed, failed and were skipped."""

import json
import sys

GOOD = ("OK", "EXPECTEDFAIL")
TAIL = 60  # lines of what a test printed, of each stream
WIDE = 500  # characters of a line, half of them at its end
LONG = 5  # seconds


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


def main(name, *logs):
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


if __name__ == "__main__":
    main(*sys.argv[1:])
