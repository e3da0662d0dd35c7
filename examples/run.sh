#!/bin/sh
# run.sh PROGRAM (FILE PATTERN LINES)... - runs an example in a directory of its own. It has to end well,
# and in each FILE that it leaves so many LINES, or more, have to match PATTERN. Its stderr is the file "stderr".
set -eu

program=$(realpath "$1")
shift
folder=$(mktemp -d "${TMPDIR:-/tmp}/pk-example-XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# The wrapper is how meson says that another processor's programs run through an emulator.
# $ARGUMENTS are the program's.
${MESON_EXE_WRAPPER:-} "$program" ${ARGUMENTS:-} 2>stderr || {
    echo "exit status $?"
    cat stderr
    exit 1
}

while [ $# -ge 3 ]; do
    found=$(grep -c -e "$2" "$1" || true)
    if [ "${found:-0}" -lt "$3" ]; then
        echo "$1: ${found:-no} lines with '$2', expected $3"
        [ ! -e "$1" ] || tail -n 60 "$1"
        exit 1
    fi
    shift 3
done
