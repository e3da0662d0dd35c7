"""make.py PK VERSION HEADERS OUT - the manual pages and the shells' completions, from pk's --help and from the
first lines of the public headers.

A command's options come from its table, which `pk COMMAND --help=json` prints (tools/command.h). What it says
around them, and what `pk --help` says, is text of this form:

    usage: pk NAME [OPTION ...] FILE        and more lines, indented, for other ways to call it

    Paragraphs, not indented.

      word                      something that is explained: two spaces before, two behind; the
                                rest of the text is indented deeper

        a line without an explanation is an example
    Exit status: behind the rest of a paragraph or in one of its own
"""

import datetime
import json
import os
import re
import subprocess
import sys
import textwrap


# ---- what `pk` says of itself ----

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


# ---- manual pages, in the man(7) macros that every reader of pages knows ----

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
    rest = re.sub(r"(?<![\w-])(--?[a-z][\w-]*|--(?= ))", lambda m: "\0" + plain(m.group(1)) + "\1", rest)
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


STATUSES = ("0; 1 where a command says so; 2 if a command, an option or a file cannot be used, after one line about it"
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
    lines += section('"EXIT STATUS"', [words(STATUSES)])
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


# ---- completions ----

NOTE = "made from what pk says with --help; not to be changed by hand"


def options(text):
    """[(name, kind, placeholder, first clause of its text)]; kind: "file", "folder", "text", or "" without a value"""
    return [(o["name"], o["kind"], o["value"], re.split(r"[;.(:]", o["help"])[0].strip()) for o in text.options]


# ---- bash ----

BASH = """\
# bash completion for pk; {note}

_pk_files()
{{
    local file end
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        if [ -d "$file" ]; then
            COMPREPLY+=("$file")
            continue
        fi
        for end in "$@"; do
            case $file in *"$end") COMPREPLY+=("$file"); break ;; esac
        done
    done < <(compgen -f -- "$word")
}}

_pk_words()
{{
    local each
    while IFS= read -r each; do COMPREPLY+=("$each"); done < <(compgen -W "$1" -- "$word")
}}

_pk()
{{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
    COMPREPLY=()
    # "--json=FILE" comes in three words
    if [ "$word" = = ]; then
        word=
    elif [ "$before" = = ] && [ "$COMP_CWORD" -gt 3 ]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    if [ "$COMP_CWORD" -eq 1 ]; then
        _pk_words "{commands} help --help --version"
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    help)
        [ "$COMP_CWORD" -gt 2 ] || _pk_words "{commands}"
        ;;
    esac
}}

complete -F _pk pk
"""

BASH_CASE = """\
    {name})
        case $before in
{values}        esac
        case $word in
        -*) _pk_words "{options}" ;;
        *) {files} ;;
        esac
        ;;"""


def bash_values(entries):
    out = ""
    for kind, action in (("file", '_pk_files ""; return'), ("folder", "_pk_files /; return"), ("text", "return")):
        names = [name for name, is_a, _, _ in entries if is_a == kind]
        if names:
            out += f"        {' | '.join(names)}) {action} ;;\n"
    return out


def bash(commands):
    cases = []
    for name, _, text in commands:
        entries = options(text)
        ends = " ".join(f'".{end}"' if end else '""' for end in text.files)
        cases.append(BASH_CASE.format(name=name, values=bash_values(entries),
                                      options=" ".join(entry[0] for entry in entries),
                                      files=f"_pk_files {ends}" if ends else "return"))
    return BASH.format(note=NOTE, cases="\n".join(cases), commands=" ".join(name for name, _, _ in commands))


# ---- zsh ----

def zsh_text(text):
    return text.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", "\\:")


def zsh_option(name, kind, value, said):
    action = {"file": "_files", "folder": "_files -/", "text": " "}.get(kind, "")
    return f"'{name}[{zsh_text(said)}]" + (f":{zsh_text(value)}:{action}'" if kind else "'")


def zsh_files(ends):
    if not ends:
        return ""
    # Of one ending alone zsh would take the brackets for what a file has to be, not for a choice.
    ending = ends[0] if len(ends) == 1 else f"({'|'.join(ends)})"
    wanted = "" if "" in ends else f' -g "*.{ending}"'
    return f" \\\n            '*:file:_files{wanted}'"


def zsh(commands):
    listed = "\n".join(f"        '{name}:{zsh_text(line)}'" for name, line, _ in commands)
    cases = ""
    for name, _, text in commands:
        lines = " \\\n            ".join(zsh_option(*entry) for entry in options(text))
        cases += f"    {name})\n        _arguments \\\n            {lines}{zsh_files(text.files)}\n        ;;\n"
    return f"""\
#compdef pk
# zsh completion for pk; {NOTE}

_pk()
{{
    local -a commands
    commands=(
{listed}
        'help:what a command takes'
    )
    if (( CURRENT == 2 )); then
        _describe -t commands command commands
        _arguments '--help[what there is]' '--version[which perfkit this is]'
        return
    fi
    shift words
    (( CURRENT-- ))
    case $words[1] in
{cases}    help)
        (( CURRENT == 2 )) && _describe -t commands command commands
        ;;
    esac
}}

_pk "$@"
"""


# ---- fish ----

def fish_text(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


FISH = """\
# fish completion for pk; {note}

function __pk_files
    for file in (commandline -ct)*
        if test -d $file
            echo $file/
        else if contains -- (string replace -r '.*\\.' '' -- $file) $argv
            echo $file
        end
    end
end

complete -c pk -f
"""


def fish_option(command, name, kind, said):
    way = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
    # -x: what follows is no file; -r: it is one
    value = {"text": " -x", "file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'"}.get(kind, "")
    return f"complete -c pk -n '__fish_seen_subcommand_from {command}' {way}{value} -d '{fish_text(said)}'\n"


def fish_files(name, ends):
    given = f"complete -c pk -n '__fish_seen_subcommand_from {name}'"
    if "" in ends:
        return f"{given} -F\n"
    return f"{given} -a '(__pk_files {' '.join(ends)})'\n" if ends else ""


def fish(commands):
    names = " ".join(name for name, _, _ in commands)
    out = FISH.format(note=NOTE)
    for name, line in [(name, line) for name, line, _ in commands] + [("help", "what a command takes")]:
        out += f"complete -c pk -n __fish_use_subcommand -a {name} -d '{fish_text(line)}'\n"
    for name, line in (("help", "what there is"), ("version", "which perfkit this is")):
        out += f"complete -c pk -n __fish_use_subcommand -l {name} -d '{line}'\n"
    out += f"complete -c pk -n '__fish_seen_subcommand_from help' -a '{names}'\n"
    for name, _, text in commands:
        out += "".join(fish_option(name, option, kind, said) for option, kind, _, said in options(text))
        out += fish_files(name, text.files)
    return out


# ---- all of them ----

def today():
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
    whole, commands = read_all(pk)
    names = [name for name, _, _ in commands]
    day = today()
    files = {"pk.1": main_page(whole, commands, version, day),
             "perfkit.7": library_page(list(describe(headers)), version, day),
             "pk": bash(commands),
             "_pk": zsh(commands),
             "pk.fish": fish(commands)}
    for name, line, text in commands:
        files[f"pk-{name}.1"] = command_page(name, line, text, names, version, day)
    for name, text in files.items():
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
