"""python.py - what pk.py's ways to a region cost, per region, with the loop subtracted: medians of rounds in which
all take turns, in CPU time of the thread. Beside them: what ctypes itself takes for two calls of a C function that
does nothing, and what the interpreter takes for a block and a call. The library is $PK_LIBRARY."""

import ctypes
import statistics
import sys
import time

import pk

LOOPS, ROUNDS = 2000, 201


class Block:
    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        pass


def loop(body, setup="pass", **names):
    """A function that runs the body so many times."""
    made = {}
    exec(f"def run(n):\n    {setup}\n    for _ in range(n):\n        {body}", names, made)
    return made["run"]


def nothing(library, argument):
    """libc's labs: called as pk.py calls the library's."""
    function = library["labs"]
    function.restype = None
    return loop("f(a); f(a)", f=function, a=argument)


def cases():
    region, counter = pk.region("Python"), pk.counter("counter")
    held = ctypes.c_void_p(1)
    yield "ctypes alone, two calls", nothing(ctypes.PyDLL(None), ctypes.byref(held))
    yield "  converting the argument", nothing(ctypes.PyDLL(None), held)
    yield "  giving up the GIL as well", nothing(ctypes.CDLL(None), held)
    yield "a block and two methods", loop("with b: pass", b=Block())
    yield "begin(); end()", loop("b(); e()", "b, e = r.begin, r.end", r=region)
    yield "with region:", loop("with r: pass", r=region)
    yield "with pk.region(name):", loop("with pk.region('Python'): pass", pk=pk)
    yield "@region, with the call", loop("f()", f=region(lambda: None))
    yield "counter.set(1.0)", loop("c.set(1.0)", c=counter)
    yield "pk.step(32)", loop("s(32)", s=pk.step)


def batch(function):
    start = time.thread_time_ns()
    function(LOOPS)
    return (time.thread_time_ns() - start) / LOOPS


def measure(title, rounds):
    empty, functions = loop("pass"), list(cases())
    taken = {name: [] for name, _ in functions}
    for _ in range(rounds):
        for name, function in functions:
            if pk.started():
                pk.flush()
            taken[name].append(batch(function) - batch(empty))
    print(f"{title:<40}     ns")
    for name, values in taken.items():
        print(f"  {name:<38} {statistics.median(values):6.0f}")
    print()


if __name__ == "__main__":
    number = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else ROUNDS
    measure("Python, off", number)
    with pk.session(trace_path="python.json", backends="none"):
        measure("Python, recorded", number)
