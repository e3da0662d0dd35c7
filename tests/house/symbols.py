"""symbols.py libpk NM READELF SOURCE LIBPK_A [LIBPK_SO]
symbols.py libpkbench NM READELF SOURCE LIBPKBENCH_A LIBPK_A [LIBPKBENCH_SO LIBPK_SO]
symbols.py libpk_mpi|libpk_nccl NM READELF ARCHIVE [LIBRARY]
symbols.py libpk_alloc NM READELF LIBPK_ALLOC_SO
symbols.py linked NM PROGRAM LIBPK_A cuda|none - what the libraries give to, and take from, the linker.

An archive defines names with our prefixes only, needs nothing that prints, exits, or changes the process, and reaches
thread-local storage directly. A shared library exports what the headers declare, no more and no less; it stays loaded,
and needs no library but the C library's own and zlib.
"""

import collections
import os
import re
import subprocess
import sys

import source

# ---- what holds for all of them, and libpk ----

OURS = re.compile(r"^(pk_|pki_|ncclProfiler_v\d+$|InitializeInjectionNvtx(2|Extension)?$)")
PLUGIN = re.compile(r"^(ncclProfiler_v\d+|InitializeInjectionNvtx(2|Extension)?)$")
NEEDED = re.compile(r"^(libc|libm|libz|libdl|librt|libpthread|ld-linux[\w-]*)\.so\.")

DENIED = {
    "ends the process": "exit _exit _Exit quick_exit abort __assert_fail raise",
    "prints": "printf vprintf puts putchar perror psignal dprintf vdprintf err errx warn warnx syslog error"
              " stdout stdin stderr",
    "changes signals": "signal sigaction sigprocmask pthread_kill bsd_signal sigset alarm setitimer",
    "changes the process": "setenv putenv unsetenv clearenv setlocale chdir fchdir umask setrlimit"
                           " setpriority nice srand srandom daemon",
    "trusts the environment of a privileged program": "getenv",
    "starts a program": "system popen execl execlp execle execv execve execvp posix_spawn",
    "obeys the locale": "strtod strtof strtold atof localeconv toupper tolower isalpha isdigit isspace isalnum"
                        " isprint __ctype_b_loc __ctype_toupper_loc __ctype_tolower_loc strcoll strftime",
    "shares hidden state between threads": "strtok localtime gmtime ctime asctime readdir_r getpwuid"
                                           " gethostbyname tmpnam mktemp rand random drand48",
    "cannot be bounded": "gets sprintf vsprintf strcpy strcat stpcpy alloca",
    "reaches thread-local storage by a call (-ftls-model=initial-exec is missing)": "__tls_get_addr",
}
# lib/out sets its thread's locale to C while it writes a report, as does the report of a job; libpkbench while it reads
# arguments and writes.
IN_C_LOCALE = {"strtod", "strftime"}
SETS_LOCALE = re.compile(r"\[(out_|main\.|forms_|[._]*tools_read_token)")
# What finds us does so by a variable; set where nobody else has.
FOUND = re.compile(r"\[(backend_nvtx_attach|comm_plugin_backend)")
IN_FOUND = {"setenv"}
# The one place that starts what the user has asked for (hang_command), so that the program does not notice.
STARTS = re.compile(r"\[base_process")
IN_STARTS = {"posix_spawn"}
WHY = {name: why for why, names in DENIED.items() for name in names.split()}
DECLARED = re.compile(r"\bPK_API\b([^;{]*?)\s*[;{]")
# The headers of libpkbench; all others are libpk's.
BENCH = re.compile(r"^(bench|bench_register|keep)\.h$")


def run(*command):
    environment = dict(os.environ, LC_ALL="C")
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def names(nm, library, *options):
    """(object, name, type) of each line of nm."""
    inside = os.path.basename(library)
    for line in run(nm, "--format=posix", *options, library).splitlines():
        words = line.split()
        if len(words) == 1:
            inside = words[0].rstrip(":")
        elif len(words) > 1:
            yield inside, words[0], words[1]


def plain(name):
    """printf of __printf_chk, sigaction of sigaction@GLIBC_2.2.5, scanf of __isoc99_scanf."""
    name = name.split("@")[0]
    return re.sub(r"^__isoc99_|^__(?=\w+_chk$)|_chk$", "", name)


def check_archive(nm, archive, ours=OURS):
    for inside, name, kind in names(nm, archive, "-g", "--defined-only"):
        if not ours.match(name):
            yield f"{inside}: {name} is without our prefix"
        if kind == "C":
            yield f"{inside}: {name} is a common symbol"
    for inside, name, _ in names(nm, archive, "-u"):
        if SETS_LOCALE.search(inside) and plain(name) in IN_C_LOCALE:
            continue
        if FOUND.search(inside) and plain(name) in IN_FOUND:
            continue
        if STARTS.search(inside) and plain(name) in IN_STARTS:
            continue
        if plain(name) in WHY:
            yield f"{inside}: {name} {WHY[plain(name)]}"


def declared_in(root, path):
    """Every function and object that a header declares PK_API, or PK_API by a definition's macro."""
    for match in DECLARED.finditer(source.bare(source.read(root, path))):
        yield re.search(r"(\w+)\s*(?:\(|$)", match.group(1).strip()).group(1)


def declared(headers, bench=False):
    """Those of libpk, or of libpkbench."""
    paths = [path for path in source.files(headers, endings=(".h",))
             if not os.path.basename(path).startswith("disable")]  # the same functions, for programs without the library
    return {name for path in paths if bool(BENCH.match(os.path.basename(path))) == bench
            for name in declared_in(headers, path)}


def check_exports(nm, shared, public):
    found = names(nm, shared, "-D", "--defined-only")
    exported = {name.split("@")[0] for _, name, kind in found if kind != "A"}  # A: the version itself
    for name in sorted(exported - public):
        if not PLUGIN.match(name):
            yield f"{os.path.basename(shared)}: {name} is exported, but no header declares it"
    for name in sorted(public - exported):
        yield f"{os.path.basename(shared)}: {name} is declared by a header, but not exported"


def check_shape(readelf, shared, needed=NEEDED):
    here = os.path.basename(shared)
    dynamic = run(readelf, "-dW", shared)
    for library in re.findall(r"\(NEEDED\).*\[(.*?)\]", dynamic):
        if not needed.match(library):
            yield f"{here}: needs {library}, which may be absent"
    for wanted in ("NODELETE", "BIND_NOW|Flags:.*NOW", r"\(SONAME\).*\[libpk(bench|_[\w-]+)?\.so\.\d+\]"):
        if not re.search(wanted, dynamic):
            yield f"{here}: {wanted} is missing"
    if "TEXTREL" in dynamic:
        yield f"{here}: has text relocations"
    if re.search(r"GNU_STACK.*\bRWE\b", run(readelf, "-lW", shared)):
        yield f"{here}: has an executable stack"


def check_libpk(nm, readelf, root, archive, shared=None):
    complaints = list(check_archive(nm, archive))
    if shared:
        complaints += check_exports(nm, shared, declared(os.path.join(root, "include")))
        complaints += check_shape(readelf, shared)
    return complaints


# ---- libpkbench: a library of its own ----

BENCH_OURS = re.compile(r"^(pk_bench_?|pki_)\w*$")
BENCHMARKS = re.compile(r"^pki?_bench")
ITS_OWN = {"pki_fail", "pk_fail_", "pk_error_message"}
BESIDE_LIBPK = NEEDED.pattern + r"|^libpk\.so\."


def check_without(nm, *libraries):
    """A program that links with these carries no benchmarks."""
    for library in libraries:
        for inside, name, kind in names(nm, library):
            if BENCHMARKS.match(name) and kind != "A":
                yield f"{os.path.basename(library)}: {inside}: {name} is of benchmarks"


def check_message(nm, shared):
    for _, name, kind in names(nm, shared, "--defined-only"):
        if name.split("@")[0] in ITS_OWN:
            yield f"{os.path.basename(shared)}: {name} is libpk's"


def check_libpkbench(nm, readelf, root, archive, libpk, *shared):
    """libpk, which production links with, has no symbol of benchmarks; libpkbench exports what <pk/bench.h> declares and
    what `pk bench-ab` calls (lib/bench/drive.h), and has no second pk_error_message."""
    complaints = [*check_archive(nm, archive, BENCH_OURS), *check_without(nm, libpk, *shared[1:])]
    if shared:
        public = declared(os.path.join(root, "include"), bench=True)
        public |= set(declared_in(root, os.path.join("lib", "bench", "drive.h")))
        complaints += check_exports(nm, shared[0], public)
        complaints += check_shape(readelf, shared[0], re.compile(BESIDE_LIBPK))
        complaints += check_message(nm, shared[0])
    return complaints


# ---- libpk_mpi and libpk_nccl: they define functions of MPI and of NCCL, and call each of them on ----

# ours: what they define; of that theirs, called on with `mark` in front. later: what of theirs may be missing, since older
# versions have none; None: all is there. needed: libraries; none of theirs has to be loaded if there is `later`.
Wrapper = collections.namedtuple("Wrapper", "ours theirs mark later needed")
WRAPPERS = {
    "libpk_mpi": Wrapper(re.compile(r"^(MPI_[A-Z]\w*|mpi_\w+_|pki_\w+)$"), re.compile(r"^MPI_[A-Z]"), "P", None,
                         re.compile(BESIDE_LIBPK + r"|^libmpi")),
    "libpk_nccl": Wrapper(re.compile(r"^(nccl[A-Z]\w*|pki_wrap_\w+)$"), re.compile(r"^nccl[A-Z]"), "p",
                          {"pncclAlltoAll", "pncclGather", "pncclScatter", "pncclGroupSimulateEnd",
                           "pncclCommInitRankScalable", "pncclCommShrink", "pncclCommRevoke", "pncclCommGrow",
                           "pncclPutSignal", "pncclSignal"}, re.compile(BESIDE_LIBPK)),
}


def check_calls(nm, archive, wrapper):
    """Each is called on under its name with the mark, and none without: a second one that profiles must not hear of what
    perfkit asks."""
    yield from check_archive(nm, archive, wrapper.ours)
    theirs, mark = wrapper.theirs, wrapper.mark
    defined = {name for _, name, _ in names(nm, archive, "-g", "--defined-only") if theirs.match(name)}
    needed = {name: kind for _, name, kind in names(nm, archive, "-u")}
    for name in sorted(defined - {name[len(mark):] for name in needed}):
        yield f"{name} never calls {mark}{name}"
    for name in sorted(name for name in needed if theirs.match(name)):
        yield f"calls {name}, not {mark}{name}"
    for name in sorted(needed) if wrapper.later else ():
        if name.startswith(mark) and theirs.match(name[len(mark):]) and (name in wrapper.later) != (needed[name] in "wv"):
            yield f"{name}: {'has to be' if name in wrapper.later else 'must not be'} weak"


def check_wrapped(nm, shared, wrapper):
    here, theirs = os.path.basename(shared), wrapper.theirs
    for _, name, _ in names(nm, shared, "-D", "--defined-only"):
        if name.startswith("pki_") or not wrapper.ours.match(name.split("@")[0]):
            yield f"{here}: {name} is exported"
    for _, name, _ in names(nm, shared, "-D", "-u") if wrapper.later else ():
        if theirs.match(name.removeprefix(wrapper.mark)):
            yield f"{here}: cannot be loaded without {name}"


def check_wrapper(wrapper, nm, readelf, archive, shared=None):
    complaints = list(check_calls(nm, archive, wrapper))
    if shared:
        complaints += check_wrapped(nm, shared, wrapper)
        complaints += check_shape(readelf, shared, wrapper.needed)
    return complaints


# ---- libpk_alloc: malloc's family, C++'s new and delete, and the one table that libpk looks for ----

MALLOC = set("""malloc free calloc realloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc
malloc_usable_size sdallocx free_sized free_aligned_sized""".split())
# new, and delete without and with a size; of one and of many; aligned; where the last is no delete's with a size, nothrow
NEW = {f"_Zn{of}m{by}{quiet}" for of in "wa" for by in ("", "St11align_val_t") for quiet in ("", "RKSt9nothrow_t")}
DELETE = {f"_Zd{of}Pv{how}" for of in "la" for how in ("", "m", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t",
                                                        "St11align_val_tRKSt9nothrow_t")}
ALLOC = MALLOC | NEW | DELETE | {"pk_alloc_interface_1"}


def check_libpk_alloc(nm, readelf, shared):
    """All of it is exported and nothing else, without versions."""
    here = os.path.basename(shared)
    exported = {name for _, name, _ in names(nm, shared, "-D", "--defined-only")}
    complaints = [f"{here}: {name} is exported" for name in sorted(exported - ALLOC)]
    complaints += [f"{here}: {name} is not exported: it would be another's" for name in sorted(ALLOC - exported)]
    return complaints + list(check_shape(readelf, shared))


# ---- linked: what a program carries of libpk.a that makes regions and steps, and nothing else ----

CALLED = re.compile(r"^pk_\w+_on_$")
# Regions may have work and marks, as NVTX's users have; steps have kinds, and counters of memory; a job's file is told of
# phases, too. What a graph of CUDA's replays is known where kernels are.
PLAIN = re.compile(r"^pk_(region|step|training|phase|checkpoint|counter)_\w*on_$|^pk_gpu_graph_launching_on_$")
BESIDE = re.compile(r"^(pk_bench|pki_bench|pk_mpi|pk_alloc_interface|pki_life_add|pki_history_salvage)")
FILLED = 65536  # bytes
# Without CUDA one object has the calls of all of it, which then do nothing.
CUDA = re.compile(r"^pk_(gpu|nccl)_\w*on_$")


def check_program(nm, program, cuda):
    """What an option or the environment can turn on is in every program. What takes a call is not: of the functions that
    calls lead to (pk_..._on_), the program has those of regions and steps, and none of the libraries beside libpk."""
    here = os.path.basename(program)
    found = {name for _, name, _ in names(nm, program, "--defined-only")}
    if "pk_region_begin_on_" not in found:
        yield f"{here}: it has no regions"
    for name in sorted(found):
        if CALLED.match(name) and not PLAIN.match(name) and (cuda or not CUDA.match(name)):
            yield f"{here}: {name} is in a program that does not call it"
        elif BESIDE.match(name):
            yield f"{here}: {name} is in a program that has no use for it"


def check_filled(nm, archive):
    """No object of the archive has a table in the program's file that begins almost empty: what is filled in later belongs
    among the zeroes."""
    for line in run(nm, "--format=posix", "--defined-only", archive).splitlines():
        words = line.split()
        if len(words) == 4 and words[1] in "dD" and int(words[3], 16) > FILLED:
            yield f"{os.path.basename(archive)}: {words[0]} is {int(words[3], 16)} bytes of each program's file"


def check(what, nm, *words):
    if what == "linked":
        return [*check_program(nm, words[0], words[2] == "cuda"), *check_filled(nm, words[1])]
    if what in WRAPPERS:
        return check_wrapper(WRAPPERS[what], nm, *words)
    return {"libpk": check_libpk, "libpkbench": check_libpkbench, "libpk_alloc": check_libpk_alloc}[what](nm, *words)


if __name__ == "__main__":
    source.tell(check(*sys.argv[1:]))
