"""run.py ROOT BUILD PREFIX LIBDIR [PAGE...] - does what the documentation says: every block of every page, in order,
in a folder of the page's own, with an installed tree, `pk` and the examples at hand.

Each block is fenced and names its language; languages.py says what is done with each. The words of a page:

    sh        run by bash; what fails fails the page. /usr/local is the installed tree
    console   `$ command` is run, and the lines behind it are compared with what it said (output.py)
    output    what the block before it said
    text      pictures of something: nothing is done
    c, cpp    with main or PK_BENCH_MAIN: built and run. Else compiled, as a file or as the body of a function;
              lines of ... alone are left out
    py, f90, rust, go, java, julia, cuda      built and run, whole programs
    sql       by `pk query`
    json, yaml, cmake, meson, make, ...

Comments in front of a block (HTML's, so that readers do not see them):

    <!-- not run: needs a GPU -->       it is not, for this reason
    <!-- file: run.c -->                written into the page's folder under this name, for the commands behind it
    <!-- needs: jq mpicc -->            left out, and counted, where one of these is not installed; also files: $PREFIX/... or
                                       $SOURCE/...
    <!-- before: mkdir old -->          a command that is run first, for what the page takes for granted
    <!-- exit 1: means "slower" -->     this status is no failure, for this reason
    <!-- on: run.json -->               the files that SQL is about; run.json if nothing is said

What a page takes for granted lies in tests/docs/given: guide.h is put in front of guide.md's C (.hpp, .cuh, .py and so
on likewise), and what pages.sh has for it is run in its folder first. $SOURCE, $BUILD and $PREFIX are this tree, what was built of it,
and where that is installed. docs/install.md has nothing of it but the tree: it is read as by somebody who has just
got that. What a block exports, the next ones have.

    python3 -B tests/docs/run.py . build /usr/local lib docs/guide.md       # one page, by hand"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter

import languages
import output
import pages

GIVEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "given")
INSTALLED = os.path.join(os.path.dirname(GIVEN), os.pardir, "kit", "installed.sh")
AS_BUILT = os.path.join(os.path.dirname(INSTALLED), "as_built.py")
ALONE = ("docs/install.md",)  # nothing of ours is at hand: what a reader needs these pages have to say
HEADERS = {".c": ".h", ".cpp": ".hpp", ".cu": ".cuh"}


# In front of meson where a page builds perfkit, which is about the build: its objects are those that the compiler's cache
# has, if it compiles as the build that is at hand.
MESON = """#!/bin/sh
[ "$1" != setup ] || set -- "$@" {options}
exec {meson} "$@"
"""
# And in front of cc: pk.c is an object of suite install then, which takes half of what -O2 does.
CC = """#!/bin/bash
exec {compiler} "${{@/#-O2/-O1}}"
"""


def as_built(build, what):
    return subprocess.run([sys.executable, "-B", AS_BUILT, build, what], check=True, capture_output=True, text=True).stdout.strip()


class Place:
    """Where a page is read: its folder and what is at hand there. said: by the last block that ran."""

    def __init__(self, root, build, prefix, libdir, page, folder):
        self.page, self.folder, self.prefix, self.said = page, folder, prefix, None
        lib = os.path.join(prefix, libdir)
        examples = os.path.join(build, "examples")
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("PK_") and name not in ("PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR")}
        self.env = env | {
            "SOURCE": root, "BUILD": build, "PREFIX": prefix, "TMPDIR": folder, "LC_ALL": "C.UTF-8", "COLUMNS": "80",
            "PATH": os.pathsep.join([prefix + "/bin", examples, examples + "/train", env["PATH"]]),
            "PKG_CONFIG_PATH": lib + "/pkgconfig", "LD_LIBRARY_PATH": lib, "LIBRARY_PATH": lib,
            "CPATH": prefix + "/include", "CMAKE_PREFIX_PATH": prefix, "MANPATH": prefix + "/share/man:",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
        if page in ALONE:
            ours = ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CMAKE_PREFIX_PATH", "MANPATH")
            self.env = {name: value for name, value in self.env.items() if name not in ours}
            self.env |= {"PATH": os.path.join(folder, "bin") + os.pathsep + env["PATH"], "HOME": folder, "CC": as_built(build, "compiler")}
            os.chmod(self.write("bin/cc", CC.format(compiler=self.env["CC"])), 0o755)
            if meson := shutil.which("meson"):
                os.chmod(self.write("bin/meson", MESON.format(options=as_built(build, "options"), meson=meson)), 0o755)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def given(self, ending):
        """What the page takes for granted in that language."""
        name = os.path.splitext(self.page.replace("docs/", ""))[0].replace("/", "-")
        path = os.path.join(GIVEN, name + HEADERS.get(ending, ending))
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as file:
            return file.read() + "\n"

    def compare(self, shown, said, what):
        if difference := output.difference(shown, said):
            raise languages.Wrong(f"{what}: {difference}\nall that was said:\n{said[-12000:]}")


def missing(place, block):
    """What the block needs and is not there."""
    needs = block.markers.get("needs", "").replace(",", " ")
    for name in needs.replace("$PREFIX", place.prefix).replace("$SOURCE", place.env["SOURCE"]).split():
        if not (os.path.exists(name) if "/" in name else shutil.which(name, path=place.env["PATH"])):
            return name
    return None


def run_block(place, block, counts):
    """A complaint, or None. Blocks that are not run are told of."""
    if block.language not in languages.LANGUAGES:
        return f"{block.language or 'no language'}: not one of {', '.join(sorted(languages.LANGUAGES))}"
    reason = block.markers.get("not run")
    try:
        if reason is None and (name := missing(place, block)):
            raise languages.Absent(f"{name} is not installed")
        if not reason:
            if command := block.markers.get("before"):
                languages.bash(place, command)
            said = languages.LANGUAGES[block.language](place, block)
            place.said = place.said if said is None else said
            counts["shown" if block.language == "text" else "run"] += 1
            return None if reason is None else "`not run` without a reason"
        counts["not run"] += 1
    except languages.Absent as absent:
        counts["left out"] += 1
        reason = str(absent)
    except languages.Wrong as wrong:
        return str(wrong)
    print(f"{block.place}: {block.language}: not run: {reason}")
    return None


def prepare(place):
    path = os.path.join(GIVEN, "pages.sh")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            languages.bash(place, f"PAGE={place.page}\n{file.read()}")


@contextlib.contextmanager
def folder_of(name, build):
    """What builds perfkit does so at the same place each time: a compiler's cache knows sources by their paths, too."""
    if name not in ALONE:
        with tempfile.TemporaryDirectory(prefix="pk-docs-") as folder:
            yield folder
        return
    folder = os.path.join(build, "tests", "page")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_page(root, build, prefix, libdir, name):
    """Counts of blocks, and complaints."""
    page, counts, complaints = pages.load(root, name), Counter(), []
    with folder_of(name, build) as folder:
        place = Place(root, build, prefix, libdir, name, folder)
        try:
            prepare(place)
        except languages.Wrong as wrong:
            return counts, [f"{name}: preparing it: {wrong}"]
        for block in page.blocks:
            if complaint := run_block(place, block, counts):
                complaints.append(f"{block.place}: {block.language}: {complaint}")
    return counts, page.wrong + complaints


def install(build, folder, prefix):
    made = os.path.join(folder, "prefix")
    done = subprocess.run([INSTALLED, build, prefix, made], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{INSTALLED}: {done.stdout}")
    return made


def main(root, build, prefix, libdir, *chosen):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and take the folder along
    root, build, total, failed = os.path.abspath(root), os.path.abspath(build), Counter(), False
    with tempfile.TemporaryDirectory(prefix="pk-docs-") as folder:
        installed = install(build, folder, prefix)
        for name in chosen or pages.names(root):
            counts, complaints = run_page(root, build, installed, libdir, name)
            total += counts
            failed = failed or bool(complaints)
            print("\n".join([*complaints, f"{name}: {tell(counts)}"]), flush=True)
    print(f"in all: {tell(total)}")
    return 1 if failed else 0


def tell(counts):
    words = {"run": "run", "shown": "of text", "left out": "left out", "not run": "not run"}
    return ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key]) or "no blocks"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
