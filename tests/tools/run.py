"""run.py CASES PK PROGRAM STATIC LINKED LISTEN OMP FUNCTIONS OWN - pk run: the program is what it is without it, and a report of it
lies in the folder. PROGRAM is run_program; STATIC the same, linked with -static, or none; LINKED a program that is linked with
perfkit; LISTEN is run_listen, OMP the source run_omp.c; FUNCTIONS and OWN are run_functions, without and with hooks of its own."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

CASES = sys.argv[1].split(",")
PK, PROGRAM, STATIC, LINKED, LISTEN, OMP, FUNCTIONS, OWN = (os.path.abspath(word) if word != "none" else None
                                                            for word in sys.argv[2:10])


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("PK_", "LD_", "OMPI", "PMI"))}
        self.env["OMP_WAIT_POLICY"] = "passive"  # threads of a team that wait leave the processor to others

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self, *command, **env):
        return subprocess.run(command, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True,
                              timeout=120, check=False)

    def attached(self, *command, options=(), **env):
        return self.start(PK, "run", "-o", "of", *options, "--", *command, **env)

    def report(self, name="0.report.json", folder="of"):
        with open(self.path(folder, name), encoding="utf-8") as file:
            return json.load(file)

    def names(self, folder="of"):
        return sorted(os.listdir(self.path(folder))) if os.path.isdir(self.path(folder)) else []

    def script(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def assert_told(self, done, lines=None):
        """At the end it says where it lies, below what the report begins with; to stderr alone."""
        self.assertEqual(done.stderr.count("perfkit: "), 1, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], "^perfkit: recorded in ")
        self.assertRegex(done.stderr, lines or "^perfkit [0-9.]+ report\n")
        self.assertLess(done.stderr.count("\n"), 27, done.stderr)

    def assert_alone(self, said, *command, code=0):
        """It runs, nothing is recorded, and one line says why."""
        done = self.attached(*command)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(said, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(self.names(), [])


class Same(Run):
    def test_status_and_streams(self):
        for words, code in (("a b", 0), ("exit", 3), ("_exit", 4), ("fork", 0)):
            alone, done = self.start(PROGRAM, *words.split()), self.attached(PROGRAM, *words.split())
            self.assertEqual((alone.returncode, alone.stdout), (code, done.stdout))
            self.assertEqual(done.returncode, code)
            self.assert_told(done, "^perfkit: " if words == "_exit" else None)  # by _exit there is time for one line
            self.assertEqual(self.report()["run"]["program"], "tools-run_program")
            self.assertFalse([name for name in self.names() if "arena" in name])
        self.assertEqual(self.attached(PROGRAM, options=["--quiet"]).stderr, "")

    def test_starts_with_little(self):
        """Each rank of a job starts it, so it loads nothing by which other commands read files."""
        if not os.path.exists(os.path.join(os.path.dirname(PK), "pk-commands")):
            self.skipTest("pk is one file in this build")
        loaded = self.start(PK, "run", LD_TRACE_LOADED_OBJECTS="1").stdout
        self.assertIn("libc.so", loaded)
        self.assertNotRegex(loaded, "libsqlite|libdw|libelf|libjansson|libz")

    def test_a_file_where_stderr_was(self):
        self.attached(PROGRAM, "own-stderr")
        self.assertEqual(os.path.getsize(self.path("mine")), 0)
        self.assertEqual(self.report()["run"]["program"], "tools-run_program")

    def test_arguments(self):
        words = ["", "a b", "--", "-o", "$x", "é"]
        self.assertEqual(self.attached(PROGRAM, *words).stdout, self.start(PROGRAM, *words).stdout)

    def test_signals(self):
        for word, number in (("kill", signal.SIGKILL), ("interrupt", signal.SIGINT)):
            self.assertEqual(self.attached(PROGRAM, word).returncode, -number)
            self.assertIn("0.arena", self.names())
            done = self.start(PK, "recover", self.path("of", "0.arena"), "-o", self.path("trace.json"))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.attached(PROGRAM)  # what was killed before it is gone
        self.assertFalse([name for name in self.names() if "arena" in name])

    def test_as_a_shell(self):
        self.assertEqual(self.start(PK, "run", "--", "true").returncode, 0)
        self.assertEqual(self.start(PK, "run", "--", "sh", "-c", "exit 7").returncode, 7)
        open(self.path("plain"), "w", encoding="ascii").close()
        for word, code in (("nowhere", 127), ("./nowhere", 127), ("./plain", 126), (".", 127), ("./", 126)):
            done = self.attached(word)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), word)
            self.assertIn(f"pk: run: {word}: ", done.stderr)
        self.assertEqual(self.attached(self.script("headless", "exit 6\n")).returncode, 6)
        self.assertEqual(self.start(PK, "run", "true").returncode, 2)
        self.assertEqual(self.start(PK, "run", "--").returncode, 2)

    def test_environment(self):
        for more in ({}, {"LD_PRELOAD": ""}, {"LD_PRELOAD": "libm.so.6"}, {"PK_LOG": "none", "A": "1\n2"}):
            alone, done = self.start(PROGRAM, "env", **more), self.attached(PROGRAM, "env", **more)
            self.assertEqual(alone.stdout, done.stdout)
            self.assertIn("listener none\n", alone.stderr)
            self.assertRegex(done.stderr, r"listener /.*/libpk\.so")
        given = self.attached(PROGRAM, "env", NVTX_INJECTION64_PATH="/mine")
        self.assertIn("listener /mine\n", given.stderr)
        self.assertIn("listener none\n", self.attached(PROGRAM, "env", options=["--listen", "-nvtx"]).stderr)

    def test_the_users_variables_win(self):
        done = self.attached(PROGRAM, PK_REPORT_PATH="mine.json", PK_TRACE_PATH="trace.json")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(os.path.exists(self.path("mine.json")) and os.path.exists(self.path("trace.json")))
        self.assertNotIn("0.report.json", self.names())
        self.assertEqual(self.attached(PROGRAM, PK_OFF="1").stderr, "")

    def test_auxiliary_vector(self):
        """It stands right behind the variables, of which some have gone."""
        for options in ([], ["--quiet"], ["--children"], ["--trace"], ["--trace", "--quiet"], ["--step", "none"]):
            for before in ([], ["env", "A=1"], ["env", "-u", "PATH"]):
                for more in ({}, {"LD_PRELOAD": "libm.so.6"}):
                    done = self.attached(*before, PROGRAM, "auxiliary", options=options, **more)
                    self.assertEqual(done.stdout, "page found\n", (options, before, more))

    def test_cancelled_before_it_exits(self):
        self.assertEqual(self.start(PROGRAM, "cancelled").returncode, 3)
        done = self.attached(PROGRAM, "cancelled")
        self.assertEqual(done.returncode, 3)
        self.assert_told(done)

    def test_sealed(self):
        """It, or what it becomes or starts, dies where it calls what it does not call alone."""
        for word, code in (("sealed", 3), ("sealed-exec", 3), ("sealed-child", 5)):
            for options in ([], ["--children"]):
                self.assertEqual((self.start(PROGRAM, word).returncode,
                                  self.attached(PROGRAM, word, options=options).returncode), (code, code), word)

    def test_first_of_its_namespace(self):
        """Its child in another one has the same number."""
        alone = ("unshare", "-rpf", "--mount-proc")
        if not shutil.which("unshare") or self.start(*alone, "unshare", "-pf", "true").returncode:
            self.skipTest("there are no namespaces here")
        for options in ([], ["--children"]):
            done = self.start(*alone, PK, "run", "-o", "of", *options, "--", "unshare", "-pf", PROGRAM, "exit")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertEqual(self.report()["run"]["program"], "unshare")
            self.assert_told(done, "^perfkit: ")
            children = ["0-1.report.json", "0-1.windows.jsonl"] if options else []
            self.assertEqual(self.names(), [*children, "0.report.json", "0.windows.jsonl"])

    def test_what_the_user_puts_before_functions(self):
        """Stays before them."""
        with open(self.path("mine.c"), "w", encoding="ascii") as file:
            file.write("int unshare(int flags) { return flags + 1; }\n")
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler or self.start(compiler, "-shared", "-fPIC", "mine.c", "-o", "mine.so").returncode:
            self.skipTest("no compiler here")
        mine = {"LD_PRELOAD": self.path("mine.so")}
        self.assertEqual(self.attached(PROGRAM, "unshare", **mine).stdout, self.start(PROGRAM, "unshare", **mine).stdout)

    def test_exit_in_a_handler_amid_malloc(self):
        for _ in range(3):
            done = self.attached(PROGRAM, "exit-amid-malloc")
            self.assertEqual(done.returncode, 6)
            self.assert_told(done)

    def test_where_it_computes(self):
        """Of a program that tells nothing, too."""
        done = self.attached(PROGRAM, "spin", PK_LOG="stderr")
        if "samples: the kernel gives none" in done.stderr:
            self.skipTest("the kernel gives no samples")
        outside = self.report()["outside"]
        places = {f["place"].split("+")[0] for f in outside["functions"]}
        self.assertIn(os.path.realpath(PROGRAM), places)
        self.assertGreater(outside["sampled"], 300e6)


class Becomes(Run):
    """A process that becomes another program is still the same one; its children are others."""

    def test_scripts(self):
        self.script("one", f"#!/usr/bin/env sh\necho in one\nexec ./two x\n")
        self.script("two", f"#!/bin/sh\necho in two $1\nexec {PROGRAM} a exit\n")
        done = self.attached("./one")
        self.assertEqual((done.stdout, done.returncode), ("in one\nin two x\n[a]\n", 3))
        self.assert_told(done)
        self.assertEqual(self.report()["run"]["program"], "tools-run_program")
        self.assertEqual(self.names(), ["0.report.json", "0.windows.jsonl"])

    def test_wrappers(self):
        done = self.attached("env", "A=1", "nice", "-n", "1", PROGRAM, "env")
        self.assertEqual(self.report()["run"]["program"], "tools-run_program")
        self.assertIn("  A=1\n", done.stdout)
        self.assertNotIn("PK_RUN", done.stdout)
        bash = shutil.which("bash")
        if bash:  # it has a getenv of its own
            self.assertEqual(self.attached(bash, "-c", f"true; exec {PROGRAM} exit").returncode, 3)
            self.assertEqual(self.report()["run"]["program"], "tools-run_program")
        missing = self.attached("sh", "-c", "exec /nowhere/at/all")
        self.assertEqual(missing.returncode, 127)

    def same(self, *command, code, program=None, left=("0.report.json", "0.windows.jsonl")):
        """As alone, and with a report of the last program that could be followed."""
        alone, done = self.start(*command), self.attached(*command, options=["--quiet"])
        said = re.sub("pk: run: .*nothing can be written there.*\n", "", done.stderr)
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (code, done.stdout, said))
        self.assertEqual(done.returncode, code)
        if left:
            self.assertEqual(self.names(), list(left))
        if program:
            self.assertEqual(self.report()["run"]["program"], program)

    def test_one_by_one(self):
        for word in ("become", "become-env", "become-path"):
            self.same(PROGRAM, word, code=3, program="tools-run_program")
        self.same(PROGRAM, "become-many", code=3)

    def test_files_of_the_process_itself(self):
        for word in "self", "self-by-number":
            for options in ([], ["--children"]):
                done = self.attached(PROGRAM, word, options=options)
                self.assertEqual((done.returncode, done.stdout), (3, self.start(PROGRAM, word).stdout), word)

    def test_what_cannot_be_executed(self):
        """Who tries goes on, or reads it itself."""
        shutil.copy(PROGRAM, self.path("no-loader"))
        with open(PROGRAM, "rb") as file:
            data = file.read()
        for name, text in {"no-loader": data.replace(b"/ld-linux", b"/no-linux"), "foreign": data[:18] + b"\xad\xde" + data[20:],
                           "cut": data[:40], "bad": b"#!/nowhere\n", "none": b"#! \n", "badly": b"#!./bad x\n",
                           "loop": b"#!./loop\n", "long": b"#!/" + b"x" * 400, "headless": b"echo $BASH_VERSION\nexit 6\n",
                           "by-headless": b"#!./headless\n", "empty": b""}.items():
            with open(self.path(name), "wb") as file:
                file.write(text)
            os.chmod(self.path(name), 0o755)
            tries = f"import os\ntry: os.execv('./{name}', ['{name}', 'a'])\nexcept OSError as e: print(e.errno)\nos._exit(5)"
            self.same(sys.executable, "-c", tries, code=5)
        for shell in "sh", "bash":
            if shutil.which(shell):
                self.same(shell, "-c", "exec ./headless", code=6, program=os.path.basename(os.path.realpath(shutil.which(shell))))
        self.same("env", "./headless", code=6)
        self.same("env", "./bad", code=127)
        for name in "none", "long":  # a shell's, where the kernel takes neither
            self.same("env", f"./{name}", code=0, left=None)

    def test_a_path_without_slash(self):
        shutil.copy(PROGRAM, self.path("hello"))
        self.script("tells", "#!/bin/sh\necho $0\n")
        for name in "hello", "tells":
            self.same(sys.executable, "-c", f"import os; os.execv('{name}', ['{name}', 'a'])", code=0)

    def test_out_of_reach(self):
        if os.getuid() != 0 or not STATIC:
            self.skipTest("not root, or no static program here")
        os.mkdir(self.path("root"))
        shutil.copy(STATIC, self.path("root", "p"))
        self.same("chroot", "root", "/p", "a", "exit", code=3, left=None)  # nor is the folder there

    def test_another_user(self):
        """Whom the kernel lets only a process of one thread become, or each thread alone."""
        for command in (["unshare", "-U", "true"], ["unshare", "-r", "id", "-u"], ["nsenter", "-m/proc/self/ns/mnt", "true"],
                        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", "id -u"]):
            if shutil.which(command[0]) and self.start(*command).returncode == 0:
                self.same(*command, code=0)

    def test_children(self):
        line = f"{PROGRAM} a; {PROGRAM} exit; true"
        self.assertEqual(self.attached("sh", "-c", line).stdout, "[a]\n")
        self.assertEqual(self.names(), ["0.report.json", "0.windows.jsonl"])
        self.attached("sh", "-c", line, options=["--children"])
        programs = [self.report(name)["run"]["program"] for name in self.names() if name.endswith("report.json")]
        self.assertEqual(programs.count("tools-run_program"), 2, self.names())

    def test_children_of_one_that_becomes_another(self):
        """Their reports stay, and those of ranks that it has started."""
        ranks = "".join(f"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK={rank} {PK} run -o of -- {PROGRAM}; " for rank in (0, 1))
        self.attached("sh", "-c", f"{ranks} exec {PROGRAM} exit")
        self.assertIn("1.report.json", self.names())
        self.attached("sh", "-c", f"{PROGRAM} a; exec {PROGRAM} exit", options=["--children"])
        self.assertEqual(len([name for name in self.names() if re.match("0-.*report", name)]), 1, self.names())

    def test_children_of_another_word_size(self):
        """For which our libraries are not: they are not told of."""
        with open(PROGRAM, "rb") as file:
            data = bytearray(file.read())
        data[4] = 1
        with open(self.path("p"), "wb") as file:
            file.write(data)
        os.chmod(self.path("p"), 0o755)
        line = ("sh", "-c", f"exec 2>/dev/null; ./p child; env ./p child; {sys.executable} -c 'import os; os.execlp(\"./p\", \"p\", \"child\")'")
        alone = self.start(*line)
        if alone.stdout.count("child\n") != 3:
            self.skipTest("the kernel looks at it more closely")
        for more in ({}, {"LD_PRELOAD": "libm.so.6"}):
            self.assertEqual(self.attached(*line, options=["--children"], **more).stdout, self.start(*line, **more).stdout)

    def test_what_children_preload(self):
        """As the program sets it, before ours, behind ours or without; and as the user has set it where nobody has."""
        for user in ({}, {"LD_PRELOAD": "libm.so.6"}):
            for line in ("LD_PRELOAD=libdl.so.2", "LD_PRELOAD=libdl.so.2:$LD_PRELOAD", "LD_PRELOAD=$LD_PRELOAD:libdl.so.2",
                         "LD_PRELOAD=", "-u LD_PRELOAD", "A=1"):
                line = f"env {line} sh -c 'echo $LD_PRELOAD'; true"
                done = self.attached("sh", "-c", line, options=["--children"], **user)
                ours, *rest = done.stdout.strip().split(":")
                self.assertIn("libpk_attach", ours)
                alone = self.start("sh", "-c", line, **user).stdout.strip().split(":")
                self.assertEqual([word for word in rest if word], [word for word in alone if word], line)

    def test_children_of_whom_nothing_is_said(self):
        """What a program reads of its child is the child's."""
        if not STATIC:
            self.skipTest("no static program here")
        line = f'read=$({STATIC} a 2>&1); echo "<$read>"'
        done = self.attached("sh", "-c", line, options=["--children"])
        self.assertEqual(done.stdout, "<[a]>\n")
        self.assert_told(done, "^perfkit: ")


class Jobs(Run):
    def test_ranks(self):
        """Each rank has its files; what an earlier, larger job has left goes."""
        os.mkdir(self.path("of"))
        for name in ("0.report.json", "1.report.json", "3.windows.jsonl", "7-12.step.json.gz", "mine.json", "3.txt"):
            open(self.path("of", name), "w", encoding="ascii").close()
        for rank in ("1", "0"):
            done = self.attached(PROGRAM, OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE="2")
            self.assertEqual(("`pk job" in done.stderr, done.stderr == ""), (rank == "0", rank == "1"))
        self.assert_told(done, "^tools-run_program, 2 of 2 ranks on 1 host")
        self.assertEqual(self.names(), ["0.report.json", "0.windows.jsonl", "1.report.json", "1.windows.jsonl",
                                        "3.txt", "mine.json"])
        self.assertEqual(self.report("1.report.json")["run"]["rank"], 1)

    def test_ranks_that_lose_their_environment(self):
        for rank in ("0", "1"):
            self.attached("sh", "-c", f"exec env -i {PROGRAM}", OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE="2")
        self.assertEqual(self.names(), ["0.report.json", "0.windows.jsonl", "1.report.json", "1.windows.jsonl"])
        run = self.report("1.report.json")["run"]
        self.assertEqual((run["rank"], run["world_size"]), (1, 2))

    def test_what_goes_from_the_folder(self):
        """What `pk run` calls so, and nothing of the user's."""
        os.mkdir(self.path("of"))
        ours = ["0.trace.json", "0-12.report.json", "0.windows.jsonl.prev", "0-7.step.json.gz", "0-7.1.step.json.gz",
                "0-12-7.step.json.gz", "0-12.arena", "3.trace.json"]
        users = ["2026-11-29.trace.json", "3-nodes.report.json", "0-base.report.json", "00.trace.json", "0-.arena",
                 "0.step.json.gz", "0x.report.json", "0.mine.report.json"]
        for name in ours + users:
            open(self.path("of", name), "w", encoding="ascii").close()
        self.attached(PROGRAM)
        self.assertEqual(self.names(), sorted(users + ["0.report.json", "0.windows.jsonl"]))

    def test_default_folder(self):
        self.start(PK, "run", "--", PROGRAM)
        self.assertIn("0.report.json", self.names("tools-run_program.pk"))

    def test_a_name_with_signs(self):
        done = self.start(PK, "run", "-o", "50 %r, it's", "--", PROGRAM, "a")
        self.assertEqual((done.returncode, done.stdout), (0, "[a]\n"))
        self.assertEqual(self.report(folder="50 %r, it's")["run"]["rank"], 0)

    def test_no_folder(self):
        open(self.path("of"), "w", encoding="ascii").close()
        done = self.attached(PROGRAM, "exit")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1))
        self.assertIn("of: Not a directory: nothing can be written there", done.stderr)


class Barred(Run):
    def test_linked_with_perfkit(self):
        done = self.attached(LINKED)
        self.assertEqual(done.returncode, self.start(LINKED).returncode)
        self.assertIn("it keeps its own session", done.stderr)
        self.assertEqual(self.names(), [])

    def test_static(self):
        if not STATIC:
            self.skipTest("no static program here")
        self.assert_alone("is linked statically", STATIC, "exit", code=3)

    def test_privileged(self):
        if os.getuid() != 0:
            self.skipTest("not root")
        shutil.copy(PROGRAM, self.path("p"))
        os.chown(self.path("p"), 65534, -1)
        os.chmod(self.path("p"), 0o4755)
        self.assert_alone("with another one's rights", "./p", "exit", code=3)

    def patched(self, find, put):
        with open(PROGRAM, "rb") as file:
            data = bytearray(file.read())
        at = find(data)
        data[at:at + len(put)] = put
        with open(self.path("p"), "wb") as file:
            file.write(data)
        os.chmod(self.path("p"), 0o755)
        return "./p"

    def test_another_loader(self):
        """As musl's, which is not here: the shell's 127 for it, too."""
        done = self.attached(self.patched(lambda data: data.index(b"/ld-linux"), b"/ld-musl-x.so\0"))
        self.assertEqual(done.returncode, 127)
        self.assertIn("/ld-musl-x.so, and perfkit is for glibc", done.stderr)

    def test_another_machine(self):
        done = self.attached(self.patched(lambda data: 18, struct.pack("<H", 0xdead)))
        self.assertEqual(done.returncode, 126)
        self.assertIn("is for another processor", done.stderr)

    def test_little_address_space(self):
        """In which the loader would not get our libraries in."""
        line = f"ulimit -v 12000; exec {PROGRAM} exit"
        done = self.attached("sh", "-c", line)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("the limit of address space (ulimit -v) is 12000 KiB", done.stderr)

    def test_without_proc(self):
        alone = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
        if not shutil.which("unshare") or self.start(*alone, "true").returncode:
            self.skipTest("nothing can be mounted here")
        done = self.start(*alone, PK, "run", "-o", "of", "--", PROGRAM, "exit")
        self.assertEqual((done.returncode, self.names()), (3, []))
        self.assertIn("/proc/self/exe cannot be read", done.stderr)

    def test_no_elf_at_all(self):
        """Cut at each of many places, and with numbers that lead outside: it is not read beyond its end."""
        with open(PROGRAM, "rb") as file:
            data = file.read()
        for at in [*range(0, 200, 7), *range(200, len(data), len(data) // 25)]:
            for text in (data[:at], data[:at] + b"\xff" * 9 + data[at + 9:]):
                self.script("q", "")
                with open(self.path("q"), "wb") as file:
                    file.write(text)
                self.assertIn(self.attached("./q").returncode, (0, 2, 126, 127, -4, -7, -8, -11), at)


class Listens(Run):
    """What programs tell, each by its field's interface, with exact counts and kinds; and steps of what repeats."""

    def told(self, *command, options=(), **env):
        done = self.attached(*command, options=options, **env)
        if done.returncode == 77:
            self.skipTest("built without NVTX's headers")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.report()
        self.assertEqual(report["counts"]["dropped"], 0)
        return report, {r["name"]: (r["kind"], r["time"]["count"]) for r in report["regions"]}, done

    def test_kokkos(self):
        report, regions, done = self.told(LISTEN, "kokkos", "40")
        self.assertEqual(done.stdout, "listened to\nno kernel is waited for\n")
        self.assertEqual(regions, {"turn": ("other", 40), "sum of squares": ("compute", 40), "all": ("wait", 40),
                                   "Kokkos deep copy Cuda to Host": ("data", 40)})
        copy = [r for r in report["regions"] if r["kind"] == "data"]
        self.assertEqual(copy[0]["bytes"], 40 * 64)
        held = [c for c in report["counters"] if c["name"] == "Kokkos memory Host"]
        self.assertEqual((held[0]["value"]["max"], held[0]["last"]), (1500, 1000))
        self.assertIn("nobody listens", self.attached(LISTEN, "kokkos", "1", options=["--listen", "-kokkos"]).stdout)

    def test_itt(self):
        _, regions, done = self.told(LISTEN, "itt", "40")
        self.assertEqual(done.stdout, "listened to\n")
        self.assertEqual(regions, {"outer": ("other", 40), "inner": ("other", 40), "exchange": ("other", 40),
                                   "frame of solver": ("other", 40)})
        self.assertIn("nobody listens", self.attached(LISTEN, "itt", "1", options=["--listen", "nvtx,kokkos"]).stdout)

    def test_nvtx(self):
        """From the first call on, though the program starts nothing."""
        _, regions, done = self.told(LISTEN, "nvtx", "40")
        self.assertEqual((regions, done.stdout), ({"forward": ("other", 40), "backward": ("other", 40)}, "listened to\n"))
        _, regions, done = self.told(LISTEN, "nvtx", "4", options=["--listen", "none"])
        self.assertEqual((regions, done.stdout), ({}, "nobody listens\n"))

    def build_openmp(self, compiler, *words):
        there = shutil.which(compiler)
        built = there and self.start(there, "-O1", "-fopenmp", *words, OMP, "-o", "omp")
        if not built or built.returncode:
            self.skipTest(f"no {compiler} with OpenMP")

    def openmp(self, compiler):
        """Regions of both threads, barriers, and how uneven a team is: its second thread is 2 ms later than the first."""
        self.build_openmp(compiler)
        report, regions, done = self.told("./omp", "60")
        self.assertEqual(done.stdout, self.start("./omp", "60").stdout)
        for of, name in (("smooth", ""), ("smooth", ", other threads"), ("uneven", ""), ("uneven", ", other threads")):
            there = [regions[r] for r in regions if r.startswith(f"omp parallel {of}+") and r.endswith(name) and
                     bool(name) == ("other" in r)]
            self.assertEqual(there, [("compute", 60)], regions)
        # smooth: the first thread's join; uneven: two threads at two barriers, and the join
        self.assertEqual(regions["omp barrier"], ("wait", 60 * (1 + 2 * 2 + 1)))
        uneven = [c for c in report["counters"] if c["name"].startswith("omp uneven uneven+")][0]
        self.assertEqual(uneven["value"]["count"], 60)
        self.assertTrue(20 < uneven["value"]["p50"] <= 50, uneven["value"]["p50"])
        _, regions, _ = self.told("./omp", "2", options=["--listen", "-ompt"])
        self.assertEqual(regions, {})

    def test_openmp(self):
        self.openmp("clang")

    def test_openmp_of_gcc(self):
        """Its runtime has no interface for tools, so its functions are heard: those of each kind of loop. They make steps."""
        self.openmp("gcc")
        self.build_openmp("gcc", "-DKINDS")
        report, _, done = self.told("./omp", "800")
        self.assertEqual(done.stdout, self.start("./omp", "800").stdout)
        self.assertAlmostEqual(report["found_steps"]["turns"], 800, delta=8)

    def test_steps(self):
        """Found, or by hand; one fewer than turns, since the last one has no end, and fewer those before they were seen."""
        report, _, done = self.told(LISTEN, "itt", "800")
        self.assertIn("799 steps found, each with frame of solver\n", done.stderr)
        found = report["found_steps"]
        self.assertEqual((found["turns"], found["by"], found["alike"]), (799, "frame of solver", 100))
        self.assertTrue(report["steps"]["all"]["sum"] < found["time"] < report["run"]["wall"], found)
        self.assertAlmostEqual(report["steps"]["count"] + found["before"], found["turns"], delta=2)
        text = self.start(PK, "report", self.path("of", "0.report.json")).stdout
        self.assertRegex(text, r"each begins with frame of solver, which was found, not\s+said: 799 turns\s+of\s+[\d.]+ \S+ on\s+average")
        self.assertIn("\n    pk run --step 'frame of solver'\n", text)
        self.assertTrue(400 < report["steps"]["count"] < 800, report["steps"]["count"])
        for wish, count in (("inner", 49), ("frame of solver/10", 4), ("frame of solver@nowhere", 0), ("none", 0), ("nothing of that name", 0)):
            report, _, done = self.told(LISTEN, "itt", "50", options=["--step", wish])
            self.assertEqual(report["steps"]["count"], count, wish)
            self.assertNotIn("steps found", done.stderr)
            self.assertNotIn("found_steps", report)


class Functions(Run):
    def calls(self, pattern, turns, *words):
        done = self.attached(FUNCTIONS, str(turns), *words, options=["--functions", pattern])
        self.assertEqual((done.returncode, done.stdout), (0, self.start(FUNCTIONS, str(turns), *words).stdout))
        return {region["name"]: region["time"]["count"] for region in self.report()["regions"]}, done.stderr

    def test_those_that_match(self):
        found, said = self.calls("^(solve|mesh::grid::(relax|check))", 100)
        self.assertEqual(found, {"solve(int)": 400, "mesh::grid::relax(int)": 101, "mesh::grid::check(int)": 100})
        self.assertEqual(said.count("perfkit: "), 1)

    def test_by_what_the_linker_calls_it(self):
        self.assertEqual(list(self.calls("^_ZN4mesh4grid5relaxEi$", 10)[0].items()), [("mesh::grid::relax(int)", 11)])

    def test_they_make_steps(self):
        self.calls("relax|check", 4000, "slow")
        self.assertGreater(self.report()["steps"]["count"], 3400)

    def test_what_is_wrong(self):
        found, said = self.calls("nowhere", 10)
        self.assertEqual(found, {})
        self.assertIn("no function that was compiled with -finstrument-functions has such a name", said)
        self.assertIn("nothing here was compiled with", self.attached(PROGRAM, options=["--functions", "main"]).stderr)
        self.assertIn("of its own", self.attached(OWN, options=["--functions", "solve"]).stderr)
        done = self.attached(PROGRAM, options=["--functions", "("])
        self.assertEqual(done.returncode, 2)
        self.assertIn("--functions takes a regular expression", done.stderr)

    def test_without(self):
        self.attached(FUNCTIONS)
        self.assertEqual(self.report()["regions"], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + CASES)
