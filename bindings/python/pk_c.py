"""pk_c - the library as ctypes has it, for pk.py and those beside it: found, loaded, its structures as the headers lay
them out. Not for programs."""

import ctypes
import functools
import glob
import os

U32, I32, U64, DOUBLE = ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_double
TEXT, POINTER = ctypes.c_char_p, ctypes.c_void_p
SONAME = "libpk.so.1"


class Error(Exception):
    """A call that failed: .status is its number, .name as in pk/status.h, and the text says what was wrong."""
    __module__ = "pk"  # where programs know it from

    def __init__(self, status, name, text):
        super().__init__(f"{text} ({name})")
        self.status, self.name = status, name


# ---- the library ----

def _installed():
    """libpk.so.1 of the tree, or the wheel, that this file was installed from."""
    folder = os.path.dirname(os.path.realpath(__file__))
    yield from glob.glob(os.path.join(glob.escape(folder), "perfkit.libs", SONAME))
    for _ in range(4):
        folder = os.path.dirname(folder)
        for pattern in ("lib*", "lib/*-linux-*"):
            yield from sorted(glob.glob(os.path.join(glob.escape(folder), pattern, SONAME)))


def _loaded():
    """The library, if it is in the process: in the program itself, or loaded by anybody else."""
    program = ctypes.PyDLL(None)
    if hasattr(program, "pk_start"):
        return program
    try:
        return ctypes.PyDLL(SONAME, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return None


def _load():
    wish, tried = os.environ.get("PK_LIBRARY"), []
    if wish == "none":
        return None
    library = _loaded()
    if library is not None:
        return library
    for path in [wish] if wish else [*_installed(), SONAME]:
        try:
            return ctypes.PyDLL(path)
        except OSError as error:
            tried.append(str(error))
    raise ImportError("perfkit's library cannot be loaded; PK_LIBRARY=/path/to/" + SONAME + " says where it is, "
                      "PK_LIBRARY=none that this run does without: " + "; ".join(tried))


library = _load()
_free = library and ctypes.CDLL(None, handle=library._handle)  # the same; its calls give up the GIL
_nothing = lambda *_: 0


def function(name, result, *arguments, library=library):
    if library is None:
        return _nothing
    try:
        found = library[name]
    except AttributeError:
        raise ImportError(f"{library._name or 'the program'} has no {name}: older than this, or linked in part") from None
    found.restype, found.argtypes = result, arguments or None
    return found


control = functools.partial(function, library=_free)

status_name = function("pk_status_name", TEXT, ctypes.c_int)
error_message = function("pk_error_message", TEXT)


def check(status):
    if status:
        raise Error(status, status_name(status).decode(), error_message().decode("utf-8", "replace"))


# ---- as the headers lay them out ----

class Plain(ctypes.Structure):
    def __repr__(self):
        shown = [name for name, _ in self._fields_ if name not in ("size", "reserved", "spare", "buckets")]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in shown)})"


class Region(ctypes.Structure):
    _fields_ = [("name", TEXT), ("kind", U32), ("id", U32), ("file", TEXT), ("line", U32), ("reserved", U32)]


class Counter(ctypes.Structure):
    _fields_ = [("name", TEXT), ("unit", TEXT), ("id", U32), ("reserved", U32)]


class Options(ctypes.Structure):
    _fields_ = [(name[2:], {"u": U32, "i": I32, "w": U64, "s": TEXT, "p": POINTER, "d": DOUBLE}[name[0]]) for name in (
        "u.size s.trace_path s.report_path s.backends i.rank i.world_size u.warmup_steps w.memory_bytes u.history_steps "
        "s.capture s.capture_path s.windows_path s.metrics_path u.hang_seconds s.hang_command d.overhead_max s.costs "
        "s.goodput_path s.job_path p.log p.log_user u.log_level s.tuning").split()]


class BackendInfo(ctypes.Structure):
    _fields_ = [("size", U32), ("live", U32), ("version", ctypes.c_char * 32), ("reason", ctypes.c_char * 192)]
