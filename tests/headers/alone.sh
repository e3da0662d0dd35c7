#!/bin/sh
# alone.sh COMPILER INCLUDE_DIR LANGUAGE - a scope's name is a literal; a name known at run time does not compile, for all calls
# of that place would count as its first one's.
# alone.sh COMPILER INCLUDE_DIR HEADER - a public header compiles alone, twice over, in every language
# that it promises, at warnings stricter than a user's, with and without PK_DISABLE.
#
# COMPILER is a C compiler's name (gcc, clang); the C++ compiler is found from it.

set -u
cc=$1 dir=$2 header=$3
case $cc in
    *clang*) cxx=$(echo "$cc" | sed 's/clang/clang++/') ;;
    *) cxx=$(echo "$cc" | sed 's/gcc/g++/') ;;
esac
command -v "$cc" "$cxx" >/dev/null || { echo "skipped: $cc or $cxx is not installed"; exit 77; }

# Into objects, since those are what a compiler's cache knows: of a header that is as it was nothing is compiled again.
cache=
[ -z "${CCACHE_DIR-}" ] || ! command -v ccache >/dev/null || cache=ccache
dir=$(cd "$dir" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

named() # LANGUAGE NAME
{
    printf '#include <pk/region.h>\nvoid f(const char *name);\nvoid f(const char *name) { (void)name; PK_REGION_SCOPE_NAMED(%s); }\n' "$2" |
        if [ "$1" = c ]; then "$cc" -x c -I"$dir" -fsyntax-only -; else "$cxx" -x c++ -I"$dir" -fsyntax-only -; fi 2>errors
}

case $header in c | c++)
    named "$header" '"literal"' || { echo "a literal is refused:"; cat errors; exit 1; }
    if named "$header" name; then echo "a name known at run time is taken"; exit 1; fi
    exit
esac

common="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror"
failed=0

compile() # COMPILER LANGUAGE STANDARD FLAGS...
{
    compiler=$1 language=$2 standard=$3
    shift 3
    printf '#include <pk/%s>\n#include <pk/%s>\nextern int used;\n' "$header" "$header" >twice.$language
    $cache "$compiler" -x "$language" "-std=$standard" $common "$@" -I"$dir" -c twice.$language -o object.o ||
        { echo "failed: $compiler -std=$standard: pk/$header"; failed=1; }
}

for disabled in "" -DPK_DISABLE; do
    if [ "${header%.hpp}" = "$header" ]; then
        for standard in c11 gnu11 c17; do
            compile "$cc" c $standard -Wstrict-prototypes -Wmissing-prototypes $disabled
        done
    fi
    for standard in c++11 c++14 c++17 c++20; do
        compile "$cxx" c++ $standard -Wold-style-cast $disabled
    done
done
# Programs of C++ that include it as C, which theirs may do for all headers of C.
if [ "${header%.hpp}" = "$header" ]; then
    for standard in c++11 c++20; do
        printf 'extern "C" {\n#include <pk/%s>\n}\nextern int used;\n' "$header" >extern.c++
        $cache "$cxx" -x c++ "-std=$standard" $common -I"$dir" -c extern.c++ -o object.o ||
            { echo "failed: $cxx -std=$standard: pk/$header in extern \"C\""; failed=1; }
    done
fi
compile "$cxx" c++ c++11 -fno-exceptions -fno-rtti
exit $failed
