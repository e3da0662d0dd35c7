"""pack.py OUT NAME PAGE LICENCE LIBRARY STYLE... -- SCRIPT... - a page, but for its data, as a C source: what stands
before the data (NAME_before), and what stands behind it (NAME_behind).

The page's own rules let it run these scripts and styles only, by their hashes."""

import base64
import hashlib
import html
import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def hashed(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def array(name, text):
    data = text.encode()
    lines = [",".join(str(byte) for byte in data[i:i + 24]) for i in range(0, len(data), 24)]
    return (f"const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"
            f"const size_t {name}_bytes = sizeof {name};\n")


def fill(page, parts):
    """All at once: what is put in may look like a place, too."""
    return re.sub(r"\{\{([a-z ]+)\}\}", lambda place: parts[place.group(1)], page)


def main(out, name, page, licence, library, *rest):
    styles, scripts = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    library = read(library).strip()
    script = "(() => {\n'use strict';\n" + "\n".join(read(path) for path in scripts) + "})();\n"
    style = "\n".join(read(path).strip() for path in styles) + "\n"
    for text in (library, script):
        if re.search("</script|<!--", text, re.IGNORECASE):
            sys.exit("pack.py: a script would end before its end")
    whole = fill(read(page), {"style": style, "library": library, "script": script, "data": "\0",
                              "licence": html.escape(read(licence)),
                              "style hashes": hashed(style), "script hashes": f"{hashed(library)} {hashed(script)}"})
    before, behind = whole.split("\0")
    with open(out, "w", encoding="utf-8") as file:
        file.write("/* Made by tools/html/pack.py. */\n#include \"html/html.h\"\n\n"
                   + array(f"{name}_before", before) + "\n" + array(f"{name}_behind", behind))


if __name__ == "__main__":
    main(*sys.argv[1:])
