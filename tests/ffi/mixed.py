"""mixed.py INNER - what each mixed program does, in Python: see seen.py. The C library is there first, like an
extension module that links libpk.so; pk.py has to find that copy, whatever PK_LIBRARY says."""

import ctypes
import os
import sys
import threading

inner = ctypes.PyDLL(sys.argv[1])
inner.inner_stream.restype = ctypes.c_void_p

import pk  # noqa: E402
import pk_goodput  # noqa: E402

outer = pk.region("outer", pk.COMPUTE)
back = pk.region("back", pk.IO)
number = pk.counter("number", "pieces")


def called_back():
    begin, end = back.begin, back.end
    begin()
    end()


@outer
def piece(i, callback):
    outer.add(100, 10)
    inner.inner_work(callback)
    number.set(i)
    pk.step(32)


def elsewhere():
    pk.thread_name("second thread")
    with pk.region("elsewhere"):
        pass


def work():
    callback = ctypes.PYFUNCTYPE(None)(called_back)
    for i in range(10):
        piece(i, callback)
    with outer.variant("n", 3):
        first, second = pk.region("first"), pk.region("second")
        first.begin()
        first.next(second)
        second.note("first", 7)
        second.note("moment", "seven")
        pk.region("moment").mark()
        second.end()
    stream = inner.inner_stream()
    if stream:
        with pk.region("span", pk.COMPUTE).on(stream) as span, span.on():
            pass
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()


with pk.session(trace_path="mixed.json", backends=["cuda"], rank=1, world_size=2):
    try:
        pk.start()
    except pk.Error as error:
        assert (error.status, error.name) == (-2, "PK_EBUSY"), error
    else:
        raise AssertionError("a second start")
    outer.limit(600)
    try:
        pk.capture("there is no history", 2)
    except pk.Error as error:
        assert error.name == "PK_EOFF", error
    else:
        raise AssertionError("a capture")
    pk.step_begin()
    with pk_goodput.phase(pk_goodput.RESTORE):
        pk_goodput.training_at(100)
    work()
    with pk_goodput.phase(pk_goodput.CHECKPOINT):
        pk_goodput.checkpoint_done(105, 4096)
    stats = outer.stats()
    assert (stats.count, stats.bytes, stats.flops) == (10, 1000, 100), stats
    assert stats.min <= stats.quantile(0.5) <= stats.max
    assert pk.step_stats().count == 10
assert pk.region("span", pk.COMPUTE).gpu_stats().count == (2 if "PK_CUDA_LIBRARY" in os.environ else 0)
counts = pk.counts()
assert counts.begun == counts.recorded == 34 and counts.unbalanced == 0, counts
