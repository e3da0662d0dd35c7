"""verdicts.py ROOT - docs/guide.md explains every verdict, and no other, each under a heading of its name, and quotes
its sentence as the code has it."""

import os
import re
import sys

SOURCES = ("lib/measure/verdict", "tools/rebuild")
FUNCTION = re.compile(r"^(?:static )?(?:bool|void) \w+\([^;{]*\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*')
NAME = re.compile(r"[a-z]+(?:-[a-z]+)*")
SAID = ("pki_verdict_add_sentence(", "pki_verdict_add(")


def literal(source):
    """What C makes of strings that stand beside each other."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', source)
    return "".join(parts).replace('\\"', '"')


def verdicts(text):
    """name -> the texts of the function that says it"""
    found = {}
    for body in FUNCTION.findall(text):
        call = min((body.rfind(word) for word in SAID if word in body), default=-1)
        if call < 0:
            continue
        names = [name for name in map(literal, STRINGS.findall(body[call:])) if NAME.fullmatch(name)]
        texts = [text for text in map(literal, STRINGS.findall(body[:call])) if len(text) > 12]
        for name in names:
            found.setdefault(name, []).extend(texts)
    return found


def of_code(root):
    found = {}
    for folder in SOURCES:
        for name in sorted(os.listdir(os.path.join(root, folder))):
            if name.endswith(".c") and name != "sentence.c":
                with open(os.path.join(root, folder, name), encoding="utf-8") as file:
                    for verdict, texts in verdicts(file.read()).items():
                        found.setdefault(verdict, []).extend(texts)
    return found


def of_guide(root):
    """name -> the sentence quoted; headings without one share the next one's."""
    with open(os.path.join(root, "docs/guide.md"), encoding="utf-8") as file:
        part = file.read().split("## What each verdict means, and what to do\n", 1)[1].split("\n## ", 1)[0]
    part = re.sub(r"^> .*(\n> .*)+", lambda quote: quote[0].replace("\n>", ""), part, flags=re.MULTILINE)
    found, waiting = {}, []
    for line in part.split("\n"):
        if line.startswith("### "):
            waiting.append(line[4:])
        elif line.startswith("> "):
            found.update(dict.fromkeys(waiting, line[2:]))
            waiting = []
    return found, waiting


def plain(template):
    parts = re.split(r"(%%|%[.\d]*(?:ll|z)?[sud])", template)
    return "".join("%" if part == "%%" else ".*?" if part.startswith("%") else re.escape(part) for part in parts)


def complaints(root):
    code, (guide, unquoted) = of_code(root), of_guide(root)
    for name in sorted(code.keys() - guide.keys()):
        yield f"docs/guide.md does not explain {name}"
    for name in sorted(guide.keys() - code.keys()):
        yield f"docs/guide.md explains {name}, which there is not"
    for name in unquoted:
        yield f"docs/guide.md: {name} has no quotation"
    for name in sorted(code.keys() & guide.keys()):
        if not any(matches(guide[name], text) for text in code[name]):
            yield f"docs/guide.md: {name} does not say: {guide[name]}"


def matches(quote, template):
    """The quote is all of what the template makes, or whole sentences or clauses from its beginning."""
    ends = [match.end() for match in re.finditer(r"[.:);](?=[\s;]|$)", template)] + [len(template)]
    return any(re.fullmatch(plain(template[:end]).rstrip(":"), quote) for end in ends)


def main(root):
    found = list(complaints(root))
    print("\n".join(found) or f"{len(of_code(root))} verdicts are explained")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
