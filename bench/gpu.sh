#!/bin/sh
# gpu.sh PROGRAM LIBRARY - instructions of a span of a GPU stream beside two bare records, on the mock of
# the driver, counted by valgrind: two runs of different length, so that all but the loop cancels out. The
# spans that are counted lie within one round of the collector, whose work is another thread's.

command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
program=$1 library=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# count WHAT N: by the main thread
count()
{
    rm -f "$folder"/*
    valgrind --tool=callgrind --callgrind-out-file="$folder/out" --separate-threads=yes \
        "$program" "$library" "$1" "$2" >"$folder/log" 2>&1 || cat "$folder/log" >&2
    awk '/^summary:/ { print $2 }' "$folder/out-01"
}

printf '%-46s %8s\n' "instructions per span, on the mock" "count"
for what in records asked off span; do
    few=$(count $what 500) many=$(count $what 1500)
    each=$(awk "BEGIN { printf \"%.1f\", ($many - $few) / 1000 }")
    eval "$what=$each"
done
printf '  %-44s %8s\n' "two bare cuEventRecord" "$records"
printf '  %-44s %8s\n' "and two cuStreamIsCapturing" "$asked"
printf '  %-44s %8s\n' "off" "$off"
printf '  %-44s %8s\n' "pk_gpu_begin and pk_gpu_end" "$span"
printf '  %-44s %8s\n' "of it perfkit's own" "$(awk "BEGIN { printf \"%.1f\", $span - $asked }")"
