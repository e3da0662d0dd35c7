"""pk_span - spans for Python (pk/span.h): what begins on one thread, or in one task, and may end on another.

    import pk, pk_span

    request, parsed = pk.region("request"), pk.region("parsed")

    span = pk_span.Span(request, number)            # begins here
    span.mark(parsed)                               # anywhere, later: the time since counts under "parsed"
    span.end()

    with pk_span.Span(request, number):             # may hold an await, unlike a region
        ...

Threads: a span is marked and ended by one thread at a time. What is off as it begins is nothing.
"""

import ctypes

import pk
import pk_c

_U32, _U64, _POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


class _Span(ctypes.Structure):
    _fields_ = [("id", _U64), ("start", _U64), ("marked", _U64), ("region", _U32), ("serial", _U32), ("session", _U32),
                ("flags", _U32), ("spare", _U64 * 2)]


class Counts(pk_c.Plain):
    """Spans begun, ended, open, ...; pk_span_counts in pk/span.h."""
    _fields_ = [("size", _U32), ("reserved", _U32)] + [(name, _U64) for name in (
        "begun", "ended", "open", "dropped", "ended_twice", "of_earlier")]


_begin = pk_c.function("pk_span_begin", _Span, _POINTER, _U64)
_mark = pk_c.function("pk_span_mark", None, _POINTER, _POINTER)
_end = pk_c.function("pk_span_end", None, _POINTER)
_get_counts = pk_c.control("pk_get_span_counts", ctypes.c_int, _POINTER)


class Span:
    """Begins as it is made; ends at end(), or with the block of a `with`."""

    __slots__ = ("id", "_struct", "_ref")

    def __init__(self, region, id=0):  # as in C
        begun = _begin(region._ref, id) if pk.started() else None
        self.id, self._struct = id, begun or _Span()
        self._ref = ctypes.byref(self._struct)

    def mark(self, region):
        """It has come to this point: the time since the last mark, or the begin, counts under this region."""
        _mark(self._ref, region._ref)

    def end(self):
        """A second call is counted as an error of the program's."""
        _end(self._ref)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.end()


def counts():
    """How many spans have begun, ended, ...: Counts."""
    found = Counts(size=ctypes.sizeof(Counts))
    pk_c.check(_get_counts(ctypes.byref(found)))
    return found
