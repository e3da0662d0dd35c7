"""What is done with a block of each language: a function of the place where its page is read, and the block.
It returns what was said, None if nothing was run, or raises Wrong or Absent."""

import json
import os
import re
import shlex
import shutil
import subprocess

LIMIT = 600  # seconds, for one block: one of them builds perfkit


class Wrong(Exception):
    """The block does not do what it should."""


class Absent(Exception):
    """What the block needs is not on this machine."""


def shortened(text):
    return text if len(text) < 3000 else f"{text[:1800]}\n[...]\n{text[-1000:]}"


def run(place, command):
    """What it said, both streams together."""
    if not shutil.which(command[0], path=place.env["PATH"]):
        raise Absent(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, cwd=place.folder, env=place.env, stdin=subprocess.DEVNULL, timeout=LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    except subprocess.TimeoutExpired as late:
        raise Wrong(f"takes longer than {LIMIT} s") from late
    if done.returncode:
        raise Wrong(f"exit status {done.returncode}: {shortened(done.stdout.strip())}")
    return done.stdout


# ---- shells ----

SEPARATOR = "-- the next command of this block --"


def installed(place, text):
    """Where the page says /usr/local it means the installed tree."""
    return text.replace("/usr/local/", place.prefix + "/").replace("=/usr/local ", f"={place.prefix} ")


STRICT = "set -eu -o pipefail\n"
ONE_IS_FINE = "set -uE -o pipefail\ntrap 'status=$?; [ $status -le 1 ] || exit $status' ERR\n"

# What a block exports the next ones have, of whatever language, as in the shell of whoever reads the page.
EXPORTS = 'trap \'env -0 >"$TMPDIR/.exports"\' EXIT\n'
OWN = ("SHLVL", "_", "PWD", "OLDPWD")  # bash's


def bash(place, script, first=STRICT):
    path = place.write("block.sh", EXPORTS + first + installed(place, script))
    said = run(place, ["bash", path])
    exports = os.path.join(place.folder, ".exports")
    if os.path.exists(exports):  # not where the block has a trap of its own
        with open(exports, encoding="utf-8", errors="surrogateescape") as file:
            pairs = [pair.split("=", 1) for pair in file.read().split("\0") if "=" in pair]
        place.env |= {name: value for name, value in pairs if name not in OWN}
    return said


def shell(place, block):
    return bash(place, block.text, ONE_IS_FINE if "exit 1" in block.markers else STRICT)


def commands(block):
    """(command, what it is shown to say) of a console: `$ ` begins a command, which goes on in lines of `> ` and behind
    a \\ at its end."""
    found, goes_on = [], False
    for line in block.lines:
        if goes_on or (found and not found[-1][1] and line.startswith("> ")):
            found[-1][0] += "\n" + re.sub(r"^> ", "", line)
        elif line.startswith("$ "):
            found.append([line[2:], ""])
        elif found:
            found[-1][1] += line + "\n"
        else:
            raise Wrong("does not begin with a command: $ ...")
        goes_on = (goes_on or line.startswith(("$ ", "> "))) and line.endswith("\\")
    if not found:
        raise Wrong("there is no command: $ ...")
    return found


def console(place, block):
    asked = commands(block)
    said = bash(place, "".join(f"{command}\necho '{SEPARATOR}'\n" for command, _ in asked)).split(SEPARATOR + "\n")
    for (command, shown), answer in zip(asked, said):
        if shown.strip():
            place.compare(shown, answer, f"$ {command}")
    return said[-2]


def output(place, block):
    """What the block before this one said."""
    if place.said is None:
        raise Wrong("no block before this one has said anything")
    place.compare(block.text, place.said, "the output")


# ---- C and C++ ----

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-missing-field-initializers"]
PROGRAM = re.compile(r"\bmain\s*\(|\bPK_BENCH_MAIN\b")
LEFT_OUT = re.compile(r"^\s*\.\.\.\s*$", re.MULTILINE)
INCLUDES = re.compile(r"^[ \t]*#[ \t]*(?:include|define)\b.*\n", re.MULTILINE)


class C:
    """Programs are built and run, unless they have a name: then commands of the page do that. What is no
    program has to be right as a file, or as the body of a function; lines of ... alone are left out."""

    def __init__(self, ending, compiler, only_check):
        self.ending, self.compiler, self.only_check = ending, compiler, only_check

    def compile(self, place, block, text, *options):
        text = f"{place.given(self.ending)}\n#include <pk/pk.h>\n#line {block.line + 1} \"{block.page}\"\n{text}"
        path = place.write("block" + self.ending, text)
        package = "pk-bench" if "<pk/bench.h>" in text else "pk"
        flags = run(place, ["pkg-config", "--cflags", "--libs", package]).split()
        return run(place, [*self.compiler, *options, path, *flags])

    def check(self, place, block, text):
        return self.compile(place, block, text, *[word.format(folder=place.folder) for word in self.only_check])

    def fragment(self, place, block, text):
        inside = INCLUDES.sub("\n", text)
        body = "".join(INCLUDES.findall(text)) + f"void fragment_(void);\nvoid fragment_(void) {{\n"
        line = f"#line {block.line + 1} \"{block.page}\"\n"
        complaints = []
        for form in (text, f"{body}{line}{inside}\n}}\n"):
            try:
                self.check(place, block, form)
                return
            except Wrong as wrong:
                complaints.append(str(wrong))
        raise Wrong(f"neither as a file:\n{complaints[0]}\nnor in a function:\n{complaints[1]}")

    def __call__(self, place, block):
        text = LEFT_OUT.sub("", block.text)
        if name := block.markers.get("file"):
            place.write(name, place.given(self.ending) + text)
        if not PROGRAM.search(text):
            return self.fragment(place, block, text)
        if name:
            return self.check(place, block, text) or None
        self.compile(place, block, text, "-o", os.path.join(place.folder, "block"))
        return run(place, [os.path.join(place.folder, "block")])


C_CHECK = ["-fsyntax-only"]
CUDA_CHECK = ["-c", "-o", "{folder}/block.o"]


# ---- others ----

class Program:
    """Complete programs; what stands for words of a command: {file}, {folder}, {prefix}. With a name they are left to
    the commands of the page."""

    def __init__(self, ending, *steps):
        self.ending, self.steps = ending, steps

    def __call__(self, place, block):
        name = block.markers.get("file")
        path = place.write(name or "block" + self.ending, place.given(self.ending) + block.text)
        said = None
        for step in () if name else self.steps:
            said = run(place, [word.format(file=path, folder=place.folder, prefix=place.prefix)
                               for word in shlex.split(step)])
        return said


def for_commands(place, block):
    """Files that mean nothing alone."""
    if "file" not in block.markers:
        raise Wrong("say <!-- file: NAME --> in front of it, and use it in a command, or <!-- not run: why -->")
    place.write(block.markers["file"], block.text)


def sql(place, block):
    """Each statement by `pk query`, of the files named in <!-- on: FILE... -->, which commands have made."""
    files = block.markers.get("on", "run.json").split()
    said = [run(place, ["pk", "query", statement, *files]) for statement in statements(block.text)]
    return "".join(said)


def statements(text):
    parts = re.split(r";\s*(?:--[^\n]*)?\n", text + "\n")
    return [part.strip() for part in parts if re.sub(r"--[^\n]*", "", part).strip()]


DOTS = ((r"(:\s*)\.\.\.", r"\1 0"), (r",\s*\.\.\.(?=\s*[\]}])", ""), (r"([\[{]\s*)\.\.\.", r"\1"))


def json_of(place, block):
    """One document or several, perhaps with commas between. `...` stands for a value, or for more members."""
    text = block.text
    if "file" in block.markers:
        place.write(block.markers["file"], text)
    for pattern, value in DOTS:
        text = re.sub(pattern, value, text)
    try:
        while text.strip(", \n"):
            text = text.strip(", \n")
            text = text[json.JSONDecoder().raw_decode(text)[1]:]
    except ValueError as error:
        raise Wrong(f"no JSON: {error}") from error


def scripts(value):
    """The shell commands of a CI job."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "run" and isinstance(inner, str):
                yield inner
            yield from scripts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from scripts(inner)


def yaml_of(place, block):
    """Parsed; what is under `run` has to be the shell's."""
    try:
        import yaml
    except ImportError as missing:
        raise Absent("Python's yaml is not installed") from missing
    try:
        document = yaml.safe_load(block.text)
    except yaml.YAMLError as error:
        raise Wrong(f"no YAML: {error}") from error
    for script in scripts(document):
        run(place, ["bash", "-n", place.write("block.sh", script)])


def text(_, block):
    if any(re.match(r"\$ \S", line) for line in block.lines):
        raise Wrong("commands in a block of text: make it a console")


LANGUAGES = {
    "sh": shell,
    "console": console,
    "output": output,
    "text": text,
    "c": C(".c", ["cc", "-std=gnu11", *WARNINGS], C_CHECK),
    "cpp": C(".cpp", ["c++", "-std=c++17", *WARNINGS], C_CHECK),
    "cuda": C(".cu", ["nvcc", "-std=c++17"], CUDA_CHECK),
    "py": Program(".py", "python3 -B {file}"),
    "f90": Program(".f90", "gfortran -J {folder} -I {prefix}/include {file} -o {folder}/block -lpk", "{folder}/block"),
    "rust": Program(".rs", "rustc --out-dir {folder} -L {prefix}/lib {file}", "{folder}/block"),
    "go": Program(".go", "go run {file}"),
    "java": Program(".java", "java {file}"),
    "julia": Program(".jl", "julia {file}"),
    "sql": sql,
    "json": json_of,
    "yaml": yaml_of,
    "cmake": for_commands,
    "meson": for_commands,
    "make": for_commands,
    "xml": for_commands,
    "toml": for_commands,
}
