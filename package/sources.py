"""sources.py ROOT BUILD [--check] - writes package/sources.cmake, or says what in it is not as it should be.

The lists are those of BUILD, a configuration of meson's with all services; what CMakeLists.txt leaves out (LEFT_OUT) is
replaced by its twin, and what it chooses by itself (CHOSEN) by a variable."""

import difflib
import json
import os
import subprocess
import sys

HEAD = """# What meson.build's lists say, for CMakeLists.txt; made by package/sources.py:
#     python3 package/sources.py . build
"""
LEFT_OUT = {"backend/cuda/": "backend/cuda/none.c", "backend/cupti/": "backend/cupti/none.c", "backend/nvtx/": "backend/nvtx/none.c",
            "comm/plugin/": "comm/plugin/none.c", "backend/shim.c": None, "bench/device_": "bench/device_none.c"}
CHOSEN = {"base/arch/": "base/arch/${PK_ARCH}/cycle_counter.c", "out/gz": "${PK_GZ}", "out/deflate_": None}


def twin(path):
    for begin, other in {**LEFT_OUT, **CHOSEN}.items():
        if path.startswith(begin):
            return other
    return path


def lists(root, build):
    """{target: [path below lib]} of the static libraries."""
    said = subprocess.run(["meson", "introspect", "--targets", build], check=True, capture_output=True, text=True).stdout
    found = {}
    for target in json.loads(said):
        if target["type"] == "static library" and target["name"] in ("pk", "pkbench"):
            paths = [os.path.relpath(os.path.normpath(path), os.path.join(root, "lib"))
                     for group in target["target_sources"] for path in group.get("sources", [])]
            found[target["name"]] = list(dict.fromkeys(other for path in paths if (other := twin(path))))
    return found


def text_of(found):
    out = HEAD
    for name, variable in (("pk", "PK_SOURCES"), ("pkbench", "PK_BENCH_SOURCES")):
        out += f"\nset({variable}\n" + "".join(f"  lib/{p}\n" if p[0] != "$" else f"  {p}\n" for p in found[name]) + ")\n"
    return out


def main(root, build, *more):
    path, wanted = os.path.join(root, "package/sources.cmake"), text_of(lists(os.path.abspath(root), build))
    if not more:
        with open(path, "w", encoding="utf-8") as file:
            file.write(wanted)
        return 0
    with open(path, encoding="utf-8") as file:
        there = file.read()
    if there == wanted:
        return 0
    print(f"package/sources.cmake is not what meson.build says (python3 package/sources.py . {os.path.relpath(build, root)}):")
    sys.stdout.writelines(difflib.unified_diff(there.splitlines(True), wanted.splitlines(True), "is", "should be"))
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
