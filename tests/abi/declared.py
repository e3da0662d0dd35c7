"""What the public headers declare, as the compiler sees it: structs, enums, typedefs, functions, objects."""

import re
import subprocess

MARKER = re.compile(r'^# \d+ "([^"]*)"')
STRUCT = re.compile(r"(?:typedef )?struct (\w+) ?\{(.*)\} ?(\w*)$")
ENUM = re.compile(r"(?:typedef )?enum (\w*) ?\{(.*)\} ?(\w*)$")
NAME = re.compile(r"(\w+) ?(?:\[[^]]*\])*$")
BRACED = re.compile(r"([\w *]*?)\((\w+)\) ?\((.*)$")  # the name in parentheses keeps a macro of its name away
PLAIN = re.compile(r"([\w *]*?)\b(\w+) ?\((.*)$")
POINTER = re.compile(r"\(\*(\w+)\)")


def preprocessed(cc, include, headers):
    """These headers' own lines, without those of what they include."""
    source = "".join(f"#include <pk/{name}>\n" for name in headers)
    command = [*cc, "-std=gnu11", "-E", "-I", include, "-x", "c", "-"]
    text = subprocess.run(command, input=source, check=True, capture_output=True, text=True).stdout
    ours, kept = False, []
    for line in text.splitlines():
        marker = MARKER.match(line)
        if marker:
            path = marker.group(1)
            ours = path.startswith(include) and "/pk/" in path and path.rsplit("/", 1)[1] in headers
        elif ours:
            kept.append(line)
    return "\n".join(kept)


def without_attributes(text):
    return re.sub(r"__attribute__ ?\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", "", text)


def declarations(text):
    """Each declaration at file scope, on one line; the bodies of functions are left out."""
    depth, chunk = 0, ""
    for char in without_attributes(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
        depth += {"{": 1, "}": -1}.get(char, 0)
        chunk += char
        if depth == 0 and char == ";":
            yield " ".join(chunk[:-1].split())
            chunk = ""
        elif depth == 0 and char == "}" and re.search(r"\)\s*\{", chunk.split("{")[0] + "{"):
            chunk = ""


def members(body):
    """(name, type) of each member of a struct."""
    for statement in filter(None, (part.strip() for part in body.split(";"))):
        pointer = POINTER.search(statement)
        if pointer:
            yield pointer.group(1), statement.replace(pointer.group(1), "", 1)
            continue
        first, *rest = statement.split(",")
        name = NAME.search(first)
        base = first[:name.start(1)].rstrip("* ")
        for declarator in [first[len(base):], *rest]:
            stars, word, tail = re.match(r"([* ]*)(\w+) ?(.*)$", declarator).groups()
            yield word, f"{base} {stars.strip()}{tail}".replace(" [", "[").strip()


class Declared:
    """structs: name -> [(member, type)]; enums: names of values; rest: declarations by name."""

    def __init__(self, text):
        self.structs, self.values, self.rest = {}, [], {}
        for line in declarations(text):
            self.enter(line)

    def enter(self, line):
        if line.startswith(("static ", "_Static_assert")) or not re.search(r"\bpk_|\bPK_", line):
            return
        struct, enum = STRUCT.match(line), ENUM.match(line)
        if struct:
            self.structs[struct.group(3) or "struct " + struct.group(1)] = list(members(struct.group(2)))
        elif enum:
            self.values += [part.split("=")[0].strip() for part in enum.group(2).split(",") if part.strip()]
        else:
            line = re.sub(r"^(extern )?inline ", "", line)
            function = BRACED.match(line) or PLAIN.match(line)
            if function:
                self.rest[function.group(2)] = "%s(%s)(%s" % function.groups()
            elif not re.fullmatch(r"struct \w+", line):
                self.rest[re.search(r"(\w+)$", line).group(1)] = line

    def exported(self):
        return {name for name, line in self.rest.items() if not line.startswith("typedef")}
