#!/bin/sh
# literal.sh COMPILER INCLUDE LANGUAGE - a scope's name is a literal; a name known at run time does not compile, for all
# calls of that place would count as its first one's.
set -eu

compile()
{
    printf '#include <pk/region.h>\nvoid f(const char *name);\nvoid f(const char *name) { (void)name; %s(%s) { } }\n' "$1" "$2" |
        sed 's/^\(void f.*\)PK_REGION_SCOPE_NAMED(\(.*\)) { } }$/\1PK_REGION_SCOPE_NAMED(\2); }/' |
        "$compiler" -x "$language" -I"$include" -fsyntax-only - 2>errors
}

compiler=$1 include=$2 language=$3
folder=$(mktemp -d "${TMPDIR:-/tmp}/pk-literal-XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for macro in PK_REGION_SCOPE_NAMED PK_SCOPE_NAMED; do
    compile $macro '"literal"' || { echo "$macro refuses a literal:"; cat errors; exit 1; }
    if compile $macro name; then echo "$macro takes a name known at run time"; exit 1; fi
done
