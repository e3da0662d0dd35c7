#!/bin/sh
# alone.sh COMPILER INCLUDE_DIR LANGUAGE - a scope's name is a literal; a name known at run time does not compile, for all calls
# of that place would count as its first one's.
# alone.sh COMPILER INCLUDE_DIR HEADER - a public header compiles alone, twice over, in the oldest and the newest language
# that it promises, C and C++, at warnings stricter than a user's, with and without PK_DISABLE. The oldest is as strict as
# the standard; the newest has the compiler's own words (typeof, linux). No header asks which standard it is, so what lies
# between them has nothing that neither has.
#
# COMPILER is a C compiler's name (gcc, clang); the C++ compiler is found from it.

set -u
cc=$1 dir=$2 header=$3
case $cc in
    *clang*) cxx=$(echo "$cc" | sed 's/clang/clang++/') ;;
    *) cxx=$(echo "$cc" | sed 's/gcc/g++/') ;;
esac
command -v "$cc" "$cxx" >/dev/null || { echo "skipped: $cc or $cxx is not installed"; exit 77; }

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

# What lies between the standards is looked at by nobody (above): not in headers that ask.
if grep -nE '__STDC_VERSION__|__cplusplus *[<>=]|[<>=] *__cplusplus|__cpp_' "$dir/pk/$header"; then
    echo "pk/$header asks which standard it is: let it be compiled by those between the oldest and the newest, too"
    exit 1
fi

common="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror"
failed=0

# Up to the assembler, since some warnings are the optimiser's.
compile() # COMPILER LANGUAGE STANDARD FLAGS...
{
    compiler=$1 language=$2 standard=$3
    shift 3
    "$compiler" -x "$language" "-std=$standard" $common "$@" -I"$dir" -S twice -o /dev/null ||
        { echo "failed: $compiler -std=$standard $*: pk/$header"; failed=1; }
}

printf '#include <pk/%s>\n#include <pk/%s>\nextern int used;\n' "$header" "$header" >twice
for disabled in "" -DPK_DISABLE; do
    if [ "${header%.hpp}" = "$header" ]; then
        for standard in c11 gnu17; do
            compile "$cc" c $standard -Wstrict-prototypes -Wmissing-prototypes $disabled
        done
    fi
    for standard in c++11 gnu++20; do
        compile "$cxx" c++ $standard -Wold-style-cast $disabled
    done
done
if [ "${header%.hpp}" = "$header" ]; then
    # Programs of C++ that include it as C, which theirs may do for all headers of C.
    printf 'extern "C" {\n#include <pk/%s>\n}\nextern int used;\n' "$header" >twice
    compile "$cxx" c++ c++20
else
    compile "$cxx" c++ c++11 -fno-exceptions -fno-rtti
fi
exit $failed
