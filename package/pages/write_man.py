"""write_man.py - manual pages, in the man(7) macros that every reader of pages knows."""

import re
import textwrap

from read_help import Item

# What is bold in running text: commands in backquotes, options, environment variables.
STRONG = re.compile(r"`([^`]+)`|(?<![\w-])(--?[a-z][\w-]*|PK_[A-Z_]+)")
# What is to be replaced: words in capitals.
PLACE = re.compile(r"\b([A-Z][A-Z]+(?:\.[a-z]+)?)\b")


def plain(text):
    """Text that roff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return text.replace("^", "\\(ha").replace("~", "\\(ti")


def words(text):
    """Running text, one sentence to a line."""
    out, at = [], 0
    for match in STRONG.finditer(text):
        out.append(plain(text[at:match.start()]))
        out.append("\\fB" + plain(match.group(1) or match.group(2)) + "\\fR")
        at = match.end()
    out.append(plain(text[at:]))
    return "\n".join(wrap(line) for line in re.split(r"(?<=[.;:]) (?=[A-Z`\\(])", "".join(out)))


def wrap(line):
    """Lines of a length that mandoc likes. None begins with what would make it a request."""
    lines = textwrap.wrap(line, 79, break_long_words=False, break_on_hyphens=False)
    return "\n".join("\\&" + part if part[:1] in "." else part for part in lines)


def call(line):
    """A command line: what is typed as it stands is bold, what is to be replaced is slanted."""
    typed = re.match(r"pk( [a-z][a-z-]*)?", line)
    rest = line[typed.end():]
    rest = re.sub(r"(?<![\w-])(--?[a-z][\w-]*)", lambda m: "\0" + plain(m.group(1)) + "\1", rest)
    rest = PLACE.sub(lambda m: "\2" + plain(m.group(1)) + "\1", rest)
    rest = rest.replace("\0", "\\fB").replace("\1", "\\fR").replace("\2", "\\fI")
    return "\\fB" + plain(typed.group()) + "\\fR" + rest


def term(item):
    """An item's head: options with what they take, or a word."""
    options = list(item.options())
    if not options:
        return "\\fB" + plain(item.term) + "\\fR"
    return ", ".join(f"\\fB{plain(name)}\\fR" + (f" \\fI{plain(value)}\\fR" if value else "")
                     for name, value in options)


def body(blocks):
    lines = []
    for block in blocks:
        if isinstance(block, Item):
            lines += [".TP", term(block), words(block.text)] if block.text else [".TP", term(block)]
        elif isinstance(block, list):
            lines += [".PP", ".RS 4", ".nf", *["\\&" + plain(line) for line in block], ".fi", ".RE"]
        else:
            lines += [".PP", words(block)]
    # A section begins with a paragraph by itself.
    return lines[1:] if lines[:1] == [".PP"] else lines


def section(title, lines):
    return [f".SH {title}", *lines] if lines else []


def head(name, number, version, date):
    return ['.\\" Made from what pk says with \\-\\-help; not to be changed by hand.',
            f'.TH {name.upper()} {number} {date} "perfkit {version}" perfkit']


def usage(lines):
    out = []
    for line in lines:
        out += ([".br"] if out else []) + [call(line)]
    return out


def option_items(options):
    """An Item for the options that one text is for."""
    items = []
    for option in options:
        term = option["name"] + (" " + option["value"] if option["value"] else "")
        if items and items[-1].text == option["help"]:
            items[-1].term += ", " + term
        else:
            items.append(Item(term, option["help"]))
    return items


def see_also(names):
    return [f".BR {name} ({number})" + ("," if i + 1 < len(names) else "")
            for i, (name, number) in enumerate(names)]


def command_page(name, line, text, others, version, date):
    page = f"pk-{name}"
    lines = head(page, 1, version, date)
    lines += section("NAME", [f"{plain(page)} \\- {plain(line)}"])
    lines += section("SYNOPSIS", usage(text.usage))
    lines += section("DESCRIPTION", body(text.blocks))
    lines += section("OPTIONS", body(option_items(text.options)))
    lines += section('"EXIT STATUS"', [words(text.exit)] if text.exit else [])
    also = [("pk", 1)] + [(f"pk-{other}", 1) for other in others if other != name] + [("perfkit", 7)]
    lines += section('"SEE ALSO"', see_also(also))
    return "\n".join(lines) + "\n"


EXIT = ("0; 1 where a command says so; 2 if a command, an option or a file cannot be used, after one line about it"
        " on the standard error output.")


def main_page(text, commands, version, date):
    names = [name for name, _, _ in commands]
    listed = []
    for name, line, _ in commands:
        listed += [".TP", f".BR pk\\-{plain(name)} (1)", words(line)]
    options = [b for b in text.items() if b.term not in names]
    lines = head("pk", 1, version, date)
    lines += section("NAME", ["pk \\- what happens after a run under perfkit"])
    lines += section("SYNOPSIS", usage(text.usage))
    lines += section("DESCRIPTION", body([b for b in text.blocks if not isinstance(b, Item)]))
    lines += section("COMMANDS", listed)
    lines += section("OPTIONS", body(options))
    lines += section('"EXIT STATUS"', [words(EXIT)])
    lines += section('"SEE ALSO"', see_also([(f"pk-{name}", 1) for name in names] + [("perfkit", 7)]))
    return "\n".join(lines) + "\n"


def library_page(headers, version, date):
    """headers: [(path, what its first line says)], in order of need."""
    listed = []
    for path, line in headers:
        listed += [".TP", f"\\fI{plain(path)}\\fR", words(line)]
    lines = head("perfkit", 7, version, date)
    lines += section("NAME", ["perfkit \\- tells native ML and HPC programs where their time goes"])
    lines += section("SYNOPSIS", [".B #include <pk/pk.h>", ".PP",
                                  "\\fBcc\\fR \\fIprogram.c\\fR"
                                  " \\fB$(pkg\\-config \\-\\-cflags \\-\\-libs pk)\\fR"])
    lines += section("DESCRIPTION", [
        words("A C library that programs link in to learn where their time goes: per region, per step, per thread"
              " and per GPU, as a report and as a trace for a viewer."), ".PP",
        "The headers are the manual; each begins with what it is for.", *listed])
    lines += section("ENVIRONMENT", [
        words("Each option of `pk_start` has a variable of its name, such as PK_TRACE_PATH and PK_REPORT_PATH; see"
              " pk/options.h. `pk status` lists those that are set, and says which of them nobody reads.")])
    lines += section('"SEE ALSO"', see_also([("pk", 1), ("pk-status", 1)]))
    return "\n".join(lines) + "\n"
