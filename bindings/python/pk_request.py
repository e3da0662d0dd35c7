"""pk_request - requests to a server that generates tokens, for Python (pk/request.h).

    import pk, pk_request

    completion = pk.region("completion")
    pk_request.limits(ttft=0.5, tpot=0.05)          # what is good enough, in seconds

    request = pk_request.Request(completion, 4711)  # it has come, and waits
    request.schedule()                              # it is in the batch
    request.prefill(512)                            # so many tokens of its prompt have been read
    request.tokens(1)                               # so many have come out
    request.preempt()                               # out of the batch: it waits again
    request.end()                                   # or end(pk_request.CANCELLED), end(pk_request.FAILED)

Threads: every call from any thread, one at a time for one request.
"""

import ctypes

import pk
import pk_c
import pk_span

FINISHED, CANCELLED, FAILED = range(3)

_U32, _U64, _POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


class _Request(ctypes.Structure):
    _fields_ = [("span", pk_span._Span)] + [(name, _U64) for name in (
        "waiting", "scheduled", "first", "last", "queued", "preempted", "reading", "crowded", "clear", "behind",
        "tokens", "prefilled", "seen")] + [(name, _U32) for name in (
            "clear_events", "behind_events", "first_step", "preemptions")] + [("spare", _U64 * 3)]


class Counts(pk_c.Plain):
    """Requests that have ended; pk_request_counts in pk/request.h."""
    _fields_ = [("size", _U32), ("reserved", _U32)] + [(name, _U64) for name in (
        "finished", "cancelled", "failed", "good", "tokens", "preemptions", "dropped")]


_begin = pk_c.function("pk_request_begin", _Request, _POINTER, _U64)
_schedule, _preempt = (pk_c.function("pk_request_" + verb, None, _POINTER) for verb in ("schedule", "preempt"))
_prefill, _tokens = (pk_c.function("pk_request_" + what, None, _POINTER, _U64) for what in ("prefill", "tokens"))
_end = pk_c.function("pk_request_end", None, _POINTER, ctypes.c_int)
_limits = pk_c.function("pk_request_set_limits", None, ctypes.c_double, ctypes.c_double)
_get_counts = pk_c.control("pk_get_request_counts", ctypes.c_int, _POINTER)


class Request:
    """Begins as it is made."""

    __slots__ = ("id", "_struct", "_ref")

    def __init__(self, region, id=0):  # as in C
        begun = _begin(region._ref, id) if pk.started() else None
        self.id, self._struct = id, begun or _Request()
        self._ref = ctypes.byref(self._struct)

    def schedule(self):
        """It is in the batch from here on, for the first time or again."""
        _schedule(self._ref)

    def prefill(self, tokens):
        """So many tokens of its prompt have been read."""
        _prefill(self._ref, int(tokens))

    def tokens(self, count=1):
        """So many have come out at this moment."""
        _tokens(self._ref, int(count))

    def preempt(self):
        """It had to leave the batch, and waits again."""
        _preempt(self._ref)

    def end(self, outcome=FINISHED):
        """It is over."""
        _end(self._ref, outcome)


def limits(ttft=0, tpot=0):
    """What is good enough, in seconds; 0: no limit."""
    _limits(ttft, tpot)


def counts():
    """Requests that have ended: Counts."""
    found = Counts(size=ctypes.sizeof(Counts))
    pk_c.check(_get_counts(ctypes.byref(found)))
    return found
