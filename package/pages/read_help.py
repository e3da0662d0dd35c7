"""read_help.py - what `pk` says of itself: the one source of the manual pages and of the shells' completions.

A command's options come from its table, which `pk COMMAND --help=json` prints (tools/command.h). What it says
around them, and what `pk --help` says, is text of this form:

    usage: pk NAME [OPTION ...] FILE        and more lines, indented, for other ways to call it

    Paragraphs, not indented.

      word                      something that is explained: two spaces before, two behind; the
                                rest of the text is indented deeper

        a line without an explanation is an example
    Exit status: behind the rest of a paragraph or in one of its own
"""

import json
import re
import subprocess

ITEM = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")
EXIT = "Exit status: "


class Item:
    """Something explained: its term, and the lines of its text."""

    def __init__(self, term, text):
        self.term = term
        self.text = text

    def options(self):
        """(name, placeholder or "") of each option in the term."""
        for part in re.split(r", (?=-)", self.term):
            if part.startswith("-"):
                name, _, value = part.partition(" ")
                yield name, value


class Help:
    """usage: list of command lines; blocks: str (a paragraph), Item, or list of str (an example); options: those of
    the table; files: by what the names of a command's files end, "" for any."""

    def __init__(self, text, options=(), files=()):
        self.usage = []
        self.blocks = []
        self.exit = ""
        self.options = options
        self.files = files
        for chunk in re.split(r"\n\s*\n", text.strip("\n")):
            lines = chunk.split("\n")
            if lines[0].startswith("usage: "):
                self.usage = [line[len("usage: "):] for line in lines]
            else:
                self.add(lines)

    def add(self, lines):
        for line in lines:
            item = ITEM.match(line)
            if not line.startswith(" "):
                self.add_words(line)
            elif item and item.group(2):
                self.blocks.append(Item(item.group(1), item.group(2)))
            elif item and item.group(1).startswith("-"):
                self.blocks.append(Item(item.group(1), ""))
            elif line.startswith("   ") and self.blocks and isinstance(self.blocks[-1], Item):
                self.blocks[-1].text = (self.blocks[-1].text + " " + line.strip()).strip()
            else:
                self.add_example(line.strip())
        self.blocks.append("")

    def add_words(self, line):
        if self.blocks and isinstance(self.blocks[-1], str) and self.blocks[-1]:
            self.blocks[-1] += " " + line
        else:
            self.blocks.append(line)

    def add_example(self, line):
        if self.blocks and isinstance(self.blocks[-1], list):
            self.blocks[-1].append(line)
        else:
            self.blocks.append([line])

    def finish(self):
        """Takes the exit status out of the paragraphs."""
        kept = []
        for block in self.blocks:
            if isinstance(block, str) and EXIT in block:
                block, _, self.exit = block.partition(EXIT)
            if block:
                kept.append(block.strip() if isinstance(block, str) else block)
        self.blocks = kept
        return self

    def items(self):
        return [block for block in self.blocks if isinstance(block, Item)]


def ask(pk, *arguments):
    """What it prints; None and why not for a command that this build does without."""
    answer = subprocess.run([pk, *arguments], capture_output=True, text=True, check=False,
                            stdin=subprocess.DEVNULL)
    if answer.returncode == 0:
        return answer.stdout, ""
    why = answer.stderr.strip().removeprefix("pk: ").removeprefix(f"{arguments[0]}: ")
    return None, f"{why[:1].upper()}{why[1:]}."


def read_command(pk, name):
    table, why = ask(pk, name, "--help=json")
    if table is None:
        return Help(f"usage: pk {name}\n\n{why}\n").finish()
    table = json.loads(table)
    usage = "\n       ".join(f"pk {name} {line}".strip() for line in table["usage"].split("\n"))
    text = Help(f"usage: {usage}\n\n{table['about']}\n\n{table['notes']}\n", table["options"],
                table["files"].split(" ") if table["takes_files"] else [])
    return text.finish()


def read_all(pk):
    """pk's own help, and [(name, one line, help)] of its commands."""
    whole = Help(ask(pk, "--help")[0]).finish()
    return whole, [(item.term, item.text, read_command(pk, item.term))
                   for item in whole.items() if re.fullmatch(r"[a-z][a-z-]*", item.term)]
