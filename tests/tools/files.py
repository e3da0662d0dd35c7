"""files.py CASE,... PK GOLDEN_FOLDER - the files that commands write, and compressed ones that they read."""

import gzip
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import traces
import unittest

CASES = sys.argv[1].split(",")
PK, GOLDEN = map(os.path.abspath, sys.argv[2:4])


# ---- what a command writes ----

# Whole files: never in the place of a link, a device, a pipe, a socket or a folder, and with the permissions that the umask
# leaves.

CUT = traces.trace()[:-200].encode()


def run(*arguments, **more):
    return subprocess.run([PK, *arguments], capture_output=True, timeout=60, check=False, text=True, **more)


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)


# "stream" leads to where /dev/stdout leads: a test that failed must not have replaced the machine's.
KINDS = {
    "link": (lambda path: os.symlink("precious", path), "is a symbolic link (to precious): name the file itself"),
    "dangling": (lambda path: os.symlink("nowhere", path), "is a symbolic link (to nowhere): name the file itself"),
    "stream": (lambda path: os.symlink("/proc/self/fd/1", path), "is a link to what a process has open: name a file"),
    "pipe": (os.mkfifo, "is a named pipe: name a file"),
    "socket": (make_socket, "is a socket: name a file"),
    "folder": (os.mkdir, "is a directory: name a file in it"),
}


class Outputs(unittest.TestCase):
    """Each way to name an output, as (arguments, the file, does the option know "-")."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.cut = self.file("cut.json", CUT)
        self.report = os.path.join(GOLDEN, "report-train.json")
        self.runs = [os.path.join(GOLDEN, f"compare-run-{i}.json") for i in (1, 2)]
        os.mkdir(self.path("tables"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def ways(self):
        out, tables = self.path("out.x"), self.path("tables")
        yield ("recover", self.cut, "-o", out), out, False
        yield ("recover", self.cut, "-o", out + ".gz"), out + ".gz", False
        yield ("merge", self.cut, "-o", out), out, False
        yield ("merge", self.cut, "--manifest", "-o", out), out, False
        for form in ("json", "markdown", "junit"):
            yield ("compare", *self.runs, f"--{form}", out), out, True
        for form in ("csv", "ndjson"):
            yield ("export", f"--{form}", tables, "--tables", "regions", self.report), os.path.join(tables, "regions." + form), False
        for kind, arguments in (("html", ("report", "--html", out, self.report)), ("html", ("job", "--html", out, self.report)),
                                ("sqlite", ("export", "--sqlite", out, self.report))):
            if self.is_built(kind, arguments):
                yield arguments, out, kind == "html"

    def is_built(self, kind, arguments):
        done = run(*arguments)
        if done.returncode == 0:
            os.unlink(self.path("out.x"))
            return True
        self.assertIn("was built without", done.stderr, kind)
        return False

    def everything(self):
        """Each file's kind and content."""
        found = {}
        for folder, folders, files in os.walk(self.folder):
            for name in folders + files:
                path = os.path.join(folder, name)
                mode = os.lstat(path).st_mode
                content = os.readlink(path) if stat.S_ISLNK(mode) else content_of(path) if stat.S_ISREG(mode) else None
                found[path] = (stat.S_IFMT(mode), content)
        return found

    def refused(self, arguments, path, says, takes_standard):
        before = self.everything()
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Apk: [ -~]*\n\Z")
        self.assertIn(f"{path}: {says}", done.stderr)
        self.assertEqual("for the standard output" in done.stderr, takes_standard)
        self.assertEqual(self.everything(), before)

    def test_what_is_no_file(self):
        self.file("precious", b"precious")
        for arguments, path, standard in self.ways():
            for kind, (make, says) in KINDS.items():
                with self.subTest(command=arguments, kind=kind):
                    if "precious" in says:
                        self.file(os.path.relpath(os.path.join(os.path.dirname(path), "precious"), self.folder), b"precious")
                    make(path)
                    self.refused(arguments, path, says, standard and kind in ("stream", "pipe", "socket"))
                    os.rmdir(path) if kind == "folder" else os.unlink(path)

    def test_the_null_device(self):
        for arguments, path, standard in self.ways():
            if path.endswith("out.x"):
                with self.subTest(command=arguments):
                    arguments = ["/dev/null" if a == path else a for a in arguments]
                    self.refused(arguments, "/dev/null", "is the null device: name a file", False)

    def test_permissions(self):
        for mask in (0, 0o022, 0o027, 0o077):
            for arguments, path, _ in self.ways():
                with self.subTest(command=arguments, mask=oct(mask)):
                    done = run(*arguments, umask=mask)
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    self.assertEqual(oct(os.stat(path).st_mode & 0o777), oct(0o666 & ~mask))
                    os.unlink(path)

    def test_baselines(self):
        folder = self.path("baseline")
        store = ("compare", "--baseline", folder, "--store", self.runs[0])
        self.assertEqual(run(*store, umask=0o027).returncode, 0)
        (path,) = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        self.assertEqual(oct(os.stat(path).st_mode & 0o777), oct(0o640))
        os.unlink(path)
        os.symlink(self.runs[0], path)
        self.refused(store, path, f"is a symbolic link (to {self.runs[0][:120]}): name the file itself", False)

    def test_a_file_of_the_name_that_a_part_would_have(self):
        self.file("out.json.part", b"somebody's")
        self.assertEqual(run("recover", self.cut, "-o", self.path("out.json")).returncode, 0)
        self.assertEqual(content_of(self.path("out.json.part")), b"somebody's")


# ---- what a command reads ----

# A small compressed file may be any amount of text: one line that says what is wrong with it, in little memory.

MIB = 1 << 20
BOUND = 300 * MIB  # a line of 64 MiB may be read, and be copied once; what it expands to is ten times that
LIMITED = not os.environ.get("PK_TEST_NO_LIMIT")  # a sanitizer's memory is its own
WHOLE = 640 * MIB
# With a sanitizer, what is more than enough to be refused: more than a string may have, more than a line may have.
STRING = 400 * MIB if LIMITED else 20 * MIB
LINE = 400 * MIB if LIMITED else 72 * MIB
OPENING = b'{"traceEvents":[\n{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":1},\n'
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


def run_bounded(*arguments):
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
                status, said, memory = run_bounded(*({"FILE": path, "OUT": out}.get(word, word) for word in words))
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
        self.refused(OPENING, b"x", {"compare": "a string or a number of more than 16 MiB", "else": says}, but=["recover", "merge"],
                     expanded=LINE)
        out = os.path.join(self.folder, "kept.json")
        self.assertEqual(run_bounded("recover", self.bomb(OPENING, b"x"), "-o", out)[:2], (0, ""))
        with open(out, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["traceEvents"]), 1)  # what stood before it

    def test_what_is_within_the_bounds(self):
        """One event per line or all in one, with a text of 8 MiB and in 80 MiB of them."""
        event = b'{"ph":"X","name":"%s","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":1}'
        for between in (b",\n", b","):
            path = os.path.join(self.folder, "whole.json")
            with open(path, "wb") as file:
                file.write(OPENING.replace(b",\n", between).replace(b"[\n", b"[\n" if between == b",\n" else b"["))
                file.write(between.join([event % (b"n" * (8 * MIB))] * 10) + b"\n]}\n")
            status, said, _ = run_bounded("query", "SELECT count(*) FROM calls", path)
            self.assertEqual((status, said), (0, ""), between)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + CASES)
