"""python_module.py SOURCE LIBPK_SO CC - pk.py by itself: where it finds the library, what it refuses, threads,
forks."""

import asyncio
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE, LIBRARY, CC = sys.argv[1], os.path.realpath(sys.argv[2]), sys.argv[3].split(",")
MODULE = os.path.join(SOURCE, "bindings", "python")
for variable in [name for name in os.environ if name.startswith("PK_")]:
    del os.environ[variable]
os.environ["PK_LIBRARY"] = LIBRARY
sys.dont_write_bytecode = True
sys.path.insert(0, MODULE)

import pk  # noqa: E402
import pk_c  # noqa: E402
import pk_request  # noqa: E402
import pk_span  # noqa: E402


def fresh(code, folder=MODULE, **environment):
    """What another Python says, which does not know where the library is if nothing is said."""
    hidden = "PK_LIBRARY", "LD_LIBRARY_PATH"
    env = {name: value for name, value in os.environ.items() if name not in hidden} | environment
    done = subprocess.run([sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {folder!r})\n{code}"],
                          capture_output=True, text=True, env=env, check=False)
    return done.stdout + done.stderr


class Finding(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pk-python-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *parts):
        path = os.path.join(self.folder, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def test_nowhere(self):
        self.assertRegex(fresh("import pk"), r"ImportError: .*PK_LIBRARY=/path/to/libpk.so.1 .*libpk.so.1: cannot open")
        self.assertRegex(fresh("import pk", PK_LIBRARY="/nowhere/libpk.so"), r"ImportError: .*/nowhere/libpk.so: ")

    def test_named(self):
        self.assertEqual(fresh("import pk, pk_c; print(pk_c.library._name)", PK_LIBRARY=LIBRARY).strip(), LIBRARY)

    def test_installed(self):
        for lib in "lib", "lib64", "lib/x86_64-linux-gnu":
            root = os.path.join(lib.replace("/", "-"), "prefix")
            for name in "pk.py", "pk_c.py":
                shutil.copy(os.path.join(MODULE, name), self.path(root, "share", "perfkit", "python", name))
            there = self.path(root, lib, "libpk.so.1")
            os.symlink(LIBRARY, there)
            said = fresh("import pk, pk_c; print(pk_c.library._name)", self.path(root, "share", "perfkit", "python"))
            self.assertEqual(said.strip(), os.path.realpath(os.path.dirname(there)) + "/libpk.so.1")

    def test_in_the_program(self):
        """Preloaded, as libpk_mpi may be: nothing else is looked for."""
        said = fresh("import pk, pk_c; print(pk_c.library._name, pk.version())", LD_PRELOAD=LIBRARY, PK_LIBRARY="/nowhere")
        self.assertRegex(said, r"^None \d+\.\d+\.\d+\n$")

    def test_older(self):
        made = self.path("old.so")
        subprocess.run([*CC, "-shared", "-fPIC", "-x", "c", "-", "-o", made], text=True, check=True,
                       input="int pk_region_begin; int pk_gate_;")
        said = fresh("import pk", PK_LIBRARY=made)
        self.assertRegex(said, "ImportError: .*old.so has no pk_status_name: older than this, or linked in part")

    def test_none(self):
        said = fresh("""import pk, pk_span
with pk.session(trace_path="/nowhere/x.json"):
    with pk.region("a") as a, a.on(5), a.variant("n", 1):
        a.add(1, 2); a.begin(); a.next(a); a.mark(); a.end()
    pk.region("f")(lambda: print("called"))()
    with pk_span.Span(a, 7) as s: s.mark(a)
    pk.step(1); pk.counter("c").set(1); pk.thread_name("t"); pk.flush()
    print(pk.started(), a.stats().count, a.stats().quantile(0.5), pk.step_stats().count, pk.counts().begun)
print(pk.backend("cuda"), repr(pk.version()), len(pk.backends()))
""", PK_LIBRARY="none")
        backend = "Backend(live=False, version='', reason='PK_LIBRARY=none')"
        self.assertEqual(said, f"called\nFalse 0 0 0 0\n{backend} '' 5\n")

    def test_before_the_first_start(self):
        self.assertIn("pk.Error: ", fresh("import pk; pk.counts()", PK_LIBRARY=LIBRARY))
        self.assertIn("(PK_EOFF)", fresh("import pk; pk.stop()", PK_LIBRARY=LIBRARY))


class Layout(unittest.TestCase):
    """The structures are C's, member by member, as tests/abi has them."""

    def test_members(self):
        with open(os.path.join(SOURCE, "tests", "abi", "libpk.so.1.abi"), encoding="utf-8") as file:
            rows = re.findall(r"^AT\((pk_\w+), (\w+), (\d+),", file.read(), re.MULTILINE)
        for name, ours in {"pk_region": pk_c.Region, "pk_counter": pk_c.Counter, "pk_options": pk_c.Options,
                           "pk_counts": pk.Counts, "pk_span_counts": pk_span.Counts, "pk_span": pk_span._Span,
                           "pk_request": pk_request._Request, "pk_request_counts": pk_request.Counts,
                           "pk_backend_info": pk_c.BackendInfo, "pk_stats": pk.Stats}.items():
            theirs = [(member, int(offset)) for struct, member, offset in rows if struct == name]
            self.assertEqual([(member, getattr(ours, member).offset) for member, _ in ours._fields_],
                             theirs[:len(ours._fields_)], name)


class Session(unittest.TestCase):
    def setUp(self):
        pk.start(backends="none")

    def tearDown(self):
        if pk.started():
            pk.stop()

    def ended(self):
        pk.stop()
        counts = pk.counts()
        self.assertEqual(counts.recorded + counts.dropped, counts.begun)
        return counts

    def test_spans(self):
        request, seen = pk.region("request"), pk.region("seen", pk.DATA)
        span = pk_span.Span(request, 2**64 - 1)
        thread = threading.Thread(target=lambda: (span.mark(seen), span.end()))
        thread.start()
        thread.join()
        with pk_span.Span(request) as other:
            self.assertEqual(other.id, 0)
        span.end()
        left = pk_span.Span(request)
        self.assertEqual((request.stats().count, seen.stats().count), (2, 1))
        counts = pk_span.counts()
        self.assertEqual((counts.begun, counts.ended, counts.open, counts.ended_twice), (3, 2, 1, 1))
        pk.stop()
        left.end()
        pk_span.Span(request).end()
        self.assertEqual(pk_span.counts().begun, 3)
        pk.start(backends="none")
        left.end()
        self.assertEqual(pk_span.counts().of_earlier, 1)

    def test_requests(self):
        completion = pk.region("completion")
        pk_request.limits(ttft=1000)
        for outcome in (pk_request.FINISHED, pk_request.CANCELLED):
            request = pk_request.Request(completion, 7)
            request.schedule()
            request.prefill(100)
            request.tokens()
            request.preempt()
            request.schedule()
            request.tokens(3)
            request.end(outcome)
        counts = pk_request.counts()
        self.assertEqual((counts.finished, counts.cancelled, counts.good, counts.tokens, counts.preemptions),
                         (1, 1, 1, 8, 2))
        self.assertEqual((completion.stats().count, pk.region("time to first token").stats().count), (2, 2))
        pk_request.limits()

    def test_kinds(self):
        self.assertIs(pk.region("a", pk.IO), pk.region("a", pk.IO))
        self.assertIsNot(pk.region("a", pk.IO), pk.region("a", pk.WAIT))
        self.assertEqual(repr(pk.region("a", pk.IO)), "pk.region('a', pk.IO)")
        self.assertEqual(repr(pk.region("a").variant("n", 5)), "pk.region('a[n=5]', pk.OTHER)")

    def test_nesting_of_one_with_itself(self):
        r = pk.region("self")
        with r, r, r:
            pass
        self.assertEqual(r.stats().count, 3)
        self.assertEqual(self.ended().unbalanced, 0)

    def test_any_text_and_any_integer(self):
        class Integer:
            def __int__(self):
                return 7
        for name in "\ud800 alone", "\udcff escaped", "cut\0here", "", "x" * 1000, "\u00e9t\u00e9":
            with pk.region(name) as r:
                r.add(Integer(), Integer())
                r.variant(name, Integer()).mark()
                r.note(name, name)
                r.note(name, Integer())
            pk.counter(name, name).set(True)
            pk.thread_name(name)
        pk.step(Integer())
        self.assertEqual((r.stats().bytes, self.ended().begun), (7, 6))

    def test_exceptions(self):
        r = pk.region("raises")
        with self.assertRaises(KeyError), r:
            raise KeyError
        with self.assertRaises(ZeroDivisionError):
            r(lambda: 1 / 0)()
        self.assertEqual((r.stats().count, self.ended().unbalanced), (2, 0))

    def test_decorated(self):
        @pk.traced
        def function(a, b=2, *c, d):
            "its text"
            return a, b, c, d
        self.assertEqual(function(1, 3, 5, d=7), (1, 3, (5,), 7))
        self.assertEqual((function.__name__, function.__doc__), ("function", "its text"))
        self.assertEqual(pk.region(function.__qualname__).stats().count, 1)

    def test_waiting_functions_are_refused(self):
        async def coroutine():
            pass

        async def asynchronous_generator():
            yield

        def generator():
            yield
        for function in coroutine, asynchronous_generator, generator:
            with self.assertRaisesRegex(TypeError, "awaits"):
                pk.region("refused")(function)

    def test_between_awaits(self):
        r = pk.region("between")

        async def task():
            for _ in range(10):
                with r:
                    sum(range(100))
                await asyncio.sleep(0)

        async def all_of_them():
            await asyncio.gather(*(task() for _ in range(5)))
        asyncio.run(all_of_them())
        self.assertEqual((r.stats().count, self.ended().unbalanced), (50, 0))

    def test_open_across_a_yield_is_counted(self):
        def generator():
            with pk.region("inside"):
                yield
        with pk.region("outside"):
            waiting = generator()
            next(waiting)
        list(waiting)
        counts = self.ended()
        self.assertEqual((counts.begun, counts.unbalanced, counts.stray_ends), (2, 1, 1))

    def test_threads(self):
        r = pk.region("threads")

        def work():
            begin, end = r.begin, r.end
            for _ in range(500):
                with r:
                    begin()
                    end()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(r.stats().count, 8000)
        self.assertEqual((self.ended().threads, pk.counts().unbalanced), (8, 0))

    def test_fork(self):
        r = pk.region("forked")
        with r:
            pid = os.fork()
            if pid == 0:  # off, until it starts by itself
                status = 1
                try:
                    off = not pk.started()
                    with r:
                        pass
                    pk.start(backends="none")
                    with r:
                        pass
                    status = 0 if off and r.stats().count == 1 else 2
                    pk.stop()
                finally:
                    os._exit(status)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual((r.stats().count, self.ended().unbalanced), (1, 0))

    def test_options(self):
        pk.stop()
        with self.assertRaisesRegex(TypeError, "no option 'trace'; there are trace_path, report_path"):
            pk.start(trace="run.json")
        with self.assertRaisesRegex(pk.Error, "ring_records.*PK_EINVAL") as caught:
            pk.start(tuning="ring_records=100")
        self.assertEqual((caught.exception.status, caught.exception.name), (-1, "PK_EINVAL"))
        with self.assertRaisesRegex(pk.Error, "tuning: 'flush' is no key"):
            pk.start(tuning={"clock": "monotonic", "flush": 50})
        with self.assertRaises(TypeError):
            pk.start(log=None)
        with self.assertRaisesRegex(pk.Error, "overhead_max.*PK_EINVAL"):  # a fraction stays one
            pk.start(overhead_max=0.7)
        with tempfile.TemporaryDirectory() as folder, pk.session(
                trace_path=os.path.join(folder, "a.json").encode(), report_path=None, backends=["none"],
                memory_bytes=1 << 24, rank=1, world_size=2,
                tuning={"flush_ms": 50, "clock": "monotonic", "arena_path": os.path.join(folder, "a,'b'")}):
            self.assertTrue(os.path.exists(os.path.join(folder, "a,'b'")))
            self.assertTrue(pk.started())
        self.assertFalse(pk.started())

    def test_figures(self):
        r = pk.region("figures")
        self.assertEqual((r.stats().count, r.stats().quantile(0.5), r.gpu_stats().count), (0, 0, 0))
        for i in range(100):
            with r:
                r.add(bytes=8, flops=2)
            pk.step(4)
            pk.counter("c", "unit").set(i)
        stats = r.stats()
        self.assertEqual((stats.count, stats.bytes, stats.flops), (100, 800, 200))
        self.assertTrue(stats.min <= stats.quantile(0.01) <= stats.quantile(0.99) <= stats.max <= stats.sum)
        self.assertRegex(repr(stats), r"^Stats\(count=100, sum=\d+, min=\d+, .*untimed=0, sampling_error=0\.0\)$")
        self.assertEqual(pk.step_stats().count, 100)
        with self.assertRaisesRegex(pk.Error, "PK_ENOENT"):
            pk.backend("nonsense")
        self.assertEqual(list(pk.backends()), list(pk.BACKENDS))
        counts = self.ended()
        self.assertEqual((counts.begun, counts.points, counts.steps), (100, 200, 100))

    def test_streams_without_a_gpu(self):
        with pk.region("span").on(0) as r, r.on(12345):
            pass
        self.assertEqual(r.gpu_stats().count, 0)

    def test_recording_keeps_the_lock(self):
        """The pair that loops call is ctypes' plain function with its argument bound: nothing is converted."""
        r = pk.region("bound")
        self.assertIs(r.begin.func, pk._begin)
        self.assertIsNone(pk._begin.argtypes)
        self.assertIsInstance(pk_c.library, ctypes.PyDLL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=0)
