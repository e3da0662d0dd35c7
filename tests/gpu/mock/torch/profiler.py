"""Takes CUPTI's callbacks for its buffers as Kineto does; if somebody else has CUPTI, it sees the host's events alone."""

import ctypes
import enum
import json
import os
import time

from . import _device

KERNEL, SIZE = 10, 1 << 20
_cupti = ctypes.PyDLL(os.environ["PK_CUPTI_LIBRARY"])
_requested = ctypes.PYFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                               ctypes.POINTER(ctypes.c_size_t))
_completed = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_ignored = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
_clock = ctypes.PYFUNCTYPE(ctypes.c_uint64)
_buffers, _kernels = [], []


class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 1


@_requested
def _request(place, size, most):
    _buffers.append(ctypes.create_string_buffer(SIZE + 64))
    place[0] = (ctypes.addressof(_buffers[-1]) + 63) // 64 * 64
    size[0], most[0] = SIZE, 0


@_completed
def _complete(_context, _stream, buffer, _size, valid):
    record = ctypes.c_void_p(None)
    while buffer and _cupti.cuptiActivityGetNextRecord(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)) == 0:
        if ctypes.c_uint32.from_address(record.value).value == KERNEL:
            _kernels.append((ctypes.c_uint64.from_address(record.value + 16).value,
                             ctypes.c_uint64.from_address(record.value + 24).value))


@_ignored
def _ignore(*_):
    return None


@_clock
def _now():
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


class profile:
    def __init__(self, activities):
        self.operations, self.subscriber = [], ctypes.c_void_p()

    def _tell(self, name):
        self.operations.append((name, _now()))

    def __enter__(self):
        _kernels.clear()
        _device.listeners.append(self._tell)
        self.has = _cupti.cuptiSubscribe(ctypes.byref(self.subscriber), _ignore, None) == 0
        if self.has:
            _cupti.cuptiActivityRegisterTimestampCallback(_now)
            _cupti.cuptiActivityRegisterCallbacks(_request, _complete)
            _cupti.cuptiActivityEnable(KERNEL)
        return self

    def __exit__(self, *_):
        _device.listeners.remove(self._tell)
        if self.has:
            _cupti.cuptiActivityFlushAll(1)
            _cupti.cuptiActivityDisable(KERNEL)
            _cupti.cuptiUnsubscribe(self.subscriber)

    def export_chrome_trace(self, path):
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "ts": ns / 1e3, "dur": 1} for name, ns in self.operations]
        events += [{"ph": "X", "cat": "kernel", "name": "k", "ts": a / 1e3, "dur": (b - a) / 1e3} for a, b in _kernels]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)
