#!/bin/sh
# literal.sh COMPILER INCLUDE LANGUAGE - a scope's name is a literal; a name known at run time does not compile, for all
# calls of that place would count as its first one's.
set -eu

compile()
{
    printf '#include <pk/region.h>\nvoid f(const char *name);\nvoid f(const char *name) { (void)name; PK_REGION_SCOPE_NAMED(%s); }\n' "$1" |
        "$compiler" -x "$language" -I"$include" -fsyntax-only - 2>errors
}

compiler=$1 include=$2 language=$3
folder=$(mktemp -d "${TMPDIR:-/tmp}/pk-literal-XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
compile '"literal"' || { echo "a literal is refused:"; cat errors; exit 1; }
if compile name; then echo "a name known at run time is taken"; exit 1; fi
