"""prove.py BUILD PREFIX LIBDIR - pages with one mistake each: run.py and checks.py have to find it; and pages
without, in which they must not find any."""

import os
import signal
import sys
import tempfile

import checks
import run

STARVED = """```sh
cat <<'END'
VERDICTS
  ! cpu-starved: The loop had no processor.
    That explains much.
  ! oversubscribed: 12 threads want one.
  - unsteady: Steps differ. Without a processor
    (cpu-starved), that can come of itself.
  - input-bound: Input takes 80 %. Without a
    processor (cpu-starved), that can come of itself.
END
```

```output
VERDICTS
  ! input-bound: Input takes 86 %.
  ...
```
"""
RIGHT = {
    "program": "```c\nint main(void) { return pk_start(NULL) || pk_stop(); }\n```\n",
    "fragment": "```c\nstatic pk_region r = PK_REGION(\"r\");\n{ PK_REGION_SCOPE(r); }\n...\n```\n",
    "file and command": "<!-- file: a.txt -->\n```make\nall:\n```\n\n```sh\nmake -f a.txt && test -d /usr/local/lib\n```\n",
    "output": "```sh\necho took 12 ms of 99.5 %\n```\n\n```output\ntook 1.5 s of\n   3 %\n```\n",
    "console": "```console\n$ echo a b \\\n> c; echo d\na ...\nd\n$ true\n```\n",
    "starved": STARVED,
    "not run": "<!-- not run: needs a GPU -->\n```sh\nfalse\n```\n",
    "left out": "<!-- needs: no-such-program -->\n```sh\nno-such-program\n```\n",
    "before": "<!-- before: mkdir old -->\n```sh\ncd old\n```\n",
    "status 1": "<!-- exit 1: found -->\n```sh\ngrep x /dev/null\ntrue\n```\n",
    "json": '```json\n{"a": ..., "b": [1, ...], ...}\n{"c": {...}}\n```\n',
    "lists": "- a\n\n    more of it\n",
    "links": "## A `b` c!\n\n[x](#a-b-c) [y](https://example.org/x) [z](README.md) `[n](nowhere)`\n",
}
WRONG = {
    "indented": "text\n\n    pk report\n",
    "no language": "```\nx\n```\n",
    "unknown language": "```cobol\nx\n```\n",
    "no end": "```sh\ntrue\n",
    "no reason": "<!-- not run: -->\n```sh\nfalse\n```\n",
    "stray marker": "<!-- not run: why -->\n\ntext\n",
    "command fails": "```sh\nfalse\ntrue\n```\n",
    "status 2": "<!-- exit 1: found -->\n```sh\ngrep x /no/file\ntrue\n```\n",
    "program fails": "```c\nint main(void) { return 3; }\n```\n",
    "no such function": "```c\npk_no_such_function();\n```\n",
    "other words": "```sh\necho took 12 ms\n```\n\n```output\ntook 12 ms in all\n```\n",
    "more words": "```sh\necho took 12 ms in all\n```\n\n```output\ntook 12 ms\n```\n",
    "other name": "```sh\necho p50 12\n```\n\n```output\np99 12\n```\n",
    "a note of itself": STARVED.replace(" Without a\n    processor (cpu-starved), that can come of itself.", ""),
    "output of nothing": "```output\nx\n```\n",
    "console": "```console\n$ echo a\nb\n```\n",
    "commands as text": "```text\n$ pk report\n```\n",
    "json": "```json\n{'a': 1}\n```\n",
    "yaml": "```yaml\na: [1\n```\n",
    "script in yaml": "```yaml\na: [{ run: 'if' }]\n```\n",
    "build file": "```cmake\nfind_package(pk)\n```\n",
    "link": "[x](nowhere.md)\n",
    "anchor": "# A\n\n[x](#b)\n",
}


def complaints(text, build, installed, libdir):
    with tempfile.TemporaryDirectory(prefix="pk-docs-") as root:
        os.mkdir(os.path.join(root, "docs"))
        with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
            file.write(text)
        return run.run_page(root, build, installed, libdir, "README.md")[1] + list(checks.wrong_links(root, ["README.md"]))


def main(build, prefix, libdir):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and take the folder along
    failed = []
    with tempfile.TemporaryDirectory(prefix="pk-docs-") as folder:
        installed = run.install(os.path.abspath(build), folder, prefix)
        run.GIVEN = "/nowhere"
        for name, text in RIGHT.items():
            failed += [f"{name}: {complaint}" for complaint in complaints(text, build, installed, libdir)]
        for name, text in WRONG.items():
            if not complaints(text, build, installed, libdir):
                failed.append(f"{name}: nothing is found")
    print("\n".join(failed) or f"{len(RIGHT)} pages are right, {len(WRONG)} are wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
