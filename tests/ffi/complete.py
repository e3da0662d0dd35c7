"""complete.py SOURCE - what each binding has of perfkit's public functions and options; what it leaves out is said
here, with the reason, and nothing else may be missing. Without a compiler: by the names in the sources.

A binding that lays pk_options out by itself has its members in C's order, with C's types."""

import glob
import os
import re
import sys

BINDINGS = {"python": "bindings/python/*.py", "fortran": "bindings/fortran/pk*", "rust": "bindings/rust/*.rs",
            "go": "contrib/go/*.go", "java": "contrib/java/perfkit/*.java"}
EVERY = frozenset(BINDINGS)
NOT_PYTHON = EVERY - {"python"}

# Pattern of names: (who leaves them out, why).
LEFT_OUT = {
    r"pk_bench\w*": (EVERY, "libpkbench measures C and C++; other languages have harnesses of their own"),
    r"pk_\w+_": (EVERY, "what macros call, not programs"),
    r"pk_comm_\w+": (EVERY, "messages are told by libpk_mpi and libpk_nccl, whoever calls MPI or NCCL"),
    r"pk_nccl_\w+": (EVERY, "likewise: libpk_nccl calls these"),
    r"pk_transformer_flops": (EVERY, "a formula of one line, which its manual shows (pk/step.h)"),
    r"pk_get_gpu_counts": (EVERY, "the report has them"),
    r"pk_gpu_graph_launching": (EVERY, "graphs are launched from C and C++"),
    r"pk_region_gpu_stats": ({"python"}, "the report has them"),
    r"pk_gpu_(begin|end)|pk_region_gpu_stats": ({"go", "java"}, "these have no word for CUDA's streams"),
    r"pk_span_\w+|pk_get_span_counts": (NOT_PYTHON, "not bound so far: a span is a value of C's, passed as such"),
    r"pk_request_\w+|pk_get_request_counts": (NOT_PYTHON, "not bound so far: likewise a value"),
    r"pk_region_quantile": (EVERY, "for small stacks of C: these have pk_region_stats and pk_stats_quantile"),
    r"pk_status_text": (EVERY, "errors come with pk_error_message, which says more"),
    r"pk_status_name": ({"fortran", "java"}, "the number is enough: Fortran has PK_...'s names, Java the sentence"),
    r"pk_region_named": (EVERY, "pk_region_named_of has the kind, too"),
    r"pk_counter_named": ({"rust"}, "counters are static data there"),
}
NO_OPTIONS = {"size": "set by the binding", "log": "called under the library's lock", "log_user": "log's"}
LAYOUTS = {"python": r"(?:[uiwspd]\.\w+\s+)+", "java": r"(?:[uiwspd]\.\w+\s+)+"}
TYPES = {"uint32_t": "u", "int32_t": "i", "uint64_t": "w", "const char *": "s", "double": "d"}
RUST = {"u32": "u", "i32": "i", "u64": "w", "*const c_char": "s", "f64": "d", "*const c_void": "p", "*mut c_void": "p"}
FORTRAN = {"integer(c_int32_t)": "ui", "integer(c_int64_t)": "w", "type(c_ptr)": "sp", "real(c_double)": "d"}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def binding(source, language):
    """The text of a binding, its comments too: what is in those alone would not do, but nothing is."""
    files = sorted(glob.glob(os.path.join(source, BINDINGS[language])))
    return "\n".join(read(path) for path in files if "example" not in path.lower())


def functions(source):
    """disable.h and disable_bench.h have all of them; tests/headers sees to that."""
    text = read(source, "include/pk/disable.h") + read(source, "include/pk/disable_bench.h")
    return sorted(set(re.findall(r"\b(pk_[a-z0-9_]+)\)?\(", text)) - {"pk_status"})


def options(source):
    """(type's letter, name) of each member, in order, by the table of the ABI."""
    found = re.findall(r"AT\(pk_options, (\w+), \d+, (.*)\);", read(source, "tests/abi/libpk.so.1.abi"))
    return [(TYPES.get(kind, "p"), name) for name, kind in found]


def has(text, name, language):
    """Python puts some names together: "pk_region_" + verb."""
    if re.search(rf"\b{name}(_on_)?\b", text):
        return True
    start, _, end = name.rpartition("_")
    return language == "python" and f'"{start}_' in text and bool(re.search(rf'"{end}"|\b{end}\b', text))


def reason(name, language):
    return next((why for pattern, (who, why) in LEFT_OUT.items() if language in who and re.fullmatch(pattern, name)), None)


def check_functions(names, text, language):
    for name in names:
        there, why = has(text, name, language), reason(name, language)
        if not there and not why:
            yield f"{language} has no {name}, and there is no reason why"
        if there and why and re.search(rf"\b{name}(_on_)?\b", text) and not re.fullmatch(r"pk_\w+_|pk_region_named", name):
            yield f"{language} has {name}, which it is said to leave out: {why}"


def spelled(name, language):
    words = name.split("_")
    return {"java": words[0] + "".join(map(str.capitalize, words[1:])), "go": "".join(map(str.capitalize, words))}.get(language, name)


def check_options(members, text, language):
    for _, name in members:
        if name not in NO_OPTIONS and not re.search(rf"\b{spelled(name, language)}\b", text):
            yield f"{language} has no option {spelled(name, language)}"


# ---- copies of the layout ----

def listed(text):
    """Python's and Java's: "u.size s.trace_path ...", in one string or several."""
    return [tuple(word.split(".")) for word in re.findall(r"\b[uiwspd]\.[a-z_]+\b", text[text.index("u.size s.trace_path"):])]


def rusts(text):
    body = re.search(r"pub struct Options \{\s+(pub size.*?)\}", text, re.DOTALL).group(1)
    return [(RUST[kind], name) for name, kind in re.findall(r"pub (\w+): (.*),", body)]


def fortrans(text):
    body = re.search(r"type, bind\(c\) :: options\n(.*?)end type", text, re.DOTALL).group(1)
    for line in re.sub(r"&\s*\n\s*", "", body).splitlines():
        kind, _, names = line.strip().partition(" :: ")
        for name in re.findall(r"(\w+) = ", names):
            yield FORTRAN[kind], name


def layout(text, language):
    return list({"rust": rusts, "fortran": fortrans}.get(language, listed)(text))


def check_layout(members, text, language):
    found = layout(text, language)[:len(members)]
    for (kind, name), (letters, there) in zip(members, found):
        if name != there or kind not in letters:
            yield f"{language}'s copy of pk_options has {letters}.{there} in the place of {kind}.{name}"
            return
    if len(found) != len(members):
        yield f"{language}'s copy of pk_options has {len(found)} members, not {len(members)}"


def complaints(source):
    names, members = functions(source), options(source)
    if len(names) < 80 or len(members) < 20:
        yield "the headers or the table of the ABI are not read as they should be"
    for language in BINDINGS:
        text = binding(source, language)
        yield from check_functions(names, text, language)
        yield from check_options(members, text, language)
        if language != "go":  # cgo reads the header
            yield from check_layout(members, text, language)


def prove(source):
    """What is taken away is missed."""
    members, text = options(source), binding(source, "rust")
    tries = [check_functions(["pk_capture"], text.replace("pk_capture", "pk_captur"), "rust"),
             check_functions(["pk_span_begin"], text + "pk_span_begin", "rust"),
             check_options(members, text.replace("tuning", "tunes"), "rust"),
             check_layout(members, text.replace("pub hang_seconds: u32", "pub hang_seconds: u64"), "rust"),
             check_layout(members, binding(source, "java").replace("u.hang_seconds ", ""), "java")]
    for number, found in enumerate(tries):
        if len(list(found)) != 1:
            yield f"proof {number}: it is not noticed"


if __name__ == "__main__":
    wrong = [*complaints(sys.argv[1]), *prove(sys.argv[1])]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
