#!/bin/sh
# nccl_wrap.sh PROGRAM DOUBLE - the times of a collective through libpk_nccl, and its instructions beside those of
# the bare call, counted by valgrind as in gpu.sh.

program=$1 double=$2
"$program" "$double" || exit
command -v valgrind >/dev/null || { echo "no count of instructions: valgrind is not installed"; exit 0; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# count WHAT N: by the main thread
count()
{
    rm -f "$folder"/*
    valgrind --tool=callgrind --callgrind-out-file="$folder/out" --separate-threads=yes \
        "$program" "$double" "$1" "$2" >"$folder/log" 2>&1 || cat "$folder/log" >&2
    awk '/^summary:/ { print $2 }' "$folder/out-01"
}

for what in bare off records asked span wrapped; do
    few=$(count $what 500) many=$(count $what 1500)
    eval "$what=$(awk "BEGIN { printf \"%.1f\", ($many - $few) / 1000 }")"
done
printf '%-46s %8s\n' "instructions per call, on the mock" "count"
printf '  %-44s %8s\n' "off: more than the bare call" "$(awk "BEGIN { printf \"%.1f\", $off - $bare }")"
printf '  %-44s %8s\n' "call, two records, two cuStreamIsCapturing" "$asked"
printf '  %-44s %8s\n' "in a span: perfkit's own" "$(awk "BEGIN { printf \"%.1f\", $span - $asked }")"
printf '  %-44s %8s\n' "through libpk_nccl: perfkit's own" "$(awk "BEGIN { printf \"%.1f\", $wrapped - $asked }")"
