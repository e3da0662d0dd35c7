"""symbols.py NM READELF HEADERS LIBPK_A [LIBPK_SO] - what the library gives to, and takes from, the linker.

The archive defines names with our prefixes only, needs nothing that prints, exits, or changes the process,
and reaches thread-local storage directly. The shared library exports what the headers declare, no more and
no less; it stays loaded, and needs no library but the C library's own and zlib.
"""

import os
import re
import subprocess
import sys

import tree

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
SETS_LOCALE = re.compile(r"\[(out_|options\.|forms_|[._]*tools_read_token)")
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
    for match in DECLARED.finditer(tree.bare(tree.read(root, path))):
        yield re.search(r"(\w+)\s*(?:\(|$)", match.group(1).strip()).group(1)


def declared(headers, bench=False):
    """Those of libpk, or of libpkbench."""
    paths = [path for path in tree.files(headers, endings=(".h",))
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


def check(nm, readelf, headers, archive, shared=None):
    complaints = list(check_archive(nm, archive))
    if shared:
        complaints += check_exports(nm, shared, declared(headers))
        complaints += check_shape(readelf, shared)
    return complaints


if __name__ == "__main__":
    tree.tell(check(*sys.argv[1:]))
