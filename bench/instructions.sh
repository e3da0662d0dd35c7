#!/bin/sh
# instructions.sh PROGRAM [WHAT...] - instructions per operation, counted by valgrind: the same on every
# machine that runs the same code. Two runs of different length, so that all but the loop cancels out.

command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
program=$1
shift
[ $# -gt 0 ] || set -- loop floor off on 64 next statistics history trace
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# count WHAT N: by the main thread
count()
{
    rm -f "$folder"/*
    valgrind --tool=callgrind --callgrind-out-file="$folder/out" --separate-threads=yes \
        "$program" "$1" "$2" "$folder/trace.json" >"$folder/log" 2>&1 || cat "$folder/log" >&2
    awk '/^summary:/ { print $2 }' "$folder/out-01"
}

printf '%-38s %8s\n' "instructions per operation" "count"
for what; do
    few=$(count $what 6400) many=$(count $what 25600)
    printf '  %-36s %8s\n' "$what" "$(awk "BEGIN { printf \"%.1f\", ($many - $few) / 19200 }")"
done
