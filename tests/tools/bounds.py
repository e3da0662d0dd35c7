"""bounds.py PK - a small compressed file may be any amount of text: one line that says what is wrong with it, in little memory."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

PK = os.path.abspath(sys.argv[1])
MIB = 1 << 20
BOUND = 300 * MIB  # a line of 64 MiB may be read, and be copied once; what it expands to is ten times that
LIMITED = not os.environ.get("PK_TEST_NO_LIMIT")  # a sanitizer's memory is its own
WHOLE = 640 * MIB
# With a sanitizer, what is more than enough to be refused: more than a string may have, more than a line may have.
STRING = 400 * MIB if LIMITED else 20 * MIB
LINE = 400 * MIB if LIMITED else 72 * MIB
HEAD = b'{"traceEvents":[\n{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":1},\n'
COMMANDS = {
    "report": ("report", "FILE"),
    "query": ("query", "SELECT count(*) FROM calls", "FILE"),
    "export": ("export", "--csv", "OUT", "FILE"),
    "compare": ("compare", "FILE", "FILE"),
    "recover": ("recover", "FILE", "-o", "OUT"),
    "merge": ("merge", "FILE", "-o", "OUT"),
}
if not LIMITED:
    del COMMANDS["export"]  # reads as query does


def run(*arguments):
    """Exit status, what it said, and the most memory that it had at once."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([PK, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return child.returncode, said.read().decode(), used.ru_maxrss * 1024


class Bounds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def bomb(self, start, again, expanded=LINE):
        """A file of a few MiB that begins with `start` and goes on with so many bytes of `again`: one member of gzip after the other."""
        path = os.path.join(self.folder, "bomb.json.gz")
        member = gzip.compress(again * (MIB // len(again)))
        with open(path, "wb") as file:
            file.write(gzip.compress(start))
            for _ in range(expanded // MIB):
                file.write(member)
        return path

    def refused(self, start, again, says, but=(), expanded=STRING):
        path = self.bomb(start, again, expanded)
        for command in COMMANDS.keys() - set(but):
            words = COMMANDS[command]
            with self.subTest(command=command):
                out = os.path.join(self.folder, "out")
                status, said, memory = run(*({"FILE": path, "OUT": out}.get(word, word) for word in words))
                self.assertEqual(status, 2, said)
                self.assertRegex(said, r"\Apk: [ -~]*\n\Z")
                self.assertRegex(said, says.get(command, says["else"]))
                self.assertFalse(os.path.isfile(out))
                if LIMITED:
                    self.assertLess(memory, BOUND)

    def test_zeros(self):
        self.refused(b"", b"\0", {"recover": "not a trace of perfkit", "else": "not JSON: it has a byte that is zero"})

    @unittest.skipUnless(LIMITED, "only this much of them is too much; a sanitizer takes a minute for it")
    def test_blanks(self):
        self.refused(b"", b" ", {"else": "too large"}, but=[c for c in COMMANDS if c != "query"],
                     expanded=WHOLE)  # each that reads so far takes 5 s

    def test_a_string(self):
        self.refused(b'{"a":"', b"x", {"recover": "not a trace of perfkit", "else": "a string or a number of more than 16 MiB"})

    def test_a_string_of_escapes(self):
        self.refused(b'{"a":"', b'\\"', {"recover": "not a trace of perfkit", "else": "a string or a number of more than 16 MiB"})

    def test_a_number(self):
        self.refused(b'{"a":1', b"2", {"recover": "not a trace of perfkit", "else": "a string or a number of more than 16 MiB"})

    def test_a_line_behind_others(self):
        says = "a line of more than 64 MiB"
        self.refused(HEAD, b"x", {"compare": "a string or a number of more than 16 MiB", "else": says}, but=["recover", "merge"],
                     expanded=LINE)
        out = os.path.join(self.folder, "kept.json")
        self.assertEqual(run("recover", self.bomb(HEAD, b"x"), "-o", out)[:2], (0, ""))
        with open(out, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["traceEvents"]), 1)  # what stood before it

    def test_what_is_within_the_bounds(self):
        """One event per line or all in one, with a text of 8 MiB and in 80 MiB of them."""
        event = b'{"ph":"X","name":"%s","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":1}'
        for between in (b",\n", b","):
            path = os.path.join(self.folder, "whole.json")
            with open(path, "wb") as file:
                file.write(HEAD.replace(b",\n", between).replace(b"[\n", b"[\n" if between == b",\n" else b"["))
                file.write(between.join([event % (b"n" * (8 * MIB))] * 10) + b"\n]}\n")
            status, said, _ = run("query", "SELECT count(*) FROM calls", path)
            self.assertEqual((status, said), (0, ""), between)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
