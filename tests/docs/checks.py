"""checks.py links|verdicts|packages ROOT - what pages say without a block that could be run:

    links     every relative link leads to a file, and its #anchor to a heading
    verdicts  docs/guide.md explains every verdict, and no other, each under a heading of its name, and quotes its
              sentence as the code has it
    packages  docs/install.md names the packages that ./dev installs before it builds, and no others
"""

import os
import re
import sys
from urllib.parse import unquote

import pages

# ---- links ----


def check_link(root, page, line, target, loaded):
    """A complaint, or nothing."""
    if "://" in target or target.startswith("mailto:"):
        return None
    path, _, anchor = unquote(target).partition("#")
    where = os.path.normpath(os.path.join(os.path.dirname(page.name), path)) if path else page.name
    if where.startswith("..") or not os.path.exists(os.path.join(root, where)):
        return f"{page.name}:{line}: {target} leads nowhere"
    if anchor and where.endswith(".md"):
        if where not in loaded:
            loaded[where] = pages.load(root, where)
        if anchor not in loaded[where].anchors():
            return f"{page.name}:{line}: {where} has no heading #{anchor}"
    return None


def wrong_links(root, names):
    loaded = {name: pages.load(root, name) for name in names}
    for page in list(loaded.values()):
        for line, target in page.links:
            if complaint := check_link(root, page, line, target, loaded):
                yield complaint


def links(root):
    return list(wrong_links(root, pages.names(root))), "every link leads somewhere"


# ---- verdicts ----

SOURCES = ("lib/measure/verdict", "tools/rebuild")
FUNCTION = re.compile(r"^(?:static )?(?:bool|void) \w+\([^;{]*\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*')
NAME = re.compile(r"[a-z]+(?:-[a-z]+)*")
SAID = ("pki_verdict_add_sentence(", "pki_verdict_add(")


def literal(source):
    """What C makes of strings that stand beside each other."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', source)
    return "".join(parts).replace('\\"', '"')


def verdicts_in(text):
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
                    for verdict, texts in verdicts_in(file.read()).items():
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


def wrong_verdicts(root):
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


def verdicts(root):
    return list(wrong_verdicts(root)), f"{len(of_code(root))} verdicts are explained"


# ---- packages ----


def packages(root):
    def text(name):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            return file.read()

    table = re.search(r'\[build\]="([^"]*)"', text("dev")).group(1)
    wanted = {item.split("=", 1)[1] for item in table.split()}
    line = re.search(r"^apt install ((?!\./).*)$", text("docs/install.md"), re.MULTILINE)
    named = set(line.group(1).split()) if line else set()
    return [f"{package}: " + ("docs/install.md does not name it" if package in wanted else "./dev does not install it")
            for package in sorted(wanted ^ named)], f"{len(named)} packages are named"


if __name__ == "__main__":
    found, well = {"links": links, "verdicts": verdicts, "packages": packages}[sys.argv[1]](sys.argv[2])
    print("\n".join(found) or well)
    sys.exit(1 if found else 0)
