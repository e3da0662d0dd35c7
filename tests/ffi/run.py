"""run.py LANGUAGE SOURCE LIBPK_SO PK CC CXX [DRIVER] - builds the mixed program and the example of a language with
libpk.so, runs both, and reads what they recorded (seen.py); with the mock of CUDA's driver, spans on streams too.
Exit status 77: the language's compiler is not here."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import seen

HERE = os.path.dirname(os.path.abspath(__file__))
# Slices of each name in the example's trace.
EXAMPLES = {
    "cpp": {"parse": 9, "solve": 6, "handle many": 3},
    "python": {"load": 50, "wait for batch": 50, "forward": 50, "backward": 50, "row": 1600},
    "fortran": {"heat": 1, "edges": 100, "sweep[n=64]": 50, "sweep[n=256]": 50},
    "rust": {"load": 50, "wait for batch": 51, "forward": 50, "backward": 50},
    "java": {"load": 50, "wait for batch": 50, "forward": 50, "backward": 50},
    "go": {"load": 50, "wait for batch": 51, "forward": 50, "backward": 50},
}

CONTRIB = ("go", "java")
WITH_STREAMS = ("cpp", "python", "fortran", "rust")  # Go and Java have no word for CUDA's


ASK_FOR_A_CAPTURE = ("fortran", "go", "java")  # with options of pk_options' second half


class Absent(Exception):
    """The language is unavailable here."""


class Wrong(Exception):
    """It does not do what it should."""


class Place:
    """The folder in which it happens, the library, and the environment that finds it."""

    def __init__(self, source, library, cc, cxx, folder):
        self.source, self.folder, self.cc, self.cxx = source, folder, cc, cxx
        self.include, self.lib = os.path.join(source, "include"), os.path.join(folder, "lib")
        os.mkdir(self.lib)
        for name in "libpk.so", "libpk.so.1":
            os.symlink(os.path.realpath(library), os.path.join(self.lib, name))
        with open(os.path.join(self.lib, "pk.pc"), "w", encoding="utf-8") as file:
            file.write(f"Name: pk\nDescription: libpk.so\nVersion: 0\nCflags: -I{self.include}\n"
                       f"Libs: -L{self.lib} -lpk\n")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PK_")}
        self.env = clean | {"LD_LIBRARY_PATH": self.lib, "PKG_CONFIG_PATH": self.lib, "LIBRARY_PATH": self.lib,
                            "TMPDIR": folder, "GOCACHE": os.path.join(folder, "go-cache"),
                            "GOPATH": os.path.join(folder, "go"), "GOFLAGS": "-mod=mod", "GOPROXY": "off"}

    def run(self, *command, fails=False, cwd=None):
        done = subprocess.run(command, cwd=cwd or self.folder, env=self.env, text=True, errors="replace", timeout=250,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if (done.returncode != 0) != fails:
            raise Wrong(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-4000:]}")
        return done.stdout

    def need(self, name):
        if not shutil.which(name):
            raise Absent(f"{name} is not installed")
        return name

    def binding(self, language, *path):
        return os.path.join(self.source, "contrib" if language in CONTRIB else "bindings", language, *path)


# ---- each: (command of the mixed program, command of the example), built where there is something to build ----

def cpp(place):
    flags = ["-std=c++11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", place.include, "-L", place.lib]
    example = os.path.join(place.source, "examples", "cpp_scopes.cpp")
    place.run(*place.cxx, *flags, os.path.join(HERE, "mixed.cpp"), "-o", "mixed", "-lpk", "-linner", "-pthread")
    place.run(*place.cxx, *flags, example, "-o", "example", "-lpk", "-pthread")
    return ["./mixed"], ["./example"]


def python(place):
    """PK_LIBRARY is a second copy, which must not be taken while the first one is in the process."""
    shutil.copy(os.path.join(place.lib, "libpk.so.1"), os.path.join(place.folder, "other.so"))
    place.env |= {"PYTHONPATH": place.binding("python"), "PYTHONDONTWRITEBYTECODE": "1",
                  "PK_LIBRARY": os.path.join(place.folder, "other.so")}
    mixed = [sys.executable, os.path.join(HERE, "mixed.py"), os.path.join(place.lib, "libinner.so")]
    return mixed, [sys.executable, place.binding("python", "example.py")]


def fortran(place):
    flags = [place.need("gfortran"), "-std=f2008", "-O2", "-Wall", "-Wextra", "-Werror", "-L", place.lib]
    module = place.binding("fortran", "pk.f90")
    place.run(*flags, "-fopenmp", module, os.path.join(HERE, "mixed.f90"), "-o", "mixed", "-lpk", "-linner")
    place.run(*flags, module, place.binding("fortran", "example.f90"), "-o", "example", "-lpk")
    return ["./mixed"], ["./example"]


def rust(place):
    flags = [place.need("rustc"), "-D", "warnings", "-O", "--edition", "2021", "-L", place.lib]
    place.run(*flags, "--crate-type", "rlib", "--crate-name", "pk", place.binding("rust", "pk.rs"))
    flags += ["--extern", "pk=libpk.rlib"]
    place.run(*flags, os.path.join(HERE, "mixed.rs"), "-o", "mixed")
    place.run(*flags, place.binding("rust", "example.rs"), "-o", "example")
    said = place.run(*flags, os.path.join(HERE, "unsafe.rs"), "-o", "unsafe", fails=True)
    if "cannot be sent between threads safely" not in said:
        raise Wrong(f"a scope goes to another thread:\n{said}")
    return ["./mixed"], ["./example"]


def go(place):
    """In copies of the two modules, which stand to each other as they do in the tree."""
    place.need("go")
    for folder in "contrib/go", "tests/ffi/mixed.go":
        shutil.copytree(os.path.join(place.source, folder), os.path.join(place.folder, folder))
    for folder, what, made in ("contrib/go", "./example", "example"), ("tests/ffi/mixed.go", ".", "mixed"):
        place.run("go", "build", "-o", os.path.join(place.folder, made), what, cwd=os.path.join(place.folder, folder))
    return ["./mixed"], ["./example"]


def jdk():
    """The folder of a JDK of Java 22 or later, wherever such things lie."""
    homes = [os.environ.get("JAVA_HOME", ""), *glob.glob("/usr/lib/jvm/*")]
    for javac in [shutil.which("javac"), *(os.path.join(home, "bin", "javac") for home in homes if home)]:
        if javac and os.path.exists(javac):
            said = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False).stdout
            if (version := re.match(r"javac (\d+)", said)) and int(version.group(1)) >= 22:
                return os.path.dirname(os.path.realpath(javac))
    raise Absent("no JDK of Java 22 or later is installed, which is when java.lang.foreign came")


def java(place):
    bin, binding = jdk(), place.binding("java")
    sources = [*glob.glob(binding + "/perfkit/*.java"), binding + "/Example.java", os.path.join(HERE, "Mixed.java")]
    place.run(bin + "/javac", "-Xlint:all,-restricted", "-Werror", "-d", "classes", *sources)
    run = [bin + "/java", "--enable-native-access=ALL-UNNAMED", "-XX:TieredStopAtLevel=1", "-cp", "classes"]
    return [*run, "Mixed"], [*run, "Example"]


LANGUAGES = {"cpp": cpp, "python": python, "fortran": fortran, "rust": rust, "go": go, "java": java}


def check_example(language, folder):
    name = "cpp_scopes.json" if language == "cpp" else "example.json"
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    for region, count in EXAMPLES[language].items():
        found = sum(e["ph"] == "X" and e["name"] == region for e in events)
        if found != count:
            yield f"the example has {found} of {region}, expected {count}"


def check_capture(folder):
    path = os.path.join(folder, "kept-0.json")
    if not os.path.exists(path):
        return [f"there is no capture, but {os.listdir(folder)}"]
    with open(path, encoding="utf-8") as file:
        about = json.load(file)["perfkitCapture"]
    return [] if (about["reason"], about["text"]) == ("call", "asked") else [f"a capture of something else: {about}"]


def check(language, source, library, pk, cc, cxx, driver=None):
    with tempfile.TemporaryDirectory(prefix="pk-ffi-") as folder:
        place = Place(source, library, cc.split(","), cxx.split(","), folder)
        place.run(*place.cc, "-shared", "-fPIC", "-O2", "-I", place.include, os.path.join(HERE, "inner.c"),
                  "-o", os.path.join(place.lib, "libinner.so"), "-L", place.lib, "-lpk", "-ldl")
        mixed, example = LANGUAGES[language](place)
        spans = driver and language in WITH_STREAMS
        if spans:
            place.env["PK_CUDA_LIBRARY"] = os.path.realpath(driver)
        place.env["PK_GOODPUT_PATH"] = os.path.join(folder, "life-%r")
        place.run(*mixed)
        del place.env["PK_GOODPUT_PATH"]
        place.env.pop("PK_CUDA_LIBRARY", None)
        found = seen.complaints(pk, os.path.join(folder, "mixed.json"), 2 if spans else 0)
        found += seen.life(os.path.join(folder, "life-1"))
        found += check_capture(folder) if language in ASK_FOR_A_CAPTURE else []
        place.run(*example)
        return found + list(check_example(language, folder))


def main(*arguments):
    try:
        found = check(*arguments)
    except Absent as reason:
        print(f"skipped: {reason}")
        return 77
    except Wrong as reason:
        found = [str(reason)]
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
