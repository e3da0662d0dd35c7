"""as_built.py BUILD compiler|options - the C compiler of that build, and meson's options by which others compile to the
same objects. What the tests build of perfkit, to see it packed or installed, the compiler's cache has then, if the way from
the build's folder to the sources is as long, too: ../../..
as_built.py BUILD known FOLDER - the table of known.sh: for each source of the libraries a file with a line for each of its
objects, and the flags by which it was made."""

import json
import os
import sys

SAME = ("c_args", "debug", "optimization", "werror")


def compiler(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        return json.load(file)[0]["command"].split(" -")[0]


def known(build, folder):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    os.makedirs(folder)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    for command in commands:
        source, made = (os.path.normpath(os.path.join(build, command[key])) for key in ("file", "output"))
        name = os.path.relpath(source, root)
        if not name.startswith("lib/") or not name.endswith(".c") or made_for_a_place(source):
            continue
        words = {"-I" + os.path.relpath(os.path.join(build, word[2:]), root) if word.startswith("-I../") else word
                 for word in command["command"].split()
                 if word.startswith(("-I../", "-f", "-std=", "-D")) and not word.startswith(("-fdiagnostics", "-D_FILE_OFFSET_BITS="))}
        with open(os.path.join(folder, name.replace("/", "%")), "a", encoding="utf-8") as file:
            file.write(" ".join([made, *sorted(words)]) + "\n")


def made_for_a_place(source):
    """It has where this build is to be installed."""
    with open(source, encoding="utf-8") as file:
        return "installed.h" in file.read()


def options(build):
    """Words without blanks; a list is joined by commas."""
    with open(os.path.join(build, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as file:
        values = {option["name"]: option["value"] for option in json.load(file)}
    for name in SAME:
        value = values[name]
        if value not in ([], ""):
            yield f"-D{name}={','.join(value) if isinstance(value, list) else str(value).lower()}"


if __name__ == "__main__":
    if sys.argv[2] == "known":
        known(sys.argv[1], sys.argv[3])
    else:
        print(compiler(sys.argv[1]) if sys.argv[2] == "compiler" else " ".join(options(sys.argv[1])))
