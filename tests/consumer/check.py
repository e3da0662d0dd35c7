"""check.py WHO BUILD PROGRAM COARSE PK KIND... - makes traces and has them read: by a
viewer, whose view is compared with what the program recorded, or by the rules of those that cannot
be run here. Exit status 77: this viewer is unavailable."""

import math
import os
import signal
import sys
import tempfile
import zlib
from collections import Counter

import rules
import traces
import viewers

SHOWN = 12  # complaints


def slices(rows, nested):
    """Counts by all that is known of a slice, or by track and name alone."""
    counts = Counter()
    for track, name, parent, depth, count in rows:
        counts[(track, name, parent, depth) if nested else (track, name)] += count
    return counts


def compare_slices(want, seen, nested):
    wanted, there = slices(want, nested), slices(seen, nested)
    for key in wanted.keys() | there.keys():
        if wanted[key] != there[key]:
            yield f"slices {key}: recorded {wanted[key]}, shown {there[key]}"


def compare_values(want, seen):
    """Samples of each counter, in any order."""
    want, seen = sorted(map(tuple, want)), sorted(map(tuple, seen))
    if [name for name, _ in want] != [name for name, _ in seen]:
        yield f"counters: recorded {want}, shown {seen}"
        return
    for (name, a), (_, b) in zip(want, seen):
        if not math.isclose(a, b, rel_tol=1e-14):
            yield f"counter {name}: recorded {a}, shown {b}"


def compare_arguments(want, seen):
    sums = {(name, key): number for name, key, number in seen}
    for name, key, number in want:
        if not math.isclose(sums.get((name, key), math.nan), number, rel_tol=1e-9):
            yield f"{name}, argument {key}: recorded {number}, shown {sums.get((name, key))}"


def compare(who, kind, program, want, seen):
    """Everything in which a viewer's view differs from what was recorded."""
    yield from seen["errors"]
    if "slices" not in seen:
        return
    rows = want["slices"] + (want["marks"] if who in viewers.MARKS_ARE_SLICES else [])
    # A slice of no duration has no inside, so only counts are left of a coarse clock's.
    yield from compare_slices(rows, seen["slices"], nested=who != "sqlite" and kind != "coarse")
    if missing := {row[0] for row in rows} - set(seen["tracks"]):
        yield f"no tracks named {missing}"
    if set(seen["processes"]) != {os.path.basename(program)}:
        yield f"the process is shown as {seen['processes']}"
    if "values" in seen:
        yield from compare_values(want["values"], seen["values"])
        yield from compare_arguments(want["arguments"], seen["arguments"])
    if "total" in seen and seen["total"] != sum(row[-1] for row in seen["slices"]):
        yield "there are slices that belong to no thread"


def text_of(path):
    """The trace as text; gzip in a single member, since some readers stop behind the first."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".gz"):
        member = zlib.decompressobj(wbits=31)
        data = member.decompress(data)
        if not member.eof or member.unused_data:
            raise traces.Wrong("more or less than one gzip member")
    return data.decode("utf-8", "strict")


def make(kinds, tools, folder):
    """Paths, and what each has to show."""
    made = []
    for kind in kinds:
        os.mkdir(os.path.join(folder, kind))
        made.append(traces.make(kind, tools, os.path.join(folder, kind)))
    return zip(*made)


def complaints(who, kinds, build, tools):
    with tempfile.TemporaryDirectory() as folder:
        paths, wanted = make(kinds, tools, folder)
        if who == "rules":
            found = [list(rules.complaints(text_of(path))) for path in paths]
        else:
            seen = viewers.VIEWERS[who](paths, build)
            found = [list(compare(who, kind, traces.program_of(kind, tools), want, view))
                     for kind, want, view in zip(kinds, wanted, seen)]
    return [f"{kind}: {complaint}" for kind, some in zip(kinds, found) for complaint in some]


def main(who, build, program, coarse, pk, *kinds):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and take the folder along
    try:
        found = complaints(who, kinds, build, {"program": program, "coarse": coarse, "pk": pk})
    except viewers.Skip as reason:
        print(reason)
        return 77
    except traces.Wrong as reason:
        found = [str(reason)]
    for complaint in found[:SHOWN]:
        print(complaint)
    if len(found) > SHOWN:
        print(f"... and {len(found) - SHOWN} more")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
