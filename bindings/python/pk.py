"""pk - perfkit for Python: regions, steps and counters of a program, in one trace with those of its C and C++.

    import pk

    forward = pk.region("forward", pk.COMPUTE)      # once; the same name is the same region
    with pk.session(trace_path="run.json", report_path="-"):
        for batch in batches:
            with forward:                           # 0.3 us (docs/ffi.md)
                ...
            pk.step(len(batch))                     # this step is over, the next one begins
    @forward                                        # the same around every call of a function
    def run(): ...
    begin, end = forward.begin, forward.end         # for hot loops: 0.2 us together

The library: the copy of libpk.so.1 that is in the process already, whoever loaded it, so that there is one
recorder; else the one that PK_LIBRARY names, the one installed with this file, the loader's. Without any,
importing this module is an ImportError. PK_LIBRARY=none: everything here is there and does nothing.

Threads: everything from any thread. A region begins and ends on one thread, and regions on it nest. So a region
         must not be open across `yield` or `await`: others run on the thread meanwhile. The decorator refuses
         generators and coroutines; inside them, time what lies between two of these points.
Failure: recording never raises; what could not be recorded is in counts(). The others raise pk.Error.
Fork:    the child is off until it calls start. GIL: kept while recording; control calls and statistics give it up.
"""

import collections
import contextlib
import ctypes
import functools
import inspect
import os

import pk_c as _c

OTHER, COMPUTE, DATA, COMM, IO, WAIT = range(6)  # what a region's self time is spent on
KINDS = ("other", "compute", "data", "comm", "io", "wait")
BACKENDS = ("cuda", "cupti", "nvtx", "nccl", "nvml")

Error = _c.Error
_U32, _U64, _DOUBLE, _TEXT, _POINTER, _ENOENT = _c.U32, _c.U64, _c.DOUBLE, _c.TEXT, _c.POINTER, -8

# Without argtypes and with what byref() makes, ctypes converts nothing: half the time of a call.
_begin, _end, _next, _mark = (_c.function("pk_region_" + verb, None) for verb in ("begin", "end", "next", "mark"))
_add = _c.function("pk_region_add", None, _POINTER, _U64, _U64)
_note = _c.function("pk_region_note", None, _POINTER, _POINTER, ctypes.c_int64)
_note_text = _c.function("pk_region_note_text", None, _POINTER, _POINTER, _TEXT)
_named, _counter_named = (_c.function(name, _POINTER, first, _TEXT) for name, first in (
    ("pk_region_named_of", _c.I32), ("pk_counter_named", _TEXT)))
_variant = _c.function("pk_region_variant", _POINTER, _POINTER, _TEXT, ctypes.c_int64)
_counter_set, _limit = (_c.function(name, None, _POINTER, _DOUBLE) for name in ("pk_counter_set", "pk_region_set_limit"))
_step, _step_kind = _c.function("pk_step", None, _U64), _c.function("pk_step_kind", None, _TEXT)
_gpu_begin, _gpu_end = (_c.function("pk_gpu_" + verb, None, _POINTER, _POINTER) for verb in ("begin", "end"))
_thread_name, _quantile = _c.function("pk_thread_set_name", None, _TEXT), _c.function("pk_stats_quantile", _U64, _POINTER, _DOUBLE)
_flush, _stop = (_c.control("pk_" + name, ctypes.c_int) for name in ("flush", "stop"))
_start, _get_counts, _step_stats = (_c.control("pk_" + name, ctypes.c_int, _POINTER) for name in ("start", "get_counts", "step_stats"))
_backend_status = _c.control("pk_backend_status", ctypes.c_int, _TEXT, _POINTER)
_region_stats, _region_gpu_stats = (_c.control(f"pk_region_{what}", ctypes.c_int, _POINTER, _POINTER) for what in ("stats", "gpu_stats"))
_capture, _version = _c.control("pk_capture", ctypes.c_int, _TEXT, _U32), _c.function("pk_version", _TEXT)
_on = _U32.in_dll(_c.library, "pk_gate_") if _c.library else _U32(0)  # not zero while a session is open


def _bytes(name):
    return name.encode("utf-8", "surrogatepass")  # whatever a str may hold; the library replaces what is not UTF-8


class Counts(_c.Plain):
    """Record accounting; pk_counts in pk/session.h."""
    _fields_ = [("size", _U32), ("threads", _U32)] + [(name, _U64) for name in (
        "begun recorded written dropped unbalanced too_deep stray_ends points points_dropped unwritten regions steps "
        "memory_bytes trace_bytes other_starts not_finite untimed untraced").split()]


class Stats(_c.Plain):
    """A distribution of durations in ns (pk/stats.h): count, sum, min, max, mean, stddev, self, bytes, flops."""
    _fields_ = [(name[2:], {"u": _U32, "w": _U64, "d": _DOUBLE}[name[0]]) for name in (
        "u.size u.reserved w.count w.sum w.min w.max d.mean d.stddev w.self w.bytes w.flops d.unit_ns w.untimed "
        "d.sampling_error").split()] + [("spare", _U64 * 4), ("buckets", _U64 * (59 * 64))]

    def quantile(self, q):
        """The smallest duration that a share q of all samples does not exceed, within 1 %; 0 without samples."""
        return _quantile(ctypes.byref(self), q)


def _stats(function, *region):
    stats = Stats(size=ctypes.sizeof(Stats))
    status = function(*region, ctypes.byref(stats))
    if status != _ENOENT:  # no sample yet: count is 0
        _c.check(status)
    return stats


# ---- sessions ----

_SETTABLE = {name: kind for name, kind in _c.Options._fields_ if name not in ("size", "log", "log_user")}


def _quoted(setting):
    return "'" + os.fsdecode(setting if isinstance(setting, (bytes, os.PathLike)) else str(setting)).replace("'", "''") + "'"


def start(**options):
    """Begins a session. The options are those of pk/options.h; what is not given comes from the environment
    (PK_TRACE_PATH, ...). Text may be str, bytes or a path; backends may be a list, tuning a dict."""
    wanted = _c.Options(size=ctypes.sizeof(_c.Options))
    for name, value in options.items():
        if name not in _SETTABLE:
            raise TypeError(f"start() has no option {name!r}; there are {', '.join(_SETTABLE)}")
        if isinstance(value, (list, tuple)):
            value = ",".join(value)
        if isinstance(value, dict):
            value = ",".join(f"{key}={_quoted(setting)}" for key, setting in value.items())
        if value is not None:
            setattr(wanted, name, {_TEXT: os.fsencode, _DOUBLE: float}.get(_SETTABLE[name], int)(value))
    _c.check(_start(ctypes.byref(wanted)))


def flush():
    """Everything recorded before this call is in the trace file when it returns."""
    _c.check(_flush())


def stop():
    """Ends the session and writes trace and report. Statistics stay readable until the next start."""
    _c.check(_stop())


def started():
    """Is a session open in this process, whoever started it?"""
    return _on.value != 0


@contextlib.contextmanager
def session(**options):
    """A session as long as a block: `with pk.session(trace_path="run.json"):`. Takes what start takes."""
    start(**options)
    try:
        yield
    finally:
        stop()


# ---- regions ----

_WAITING = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction


class Region:
    """A named region; made by region(). A context manager, and a decorator. One object serves all threads, and may
    be open several times over."""

    __slots__ = ("name", "kind", "begin", "end", "_struct", "_ref")

    def __init__(self, name, kind=OTHER, address=None):
        address = address or _named(kind, _bytes(name))
        self._struct = _c.Region.from_address(address) if address else _c.Region()
        self._ref = ctypes.byref(self._struct)
        self.name, self.kind = name, kind
        self.begin, self.end = functools.partial(_begin, self._ref), functools.partial(_end, self._ref)

    def __repr__(self):
        return f"pk.region({self.name!r}, pk.{KINDS[self.kind].upper()})"

    def __enter__(self):
        if _on.value:
            _begin(self._ref)
        return self

    def __exit__(self, kind, value, trace):
        if _on.value:
            _end(self._ref)

    def __call__(self, function):
        if any(waits(function) for waits in _WAITING):
            raise TypeError(f"{function.__qualname__} lets others run on its thread while it waits, so no region can "
                            "be open all through it; time what lies between its yields or awaits")

        @functools.wraps(function)
        def timed(*arguments, **named):
            with self:
                return function(*arguments, **named)
        return timed

    def next(self, to):
        """This region ends and another one begins, with one clock read between them."""
        _next(self._ref, to._ref)

    def add(self, bytes=0, flops=0):  # as in C
        """Work done inside the open region: throughput in report and trace."""
        _add(self._ref, int(bytes), int(flops))

    def note(self, key, value):
        """What is special about the open call, an integer or a text: an argument of it in the trace, under the key."""
        is_text = isinstance(value, str)
        (_note_text if is_text else _note)(self._ref, region(key)._ref, _bytes(value) if is_text else int(value))

    def mark(self):
        """A mark at this moment in the trace, under the region's name."""
        _mark(self._ref)

    def variant(self, key, value):
        """"attention[seq=512]": a region of its own, hence a distribution of its own, for each value."""
        return _variant_of(self, key, value)

    @contextlib.contextmanager
    def on(self, stream=0):
        """A block whose work on a CUDA stream is the region (pk/gpu.h): `with forward.on(stream.cuda_stream):`."""
        _gpu_begin(self._ref, stream or None)
        try:
            yield self
        finally:
            _gpu_end(self._ref, stream or None)

    def stats(self):
        """The distribution of all calls so far, on all threads."""
        return _stats(_region_stats, self._ref)

    def limit(self, seconds):
        """How long a call of it may take before the watchdog says that the program hangs."""
        _limit(self._ref, float(seconds))

    def gpu_stats(self):
        """The same of its spans on CUDA streams."""
        return _stats(_region_gpu_stats, self._ref)


@functools.lru_cache(maxsize=None)
def region(name, kind=OTHER):
    """The region of that name and kind. The library keeps each name for the process's life."""
    return Region(name, kind)


@functools.lru_cache(maxsize=None)
def _variant_of(base, key, value):
    return Region(f"{base.name}[{key}={value}]", base.kind, _variant(base._ref, _bytes(key), int(value)))


def traced(function):
    """A decorator: the function under its own name."""
    return region(function.__qualname__)(function)


# ---- steps, counters, what is known ----

step_begin = _c.function("pk_step_begin", None)  # the next step begins here, not where the last one ended
step_flops = _c.function("pk_step_add_flops", None, _DOUBLE, _DOUBLE)  # of the step that runs: what the model needs, and what was done
def step(items=0, kind=""):
    """Ends the current step, in which there were so many samples; kind: it was no usual one, but an "evaluation", say."""
    if kind:
        _step_kind(_bytes(kind))
    _step(int(items))


def capture(reason="", steps=0):
    """A trace of what the history holds, and of so many steps more."""
    _c.check(_capture(_bytes(reason), int(steps)))


def step_stats():
    """The distribution of the durations of all steps."""
    return _stats(_step_stats)


class Counter:
    """A value over time; made by counter()."""

    __slots__ = ("name", "unit", "_struct", "_ref")

    def __init__(self, name, unit=""):
        address = _counter_named(_bytes(name), _bytes(unit))
        self._struct = _c.Counter.from_address(address) if address else _c.Counter()
        self._ref = ctypes.byref(self._struct)
        self.name, self.unit = name, unit

    def set(self, value):
        """The value from now on: a point in the trace, a sample of the report's distribution."""
        if _on.value:
            _counter_set(self._ref, value)


@functools.lru_cache(maxsize=None)
def counter(name, unit=""):
    """The counter of that name."""
    return Counter(name, unit)


def thread_name(name):
    """Names the calling thread in trace and report."""
    _thread_name(_bytes(name))


def counts():
    """Record accounting: Counts."""
    found = Counts(size=ctypes.sizeof(Counts))
    _c.check(_get_counts(ctypes.byref(found)))
    return found


Backend = collections.namedtuple("Backend", "live version reason")
def backend(name):
    """Whether "cuda", "cupti", "nvtx", "nccl" or "nvml" records, the version of what is behind it, and the reason."""
    info = _c.BackendInfo(ctypes.sizeof(_c.BackendInfo), reason=b"" if _c.library else b"PK_LIBRARY=none")
    _c.check(_backend_status(name.encode(), ctypes.byref(info)))
    return Backend(bool(info.live), info.version.decode(), info.reason.decode("utf-8", "replace"))


def backends():
    """All of them by name."""
    return {name: backend(name) for name in BACKENDS}


def version():
    """Of the library; "" with PK_LIBRARY=none."""
    return (_version() or b"").decode()
