"""ffi_bench.py LIBPKBENCH_SO - pk_bench from another language: structures and calls as their header says."""

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


def prepare(path):
    pk = c.CDLL(path)
    pk.pk_error_message.restype = c.c_char_p
    pk.pk_bench.argtypes = [c.c_char_p, CALL, POINTER, c.POINTER(Options), POINTER]
    pk.pk_bench_begin.restype, pk.pk_bench_begin.argtypes = U64, [POINTER]
    pk.pk_bench_end.argtypes = [POINTER]
    pk.pk_bench_add.argtypes = [c.c_char_p, CALL, c.POINTER(Options)]
    pk.pk_bench_main.argtypes = [c.c_int, c.POINTER(c.c_char_p)]
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
    words = [b"program", b"--filter=^added$", b"--iterations=5", b"--quiet"]
    calls.clear()
    assert pk.pk_bench_main(len(words), (c.c_char_p * (len(words) + 1))(*words)) == 0, pk.pk_error_message()
    assert len(calls) >= 4 * 5 and len(calls) % 5 == 0, calls
    assert pk.pk_bench_main(2, (c.c_char_p * 3)(b"program", b"--nonsense")) == 2


if __name__ == "__main__":
    main(sys.argv[1])
