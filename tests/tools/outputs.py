"""outputs.py PK GOLDEN_FOLDER - whatever a command writes, it writes whole files: never in the place of a link, a device, a
pipe, a socket or a folder, and with the permissions that the umask leaves.
"""

import os
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

import traces

PK, GOLDEN = map(os.path.abspath, sys.argv[1:3])
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
