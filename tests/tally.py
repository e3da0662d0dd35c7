"""tally.py NAME LOG.json... - a meson test log in few words: what failed and how, what was skipped and
why, which took longest, and in the last line the numbers of tests that passed, failed and were skipped."""

import json
import sys

GOOD = ("OK", "EXPECTEDFAIL")
TAIL = 60
LONG = 5  # seconds


def said(test):
    """What a test printed, as lines."""
    return [line for stream in ("stdout", "stderr") for line in (test.get(stream) or "").rstrip().split("\n")]


def main(name, *logs):
    passed = failed = skipped = 0
    times = []
    for log in logs:
        with open(log, encoding="utf-8") as file:
            tests = [json.loads(line) for line in file]
        times += [(test["duration"], test["name"].split(" / ")[-1]) for test in tests]
        for test in tests:
            if test["result"] in GOOD:
                passed += 1
            elif test["result"] == "SKIP":
                skipped += 1
                reason = [line for line in said(test) if line.strip()][-1:] or ["no reason given"]
                print(f"{name}: {test['name']}: {reason[0]}")
            else:
                failed += 1
                print(f"{name}: {test['name']}: {test['result']}, exit status {test['returncode']}")
                print("\n".join("    " + line for line in said(test)[-TAIL:]))
    longest = [f"{test} {seconds:.0f} s" for seconds, test in sorted(times, reverse=True)[:4] if seconds >= LONG]
    if longest:
        print(f"{name}: longest: {', '.join(longest)}")
    print(passed, failed, skipped)


if __name__ == "__main__":
    main(*sys.argv[1:])
