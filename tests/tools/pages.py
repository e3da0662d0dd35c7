"""pages.py CASE PK FOLDER SOURCE - what pk says of itself is one thing: on the command line, in its manual pages,
and in what the shells complete. FOLDER has the pages as they were made.

CASE: words (pk alone), man, bash, zsh, fish. Without the program that a case needs: 77.
"""

import contextlib
import glob
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

PK = FOLDER = SOURCE = ""
# What pk starts itself with; nobody is to type it.
HIDDEN = {"--pk-launch"}
# An option that is known may begin to measure the machine: once, and little.
QUICK = {"machine": ("--memory", "1", "--rounds", "1")}


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, LC_ALL="C.UTF-8"), **more)


def commands():
    return re.findall(r"^  ([a-z][a-z-]*)  ", run(PK, "--help").stdout, re.M)


def help_of(name):
    return run(PK, name, "--help").stdout


def table_of(name):
    """What the command reads its options by."""
    return json.loads(run(PK, name, "--help=json").stdout)["options"]


def known_to(name):
    return {option["name"] for option in table_of(name)}


def options_in(text):
    """The options that a help text explains: those at the beginning of an indented line."""
    found = set()
    for line in re.findall(r"^  (-\S.*)$", text, re.M):
        head = re.split(r"  +", line)[0]
        found |= set(re.findall(r"(?:^|, )(--?[a-z][\w-]*)", head))
    return found


def page(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


class Words(unittest.TestCase):
    def test_there_are_commands(self):
        self.assertGreaterEqual(set(commands()), {"report", "bench-ab", "compare", "recover", "status"})

    def test_version_is_that_of_the_headers(self):
        with open(os.path.join(SOURCE, "include/pk/version.h"), encoding="utf-8") as file:
            parts = re.findall(r"define PK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
        self.assertEqual(run(PK, "--version").stdout, f"pk (perfkit) {'.'.join(parts)}\n")

    def test_help_is_help(self):
        whole = run(PK, "--help")
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        self.assertEqual(run(PK, "help").stdout, whole.stdout)
        self.assertEqual(run(PK, "-h").stdout, whole.stdout)
        for name in commands():
            shown = [run(PK, *ask) for ask in (("help", name), (name, "--help"), (name, "-h"))]
            self.assertEqual({(s.returncode, s.stdout, s.stderr) for s in shown},
                             {(0, shown[0].stdout, "")}, name)
            self.assertTrue(shown[0].stdout.startswith(f"usage: pk {name}"), name)
            self.assertIn("Exit status:", shown[0].stdout, name)
            self.assertIn("--help", options_in(shown[0].stdout), name)

    def test_the_options_of_the_table_are_in_the_help(self):
        for name in commands():
            self.assertEqual(options_in(help_of(name)), known_to(name), name)
            for option in table_of(name):
                self.assertTrue(option["help"], option)
                self.assertEqual(bool(option["kind"]), bool(option["value"]), option)

    def test_help_fits_a_terminal(self):
        for name in commands():
            long = [line for line in help_of(name).split("\n") if len(line) > 100]
            self.assertEqual(long, [], name)

    def test_what_is_unknown_is_refused_in_one_line(self):
        cases = [(name, option) for name in commands() for option in ("--nonsense", "-Z", "--nonsense=1")]
        cases += [("--nonsense",), ("nonsense",), ("help", "nonsense"), ("help", "report", "status")]
        for case in cases:
            answer = run(PK, *case)
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), case)
            self.assertRegex(answer.stderr, r"\Apk: .+\n\Z", case)
            self.assertIn(case[-1].split("=")[0], answer.stderr, case)

    def test_each_option_in_a_help_is_one(self):
        for name in commands():
            for option in options_in(help_of(name)) - {"--help", "-h"}:
                answer = run(PK, name, *QUICK.get(name, ()), option, timeout=60)
                self.assertIn(answer.returncode, (0, 2), (name, option))
                self.assertNotIn("no option", answer.stderr, (name, option))

    def test_nothing_is_an_option_behind_two_dashes(self):
        for name in commands():
            answer = run(PK, name, "--", "--help")
            self.assertEqual((answer.returncode, answer.stdout), (127 if name == "run" else 2, ""), name)
            self.assertNotIn("no option", answer.stderr, name)

    def test_a_value_may_stand_behind_an_equals_sign(self):
        for name in commands():
            for option in table_of(name):
                if option["value"] and option["name"].startswith("--"):
                    apart, joined = run(PK, name, option["name"], "%"), run(PK, name, option["name"] + "=%")
                    self.assertEqual((apart.returncode, apart.stderr), (joined.returncode, joined.stderr), option)
                elif not option["value"]:
                    self.assertIn("no option", run(PK, name, option["name"] + "=%").stderr, option)

    def test_each_option_that_pk_knows_is_in_a_help(self):
        with open(PK, "rb") as file:
            known = {word.decode() for word in re.findall(rb"\0(--[a-z][a-z-]+)=?(?=\0)", file.read())}
        told = set().union(*(options_in(run(PK, "help", *name).stdout)
                             for name in [[]] + [[name] for name in commands()]))
        # what the benchmark programs that pk starts are told, and pk's children
        others = set(re.findall(r'"(--[a-z-]+)', sources("tools/compare/launch.c", "tools/compare/compare.h", "lib/bench/*.[ch]")))
        self.assertGreater(len(known & told), 5)
        self.assertEqual(known - told - others - HIDDEN, set())


def sources(*patterns):
    text = ""
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(SOURCE, pattern))):
            with open(path, encoding="utf-8") as file:
                text += file.read()
    return text


def words(text):
    return {word.strip(".") for word in re.findall(r"[\w.%-]+", text)} - {""}


class Man(unittest.TestCase):
    def options(self, text):
        heads = re.findall(r"^\.TP\n(.*)$", text, re.M)
        return {option.replace("\\-", "-") for head in heads
                for option in re.findall(r"\\fB(\\-[\w\\-]*)\\fR", head)}

    def test_pages_have_the_options_and_no_others(self):
        for name in commands():
            self.assertEqual(self.options(page(f"pk-{name}.1")), known_to(name), name)
        self.assertEqual(self.options(page("pk.1")), {"--help", "-h", "--version"})

    def test_pages_say_what_the_help_says(self):
        for name in commands():
            shown = run("mandoc", "-Tutf8", "-O", "width=400", os.path.join(FOLDER, f"pk-{name}.1")).stdout
            shown = re.sub(r".\x08", "", shown).replace("\u2019", "'").replace("\u2010", "-")
            missing = words(help_of(name)) - words(shown) - {"usage", "Exit", "status"}
            self.assertEqual(missing, set(), name)

    def test_headers_are_named(self):
        for header in os.listdir(os.path.join(SOURCE, "include/pk")):
            self.assertIn(f"pk/{header}", page("perfkit.7").replace("\\-", "-"))

    def test_pages_are_clean(self):
        for name in sorted(os.listdir(FOLDER)):
            if name.endswith((".1", ".7")):
                lint = run("mandoc", "-Tlint", "-W", "style", os.path.join(FOLDER, name))
                self.assertEqual((lint.returncode, lint.stdout + lint.stderr), (0, ""))
                if shutil.which("man") and shutil.which("groff"):
                    shown = run("man", "--warnings", "-l", os.path.join(FOLDER, name))
                    self.assertEqual((shown.returncode, shown.stderr), (0, ""))


class InFolder(unittest.TestCase):
    """In a folder with files of every kind."""

    FILES = ("run.json", "run.json.gz", "run.json.arena", "notes.txt", "a b.json")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name in self.FILES:
            open(os.path.join(self.folder.name, name), "w").close()
        os.mkdir(os.path.join(self.folder.name, "runs"))

    def test_commands(self):
        self.assertEqual(self.complete("re"), {name for name in commands() if name.startswith("re")})
        self.assertGreaterEqual(self.complete(""), set(commands()) | {"help"})
        self.assertEqual(self.complete("help rec"), {"recover"})

    def test_options(self):
        for name in commands():
            told = {option for option in known_to(name) if option.startswith("--")}
            offered = {word for word in self.complete(f"{name} --") if word.startswith("--")}
            self.assertEqual(offered, told, name)
        self.assertEqual(self.complete("report --to"), {"--top"})

    def test_values(self):
        """Any file, a folder, or nothing that could be known."""
        offers = {"file": set(self.FILES) - {"notes.txt", "a b.json"} | {"runs"}, "folder": {"runs"}, "text": set()}
        for name in commands():
            for option in table_of(name):
                if option["kind"]:
                    self.assertEqual(self.complete(f"{name} {option['name']} r"), offers[option["kind"]], option)

    def test_files(self):
        self.assertEqual(self.complete("report "), {"run.json", "run.json.gz", "a b.json", "runs"})
        self.assertEqual(self.complete("recover run"), {"run.json", "run.json.gz", "run.json.arena", "runs"})
        self.assertEqual(self.complete("compare --markdown no"), {"notes.txt"})
        self.assertEqual(self.complete("compare --baseline r"), {"runs"})
        self.assertEqual(self.complete("status ") - known_to("status"), set())


class Bash(InFolder):
    SCRIPT = """
        . "$1"
        COMP_WORDS=(pk "${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _pk
        printf '%s\\n' "${COMPREPLY[@]}"
    """

    def complete(self, line):
        words = line.split(" ")
        answer = run("bash", "--norc", "-c", self.SCRIPT, "bash", os.path.join(FOLDER, "pk"), *words,
                     cwd=self.folder.name)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""), line)
        return {word for word in answer.stdout.split("\n") if word}

    def test_an_equals_sign(self):
        self.assertEqual(self.complete("compare --markdown = no"), {"notes.txt"})
        self.assertEqual(self.complete("compare x.json --markdown ="),
                         {"run.json", "run.json.gz", "run.json.arena", "notes.txt", "a b.json", "runs"})

    def test_it_is_registered(self):
        answer = run("bash", "--norc", "-c", '. "$1" && complete -p pk', "bash", os.path.join(FOLDER, "pk"))
        self.assertEqual(answer.stdout, "complete -F _pk pk\n")


class Fish(InFolder):
    def complete(self, line):
        with tempfile.TemporaryDirectory() as home:
            places = {f"XDG_{name}_HOME": home for name in ("CONFIG", "DATA", "CACHE")}
            answer = subprocess.run(
                ["fish", "--no-config", "-c", 'source $argv[1]; complete -C "pk $argv[2]"',
                 os.path.join(FOLDER, "pk.fish"), line], capture_output=True, text=True, check=False,
                cwd=self.folder.name, env=dict(os.environ, HOME=home, LC_ALL="C.UTF-8", **places))
        self.assertEqual((answer.returncode, answer.stderr), (0, ""), line)
        return {word.split("\t")[0].replace("\\ ", " ").rstrip("/")
                for word in answer.stdout.split("\n") if word}


class Zsh(InFolder):
    """zsh completes at a terminal only, so one has a terminal, at which nobody types: what is typed ahead of a line editor
    is the terminal's to edit. As the editor begins it asks for lines, by a pipe, and answers by another."""

    STARTUP = """
        PS1= fpath=($PAGES $fpath)
        autoload -Uz compinit
        compinit -u -D
        zstyle ':completion:*' list-separator ''
        zstyle ':completion:*' verbose no
        compadd() {
            local -a hits
            [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]] && { builtin compadd "$@"; return }
            builtin compadd -O hits "$@"
            offered+=("${hits[@]}")
            builtin compadd "$@"
        }
        offer() { _main_complete; compstate[insert]= compstate[list]= }
        zle -C offer complete-word offer
        answer() {
            local folder line
            local -a offered
            while IFS= read -r -u $ASKED folder && IFS= read -r -u $ASKED line; do
                cd -q -- $folder
                offered=()
                BUFFER="pk $line" CURSOR=$(($#line + 3))
                zle offer
                print -r -l -u $ANSWERED -- "${offered[@]}" .
            done
            exit
        }
        zle -N zle-line-init answer
    """
    PATIENCE = 240  # seconds

    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        with open(os.path.join(home.name, ".zshrc"), "w", encoding="utf-8") as file:
            file.write(cls.STARTUP)
        asked, cls.asks = os.pipe()
        cls.answers, answered = os.pipe()
        places = {"HOME": home.name, "ZDOTDIR": home.name, "PAGES": FOLDER, "ASKED": str(asked), "ANSWERED": str(answered)}
        pid, cls.terminal = pty.fork()
        if pid == 0:
            os.set_inheritable(asked, True)
            os.set_inheritable(answered, True)
            os.execvpe("zsh", ["zsh", "-d", "-i"], dict(os.environ, LC_ALL="C.UTF-8", TERM="dumb", **places))
        os.close(asked)
        os.close(answered)
        cls.shown = b""
        watch = threading.Thread(target=cls.read_terminal)
        watch.start()
        for last in (cls.answers, cls.terminal):
            cls.addClassCleanup(os.close, last)
        cls.addClassCleanup(watch.join)
        cls.addClassCleanup(os.waitpid, pid, 0)
        cls.addClassCleanup(os.close, cls.asks)  # the first one: zsh ends

    @classmethod
    def read_terminal(cls):
        """Or else whoever writes to it waits. Its end is an error on Linux."""
        with contextlib.suppress(OSError):
            while more := os.read(cls.terminal, 65536):
                cls.shown += more

    def complete(self, line):
        with contextlib.suppress(BrokenPipeError):
            os.write(self.asks, f"{self.folder.name}\n{line}\n".encode())
        answer = b""
        while not f"\n{answer.decode()}".endswith("\n.\n"):
            ready = select.select([self.answers], [], [], self.PATIENCE)[0]
            more = os.read(self.answers, 65536) if ready else b""
            self.assertTrue(more, f"zsh has {'ended' if ready else 'not answered'}: {self.shown.decode(errors='replace')}")
            answer += more
        return {word.replace("\\ ", " ") for word in answer.decode().split("\n")[:-2]}

    def test_it_is_zsh(self):
        answer = run("zsh", "-n", os.path.join(FOLDER, "_pk"))
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))


CASES = {"words": (Words, None), "man": (Man, "mandoc"), "bash": (Bash, "bash"), "zsh": (Zsh, "zsh"),
         "fish": (Fish, "fish")}

if __name__ == "__main__":
    CASE, PK, FOLDER, SOURCE = sys.argv[1:5]
    test, program = CASES[CASE]
    if program and not shutil.which(program):
        print(f"skipped: {program} is not installed")
        sys.exit(77)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(test)
    with tempfile.TemporaryDirectory() as kept:
        os.environ["PK_MACHINE_PATH"] = os.path.join(kept, "machine")  # or it is in the home of whoever tests
        sys.exit(not unittest.TextTestRunner(stream=sys.stderr).run(suite).wasSuccessful())
