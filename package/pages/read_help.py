"""read_help.py - what `pk` says of itself with --help, taken apart: the one source of the manual pages and of
the shells' completions.

The form of a help text, as all commands of pk have it:

    usage: pk NAME [OPTION ...] FILE        and more lines, indented, for other ways to call it

    Paragraphs, not indented.

      --option VALUE, --other   two spaces before, two behind; the rest of the
                                text is indented deeper
      word                      the same for anything else that is explained

        a line without an explanation is an example
    Exit status: behind the rest of a paragraph or in one of its own
"""

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
    """usage: list of command lines; blocks: str (a paragraph), Item, or list of str (an example)."""

    def __init__(self, text):
        self.usage = []
        self.blocks = []
        self.exit = ""
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

    def options(self):
        """(name, placeholder, text) of every option."""
        return [(name, value, item.text) for item in self.items() for name, value in item.options()]


def ask(pk, *arguments):
    """What it prints; a command that this build does without says so on stderr."""
    answer = subprocess.run([pk, *arguments], capture_output=True, text=True, check=False,
                            stdin=subprocess.DEVNULL)
    if answer.returncode == 0:
        return answer.stdout
    why = answer.stderr.strip().removeprefix("pk: ").removeprefix(f"{arguments[0]}: ")
    return f"usage: pk {arguments[0]}\n\n{why[:1].upper()}{why[1:]}.\n"


def read(pk, *arguments):
    return Help(ask(pk, *arguments)).finish()


def read_all(pk):
    """pk's own help, and [(name, one line, help)] of its commands."""
    whole = read(pk, "--help")
    return whole, [(item.term, item.text, read(pk, item.term, "--help"))
                   for item in whole.items() if re.fullmatch(r"[a-z][a-z-]*", item.term)]
