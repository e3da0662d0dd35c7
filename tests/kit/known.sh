#!/bin/bash
# known.sh TABLE ROOT COMPILER... ARGUMENTS... - COMPILER, for builds of perfkit's sources in ROOT whose objects are not what a
# test looks at: those that the build at hand has of the same file by the same flags it gets from there. TABLE is by
# as_built.py. Flags are macros, folders of the tree that are included, and what begins with -f or -std; not warnings, and not
# how much is optimised. Where anything differs, or there is no such object, it is compiled.

table=$1 root=$2
shift 2
compiler=()
until [[ $# -eq 0 || $1 = [-@]* || $1 = *.[co] ]]; do
    compiler+=("$1")
    shift
done
flags=" " source= object=
arguments=("$@")
while [ $# -gt 0 ]; do
    case $1 in
        -o) object=$2; shift ;;
        -MF | -MQ | -MT | -isystem | -include) shift ;;
        "$root"/*.c) source=${1#"$root"/} ;;
        -I"$root"/*) flags+="-I${1#"-I$root/"} " ;;
        -fdiagnostics* | -D_FILE_OFFSET_BITS=64) ;;
        -f* | -std=* | -D*) flags+="$1 " ;;
    esac
    shift
done
known=$table/${source//\//%}
if [ -n "$source" ] && [ -n "$object" ] && [ -e "$known" ]; then
    while read -r there words; do
        missing=
        for word in $words; do [[ $flags = *" $word "* ]] || missing=yes; done
        for word in $flags; do [[ " $words " = *" $word "* ]] || missing=yes; done
        [ -n "$missing" ] || exec cp "$there" "$object"
    done <"$known"
fi
exec "${compiler[@]}" "${arguments[@]}"
