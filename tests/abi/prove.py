"""prove.py NM READELF INCLUDE LIBPK_SO CC... - the check of the ABI says no to what breaks programs, and yes to
what does not: headers with one change each, beside the table of those that are here."""

import os
import shutil
import sys
import tempfile

import abi

# header, what stands there, what takes its place, and a piece of the complaint; None: there must be none.
CHANGES = [
    ("options.h", "    const char *tuning;\n", "    const char *tuning;\n    uint64_t newest;\n", None),
    ("options.h", "    const char *tuning;\n", "", "tuning"),
    ("options.h", "    const char *trace_path;\n", "    const char *trace_path;\n    const char *early;\n", "early"),
    ("options.h", "    uint32_t warmup_steps;\n", "    uint64_t warmup_steps;\n", "another type"),
    ("options.h", "    uint32_t warmup_steps;\n", "    uint32_t warmup_steps, squeezed;\n", "squeezed"),
    ("region.h", "    uint32_t line;", "    uint64_t line;", "the size of pk_region"),
    ("stats.h", "    double unit_ns;", "    double unit_ns, unit_s;", "pk_stats.spare has moved"),
    ("region.h", "    PK_WAIT = 5 ", "    PK_WAIT = 5, PK_NEW = 6 ", None),
    ("region.h", "    PK_IO = 4,", "    PK_IO = 6,", "PK_IO has another value"),
    ("status.h", "pk_status_name(pk_status status)", "pk_status_name(int64_t status)", "pk_status_name"),
    ("session.h", "PK_API pk_status pk_flush(void);", "", "pk_flush"),
    ("session.h", "PK_API pk_status pk_flush(void);",
     "PK_API pk_status pk_flush(void);\nPK_API pk_status pk_flush_more(void);", None),
]


def complaints(nm, readelf, include, library, cc, change):
    header, before, after, wanted = change
    with tempfile.TemporaryDirectory() as root:
        shutil.copytree(include, root + "/include")
        path = os.path.join(root, "include", "pk", header)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if before not in text:
            return f"{header}: '{before.strip()}' is no longer there to be changed"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(before, after, 1))
        said = "; ".join(abi.check(nm, readelf, root + "/include", library, cc)[0])
    if wanted is None and said:
        return f"{header}: '{after.strip()}' should be fine, but: {said}"
    if wanted is not None and wanted not in said:
        return f"{header}: '{after.strip()}' should be told as '{wanted}', but: {said or 'nothing'}"
    return None


def other_symbols(nm, readelf, include, library, cc):
    """A library of the same name that lacks everything, and one of a name without a table."""
    with tempfile.TemporaryDirectory() as root:
        for name, wanted in ("libpk.so.1", "pk_start@@PK_1 is not exported"), ("libpk.so.77", "no table"):
            made = os.path.join(root, name)
            abi.run(*cc, "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", made, "-Wl,-soname," + name, check=True)
            said = "; ".join(abi.check(nm, readelf, include, made, cc)[0])
            if wanted not in said:
                yield f"{name}: should say '{wanted}', but says: {said or 'nothing'}"


def main(nm, readelf, include, library, *cc):
    found = [complaints(nm, readelf, include, library, cc, change) for change in CHANGES]
    found += other_symbols(nm, readelf, include, library, cc)
    found = [text for text in found if text]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
