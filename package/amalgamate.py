"""amalgamate.py ROOT FOLDER - writes FOLDER/pk.c and FOLDER/pk.h: the core of perfkit in two files.

pk.h is the public headers but those of benchmarks and NCCL; pk.c is what meson builds with -Dservices=report and without
zlib, CUDA, CUPTI, NVTX and NCCL's plugin. In one translation unit what is static in a file needs a name of its own: each
such function, variable, type and constant of FOLDER/FILE.c gets FOLDER_FILE__ in front of it, and each macro an #undef
behind it. That goes by the house's style: what is at file scope begins in the first column."""

import os
import re
import sys

PUBLIC = ["pk.h", "comm.h", "gpu.h", "span.h", "request.h", "goodput.h"]
# Of package/sources.cmake: what is left out, and what is there instead.
SERVICES = ("captures", "costs", "job", "live", "windows")
LEFT_OUT = {**{f"session/{service}/": f"session/{service}/none.c" for service in SERVICES},
            "measure/stacks/": None, "history/": None, "capture/": None, "core/events.c": "core/events_none.c",
            "backend/nvml/nvml.c": "backend/nvml/none.c", "backend/nvml/sampler.c": None, "${PK_GZ}": "out/gz_none.c",
            "out/window/": None, "out/metrics/": None}
# Files in which names of members are arguments of macros: what is called as one keeps its name.
MEMBERS = {"measure/shape.c", "measure/window/window.c", "measure/window/merge.c", "session/control.c", "base/loader.c"}
WORDS = "lib/measure/shape_words.h"  # whose macros have the names of others: each file has it for itself
ARCHS = {"x86_64": "defined(__x86_64__)", "aarch64": "defined(__aarch64__)", "generic": "1"}
HEAD = """/* {name} - the core of perfkit {version}, made by `./dev amalgamate`: sessions, regions, steps,
 * counters, statistics, traces, reports. SPDX-License-Identifier: Apache-2.0
 *
 *     cc -O2 -c pk.c && cc program.c pk.o -lm -ldl -pthread
 *
 * Left out: captures of steps, windows and metrics, costs beside time, goodput and jobs, what
 * `pk top` shows, compressed traces, CUDA, CUPTI, NVML, NVTX, NCCL. An option that asks for one of
 * them ends pk_start with PK_ENOTSUP and a sentence; pk_backend_status says what a backend lacks.
 * Benchmarks are not declared. The whole: libpk.a and libpk.so (docs/install.md of perfkit). */
"""
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\#[ \t]*\w+|\.\.\.|->|[A-Za-z_]\w*|\s+|\d[\w.]*|.""", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">].*$', re.M)


# ---- names that are a file's own ----

def statics(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
    text = re.sub(r"__attribute__\(\(.*?\)\)\)?|_Alignas\([^)]*\)|\bPKI_[A-Z_]+\([^()]*\)(?=\s+\w)|__typeof__\([^)]*\)", "", text)
    found = set()
    # functions, and variables of a type that has a name
    for head in re.findall(r"^static ([^;={]*?\(|[^;={(]*?[=;])", text, re.M):
        names = re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", head))
        found.add(names[-1])
        if head[-1] == "(" and re.search(r"\(\s*$", head) and names[-1] in ("struct", "void", "bool"):
            found.discard(names[-1])
    for head in re.findall(r"^static [^;={]*?\(\*(\w+)", text, re.M):
        found.add(head)
    for more in re.findall(r"^static [^;={(]*;", text, re.M):  # static x a, b;
        found |= {part.split("[")[0].split()[-1].lstrip("*") for part in more[:-1].split(",")}
    # of structures, enumerations, and variables of such a type without a name
    for name, behind in re.findall(r"^(?:typedef |static )?(?:const )?(?:struct|union|enum)\s*(\w*)\s*\{(?:\n.*?^|[^\n]*?)\}"
                                   r"\s*([^;={]*)[;=]", text, re.M | re.S):
        found |= set(re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", behind))) | {name}
    for body in re.findall(r"\benum\s*\w*\s*\{(.*?)\}", text, re.S):
        found |= set(re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)", body))
    for line in re.findall(r"^typedef ([^{}]*?);", text, re.M):
        pointer = re.match(r"[^()]*\(\*(\w+)\)", line)
        plain = re.match(r"(?:.*\)\s*(?=\w+$)|)([^()]*)", re.sub(r"\[[^]]*\]", "", line), re.S).group(1)
        found.add(pointer.group(1) if pointer else re.findall(r"\w+", plain)[-1])
    words = {"sizeof", "_Static_assert", "", "const", "static", "struct", "union", "enum", "_Thread_local", "inline", "unsigned", "void", "bool"}
    return {name for name in found - words if not name.startswith(("pki_", "pk_", "PK"))}


def macros(text):
    return set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))


def renamed(text, names, prefix):
    """All of these tokens but those that are members."""
    out, before, bodies, kind = [], [], [], None
    tokens = TOKEN.findall(text)
    solid = [i for i, t in enumerate(tokens) if not t.isspace() and not t.startswith(("/*", "//"))]
    follows = {i: tokens[j] for i, j in zip(solid, solid[1:])}
    for i, token in enumerate(tokens):
        if i not in follows and (token.isspace() or token.startswith(("/*", "//"))):
            out.append(token)
            continue
        last = before[-1] if before else ""
        if token in ("struct", "union"):
            kind = token
        elif token == "{":
            bodies.append(kind)
        elif token == "}" and bodies:
            bodies.pop()
        if token in ("{", "}", ";", "=", ")"):
            kind = None
        member = last in (".", "->")
        if bodies and bodies[-1]:  # where members are declared
            member |= follows.get(i) in (";", ",", "[", ":") and last not in ("[", "struct", "union") and not (last == "(")
            member |= before[-2:] == ["(", "*"]
        out.append(prefix + token if token in names and not member else token)
        before = before[-3:] + [token]
    return "".join(out)


# ---- one file of many ----

class Amalgamation:
    def __init__(self, root):
        self.root, self.seen, self.out, self.headers = root, set(), [], []

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def find(self, path, name):
        """The file of the tree that an include means; None: a system's."""
        for candidate in (os.path.join(os.path.dirname(path), name), os.path.join("lib", name), os.path.join("include", name)):
            if os.path.isfile(os.path.join(self.root, candidate)):
                return os.path.normpath(candidate)
        return None

    def is_twin(self, name):
        return os.path.isfile(os.path.join(self.root, "lib/base/arch/generic", name))

    def expanded(self, path, text, keep=False):
        """Of its own includes the text goes out before; the system's stay, once each unless `keep`."""
        def replace(match):
            quote, name = match.groups()
            target = self.find(path, name) if quote == '"' or name.startswith("pk/") else None
            if quote == '"' and self.is_twin(name):
                self.twins(f"lib/base/arch/%s/{name}")
            elif target == WORDS:
                return self.expanded(target, self.read(target))
            elif target and target not in self.seen:
                self.header(target)
            elif target is None and not keep and name not in self.seen:
                if "#" in text[:match.start()].replace("#include", "").replace("#pragma", "").replace("#define", ""):
                    return match.group(0)  # perhaps under a condition
                self.seen.add(name)
                self.out.append(f"#include <{name}>\n")
            elif target is None and keep:
                return match.group(0)
            return ""
        return re.sub(r"^#pragma once\n", "", INCLUDE.sub(replace, text), flags=re.M)

    def header(self, path):
        self.seen.add(path)
        text = self.expanded(path, self.read(path))
        self.headers.append(re.sub(r"/\*.*?\*/", "", text, flags=re.S))
        self.out.append(f"\n/* ==== {path} ==== */\n{text}")

    def twins(self, pattern, names=()):
        """What differs by processor: each of them, behind a condition."""
        if pattern in self.seen:
            return
        self.seen.add(pattern)
        texts = [self.expanded(pattern % arch, self.read(pattern % arch), keep=True) for arch in ARCHS]
        self.out.append(f"\n/* ==== {pattern % 'PROCESSOR'} ==== */\n")
        for i, (condition, text) in enumerate(zip(ARCHS.values(), texts)):
            own = statics(text) if names else set()
            self.out.append(f"#{'elif' if i else 'if'} {condition}\n{renamed(text, own, 'base_cycle_counter__')}")
        self.out.append("#endif\n")

    def source(self, path):
        if path == "lib/base/arch/${PK_ARCH}/cycle_counter.c":
            self.twins("lib/base/arch/%s/cycle_counter.c", names=("all",))
            return
        text = self.expanded(path, self.read(path))
        prefix = re.sub(r"\W", "_", path[len("lib/"):-len(".c")]) + "__"
        names = statics(text)
        if path.removeprefix("lib/") in MEMBERS:
            names -= set(re.findall(r"\b(\w+)(?:\[[^]]*\])*\)?\s*[;,:(]", "".join(self.headers))) - {"bucket"}
        text = renamed(text, names, prefix)
        self.out.append(f"\n/* ==== {path} ==== */\n{text}")
        self.out += [f"#undef {name}\n" for name in sorted(macros(text))]


def sources(root):
    with open(os.path.join(root, "package/sources.cmake"), encoding="utf-8") as file:
        listed = re.search(r"set\(PK_SOURCES\n(.*?)\)", file.read(), re.S).group(1).split()
    out = []
    for path in listed:
        inside = path.removeprefix("lib/")
        for begin, other in LEFT_OUT.items():
            if inside.startswith(begin):
                inside = other
                break
        if inside:
            out.append("lib/" + inside)
    return list(dict.fromkeys(out))


def main(root, folder):
    os.makedirs(folder, exist_ok=True)
    face, body = Amalgamation(root), Amalgamation(root)
    version = ".".join(re.findall(r"#define PK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", face.read("include/pk/version.h")))
    for name in PUBLIC:
        if f"include/pk/{name}" not in face.seen:
            face.header(f"include/pk/{name}")
    body.seen = {path for path in face.seen if path.startswith("include/")}
    for path in sources(root):
        body.source(path)
    for name, start, made in (("pk.h", "", face), ("pk.c", '#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n#include "pk.h"\n', body)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(HEAD.format(name=name, version=version) + start + "".join(made.out))


if __name__ == "__main__":
    main(*sys.argv[1:3])
