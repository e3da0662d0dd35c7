"""as_built.py BUILD compiler|options - the C compiler of that build, and meson's options by which others compile to the
same objects. What the tests build of perfkit, to see it packed or installed, the compiler's cache has then, if the way from
the build's folder to the sources is as long, too: ../../.."""

import json
import os
import sys

SAME = ("c_args", "debug", "optimization", "werror")


def compiler(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        return json.load(file)[0]["command"].split(" -")[0]


def options(build):
    """Words without blanks; a list is joined by commas."""
    with open(os.path.join(build, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as file:
        values = {option["name"]: option["value"] for option in json.load(file)}
    for name in SAME:
        value = values[name]
        if value not in ([], ""):
            yield f"-D{name}={','.join(value) if isinstance(value, list) else str(value).lower()}"


if __name__ == "__main__":
    print(compiler(sys.argv[1]) if sys.argv[2] == "compiler" else " ".join(options(sys.argv[1])))
