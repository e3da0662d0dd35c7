"""Is what a page shows what the command said? Word by word: lines may break elsewhere and columns be wider.

- Numbers may differ, and their units with them: "152 ms" is as good as "1.33 s". A number behind a letter
  (p50, rank0) is part of a name and has to be the same.
- "..." on its own or amid a line stands for anything, nothing too.
- Words of nothing but # . | + - = * are bars and frames, and are left out.
- That the program had no processor is so on a busy machine: unless the page shows it, what the report says of
  it (cpu-starved, and what explains it) is left out, and a verdict that the page shows as a warning is one, though the report has made
  a note of it for that reason.
"""

import re

UNITS = r"(?:ns|us|ms|s|min|h|%|x|ppm|[KMGT]?Hz|[KMGT]?i?B(?:/s)?|[KMGT]?FLOPS?(?:/s)?|[KMGT])"
NUMBER = re.compile(r"<?(?<![A-Za-z_\d.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?:\s?" + UNITS + r"(?![\w/]))?")
BAR = re.compile(r"[#.|+=*-]+")
ANYTHING = "..."
STARVED = re.compile(r"^  [!-] (?:cpu-starved|oversubscribed|throttled|memory-far|clock-low):.*\n(?:    .*\n)*", re.MULTILINE)
STARVED_HINT = re.compile(r"\s+Without\s+a\s+processor\s+\(cpu-starved\),\s+that\s+can\s+come\s+of\s+itself\.")


def without_starvation(shown, said):
    """What would have been said of a program that had a processor."""
    said = STARVED.sub("", said)
    for name in reversed(re.findall(r"^ *! ([\w-]+):", shown, re.MULTILINE)):
        note = re.search(rf"^  - {name}:.*\n(?:    .*\n)*", said, re.MULTILINE)
        if note and STARVED_HINT.search(note[0]):
            warning = note[0].replace("  - ", "  ! ", 1)
            said = said.replace(note[0], "").replace("VERDICTS\n", "VERDICTS\n" + warning, 1)
    return STARVED_HINT.sub("", said)


def words(text, shown=False):
    if shown:
        text = text.replace(ANYTHING, f" {ANYTHING} ")
    text = NUMBER.sub("0", text)
    return [word for word in text.split() if (shown and word == ANYTHING) or not BAR.fullmatch(word)]


def segments(shown):
    """The shown words between those that stand for anything."""
    parts = [[]]
    for word in shown:
        if word == ANYTHING:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def common(shown, said):
    """With how many words both begin."""
    return next((n for n, (a, b) in enumerate(zip(shown, said)) if a != b), min(len(shown), len(said)))


def nearest(part, said):
    """The longest beginning of the part that is anywhere among the words: its length, and what follows there."""
    return max((common(part, said[at:]), -at) for at in range(len(said) + 1))


def find(part, said):
    """Where the part is first, or None."""
    return next((at for at in range(len(said) - len(part) + 1) if said[at:at + len(part)] == part), None)


def tell(part, good, said):
    return (f"'{' '.join(part[max(good - 6, 0):good])}' >>> is shown to go on with '{' '.join(part[good:good + 6])}',"
            f" and goes on with '{' '.join(said[:6])}'")


def difference(shown_text, said_text):
    """None, or where they part, in words."""
    if "cpu-starved" not in shown_text:
        said_text = without_starvation(shown_text, said_text)
    parts, said = segments(words(shown_text, shown=True)), words(said_text)
    good = common(parts[0], said)
    if good < len(parts[0]):
        return tell(parts[0], good, said[good:])
    if len(parts) == 1:
        return None if good == len(said) else f"more was said than is shown: '{' '.join(said[good:good + 12])}'"
    said = said[good:]
    for part in parts[1:-1]:
        at = find(part, said)
        if at is None:
            good, back = nearest(part, said)
            return tell(part, good, said[good - back:])
        said = said[at + len(part):]
    last = parts[-1]
    if len(last) > len(said) or said[len(said) - len(last):] != last:
        good, back = nearest(last, said)
        return tell(last, good, said[good - back:])
    return None
