"""ffi_bench.py LIBPK_SO - pk_bench from another language: structures and calls as their header says."""

import ctypes as c
import sys

U32, U64, DOUBLE, POINTER = c.c_uint32, c.c_uint64, c.c_double, c.c_void_p
CALL = c.CFUNCTYPE(None, POINTER)


class Options(c.Structure):
    _fields_ = [("size", U32), ("clock", U32), ("threads", U32), ("cold", U32), ("precision", DOUBLE),
                ("confidence", DOUBLE), ("min_time", U64), ("max_time", U64), ("min_samples", U32),
                ("max_samples", U32), ("sample_time", U64), ("iterations", U64), ("max_warmup", U64),
                ("seed", U64), ("bytes", U64), ("flops", U64), ("items", U64), ("hardware", U32),
                ("allocations", U32), ("stream", POINTER), ("user", POINTER), ("setup", POINTER),
                ("teardown", POINTER), ("before", POINTER), ("after", POINTER)]


class Sample(c.Structure):
    _fields_ = [("wall", DOUBLE), ("cpu", DOUBLE), ("time", DOUBLE), ("iterations", U64)]


def prepare(path):
    pk = c.CDLL(path)
    pk.pk_error_message.restype = c.c_char_p
    pk.pk_bench.argtypes = [c.c_char_p, CALL, POINTER, c.POINTER(Options), POINTER]
    pk.pk_bench_begin.restype, pk.pk_bench_begin.argtypes = U64, [POINTER]
    pk.pk_bench_end.argtypes = [POINTER]
    pk.pk_bench_add.argtypes = [c.c_char_p, CALL, c.POINTER(Options)]
    pk.pk_bench_list.restype = c.c_size_t
    pk.pk_bench_list_name.restype, pk.pk_bench_list_name.argtypes = c.c_char_p, [c.c_size_t]
    pk.pk_bench_open.argtypes = [c.c_size_t, c.POINTER(POINTER)]
    pk.pk_bench_take.argtypes = [POINTER, U64, c.POINTER(Sample)]
    pk.pk_bench_close.argtypes = [POINTER]
    return pk


def main(path):
    pk, calls = prepare(path), []
    options = Options(size=c.sizeof(Options), iterations=3, max_samples=4, max_warmup=1)

    def body(bench):
        for _ in range(pk.pk_bench_begin(bench)):
            calls.append(1)
        pk.pk_bench_end(bench)

    function, kept = CALL(lambda arg: calls.append(arg)), CALL(body)
    assert pk.pk_bench(b"python", function, None, c.byref(options), None) == 0, pk.pk_error_message()
    assert len(calls) >= 12, calls
    assert pk.pk_bench_add(b"added", kept, c.byref(options)) == 0, pk.pk_error_message()
    assert pk.pk_bench_list() == 1 and pk.pk_bench_list_name(0) == b"added"
    handle, sample = POINTER(), Sample()
    assert pk.pk_bench_open(0, c.byref(handle)) == 0, pk.pk_error_message()
    calls.clear()
    assert pk.pk_bench_take(handle, 5, c.byref(sample)) == 0 and len(calls) == 5
    assert sample.iterations == 5 and sample.wall > 0
    pk.pk_bench_close(handle)


if __name__ == "__main__":
    main(sys.argv[1])
