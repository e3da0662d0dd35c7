#!/bin/sh
# instructions.sh loops|gpu|nccl PROGRAM [ARGUMENT...] - instructions per operation, counted by valgrind: the same on
# every machine that runs the same code. Two runs of different length, so that all but the loop cancels out.
#
#     loops PROGRAM [WHAT...]   what a program calls while it records (instructions.c)
#     gpu PROGRAM LIBRARY       a span of a GPU stream beside two bare records, on the mock of the driver. The spans
#                               that are counted lie within one round of the collector, whose work is another thread's
#     nccl PROGRAM LIBRARY      the times of a collective through libpk_nccl, and its instructions beside the bare call's

sort=$1 program=$2
shift 2
if [ "$sort" = nccl ]; then
    "$program" "$1" || exit
fi
command -v valgrind >/dev/null || { echo "no count of instructions: valgrind is not installed"; [ "$sort" = nccl ] && exit 0; exit 77; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# count ARGUMENT...: of the program, by its main thread
count()
{
    rm -f "$folder"/*
    valgrind --tool=callgrind --callgrind-out-file="$folder/out" --separate-threads=yes \
        "$program" "$@" >"$folder/log" 2>&1 || cat "$folder/log" >&2
    awk '/^summary:/ { print $2 }' "$folder/out-01"
}

# difference A B TIMES: of two counts, for each of so many
difference() { awk "BEGIN { printf \"%.1f\", ($1 - $2) / $3 }"; }

# measure LIBRARY WHAT...: each one's instructions in a variable of its name
measure()
{
    library=$1
    shift
    for what; do
        few=$(count "$library" "$what" 500) many=$(count "$library" "$what" 1500)
        eval "$what=$(difference "$many" "$few" 1000)"
    done
}

row() { printf '  %-44s %8s\n' "$1" "$2"; }

case $sort in
    loops)
        [ $# -gt 0 ] || set -- loop floor off on 64 next statistics history trace
        printf '%-46s %8s\n' "instructions per operation" "count"
        for what; do
            few=$(count "$what" 6400 "$folder/trace.json") many=$(count "$what" 25600 "$folder/trace.json")
            row "$what" "$(difference "$many" "$few" 19200)"
        done ;;
    gpu)
        measure "$1" records asked off span
        printf '%-46s %8s\n' "instructions per span, on the mock" "count"
        row "two bare cuEventRecord" "$records"
        row "and two cuStreamIsCapturing" "$asked"
        row "off" "$off"
        row "pk_gpu_begin and pk_gpu_end" "$span"
        row "of it perfkit's own" "$(difference "$span" "$asked" 1)" ;;
    nccl)
        measure "$1" bare off records asked span wrapped
        printf '%-46s %8s\n' "instructions per call, on the mock" "count"
        row "off: more than the bare call" "$(difference "$off" "$bare" 1)"
        row "call, two records, two cuStreamIsCapturing" "$asked"
        row "in a span: perfkit's own" "$(difference "$span" "$asked" 1)"
        row "through libpk_nccl: perfkit's own" "$(difference "$wrapped" "$asked" 1)" ;;
esac
