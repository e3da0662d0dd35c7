#!/bin/sh
# alone.sh COMPILER INCLUDE_DIR LANGUAGE - a scope's name is a literal; a name known at run time does not compile, for all calls
# of that place would count as its first one's.
# alone.sh COMPILER INCLUDE_DIR HEADER - a public header compiles alone, twice over, in C and in C++, with and without
# PK_DISABLE: it brings what it needs, which is the same for each compiler and standard.
# alone.sh COMPILER INCLUDE_DIR all - all of them together, twice over, in the oldest and the newest language that they
# promise, C and C++, at warnings stricter than a user's, with and without PK_DISABLE. The oldest is as strict as
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

headers=$header
[ "$header" != all ] || headers=$(cd "$dir/pk" && ls)

# What lies between the standards is looked at by nobody (above): not in headers that ask.
for name in $headers; do
    if grep -nE '__STDC_VERSION__|__cplusplus *[<>=]|[<>=] *__cplusplus|__cpp_' "$dir/pk/$name"; then
        echo "pk/$name asks which standard it is: let it be compiled by those between the oldest and the newest, too"
        exit 1
    fi
done

common="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror"
failed=0

# Up to the assembler, since some warnings are the optimiser's.
compile() # COMPILER LANGUAGE STANDARD FLAGS...
{
    compiler=$1 language=$2 standard=$3
    shift 3
    "$compiler" -x "$language" "-std=$standard" $common "$@" -I"$dir" -S "$language" -o /dev/null ||
        { echo "failed: $compiler -std=$standard $*: pk/$header"; failed=1; }
}

includes() # NAME...
{
    printf '#include <pk/%s>\n' "$@" "$@"
    echo 'extern int used;'
}

of_c=$(echo "$headers" | grep -v 'hpp$')
includes $headers >c++
[ -z "$of_c" ] || includes $of_c >c
standards_c=c11 standards_cxx=c++11
[ "$header" != all ] || standards_c="c11 gnu17" standards_cxx="c++11 gnu++20"
for disabled in "" -DPK_DISABLE; do
    for standard in ${of_c:+$standards_c}; do
        compile "$cc" c "$standard" -Wstrict-prototypes -Wmissing-prototypes $disabled
    done
    for standard in $standards_cxx; do
        compile "$cxx" c++ "$standard" -Wold-style-cast $disabled
    done
done
if [ "$header" = all ]; then
    compile "$cxx" c++ c++11 -fno-exceptions -fno-rtti
    # Programs of C++ that include it as C, which theirs may do for all headers of C.
    { echo 'extern "C" {' && includes $of_c && echo '}'; } >c++
    compile "$cxx" c++ c++20
fi
exit $failed
