"""make.py PK VERSION HEADERS OUT - the manual pages and the shells' completions, from pk's --help and from the
first lines of the public headers."""

import datetime
import os
import re
import sys

import read_help
import write_man
import write_shells


def date():
    """The day of the build, or the one that a packager gives so that builds can be repeated."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.fromtimestamp(int(given), datetime.timezone.utc) if given else datetime.datetime.now()
    return now.strftime("%Y-%m-%d")


def describe(headers):
    """(path, its purpose) of each header: "/* pk/name.h - purpose. More." """
    for name in sorted(os.listdir(headers), key=lambda name: (name != "pk.h", name)):
        with open(os.path.join(headers, name), encoding="utf-8") as file:
            start = file.read(1000)
        found = re.match(r"/\* pk/[\w.]+ - (.*?)(?:\.\s|\.?\s*\*/|\n \*\n)", start, re.DOTALL)
        if not found:
            raise SystemExit(f"{name}: its first line does not say what it is for")
        yield f"pk/{name}", re.sub(r"\s+\*?\s*", " ", found.group(1)).strip() + "."


def main(pk, version, headers, out):
    whole, commands = read_help.read_all(pk)
    names = [name for name, _, _ in commands]
    day = date()
    files = {"pk.1": write_man.main_page(whole, commands, version, day),
             "perfkit.7": write_man.library_page(list(describe(headers)), version, day),
             "pk": write_shells.bash(commands),
             "_pk": write_shells.zsh(commands),
             "pk.fish": write_shells.fish(commands)}
    for name, line, text in commands:
        files[f"pk-{name}.1"] = write_man.command_page(name, line, text, names, version, day)
    for name, text in files.items():
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
