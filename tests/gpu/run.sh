#!/bin/bash
# run.sh [--seconds N] [--list] FOLDER [TEST...] - the tests on a GPU, with the programs of a build folder.
#
# In the order in which one wants to know, the longest last; only those named, if any are. N seconds are never
# exceeded (default 540): a test that would need more than is left is not begun, one that takes more is ended.
# Says what is not so and goes on; ends with 0, 1, or 77 and the reason if there is no GPU.
#
# PK_GPU_FIGURES (default FOLDER/gpu-figures.tsv) gets each figure and each test's outcome at once, at its end: what
# was measured stays, whatever happens next. Beside it: gpu-log.txt, all that was said, and gpu-traces/TEST, the
# traces of a test that was not well. results.py puts the figures into docs/gpu-results.md.
set -u

# NAME SECONDS LEAST - at most so many seconds, and not worth beginning with less left.
tests="status 60 5
threads 30 5
pairs 45 10
capture 45 10
graphs 60 10
kernels 45 10
memory 45 10
idle 40 12
launch 45 15
bench 90 20
anchors 60 15
holder 45 5
faults 60 10
nccl 60 15
sweep 120 20
profiler 120 20
preload 120 20
train 180 40
clocks 140 15"

here=$(cd "$(dirname "$0")" && pwd)
seconds=540 build= wanted=()

known() { cut -d ' ' -f 1 <<<"$tests" | grep -qxF -- "$1"; }

usage()
{
    printf '%s\n' "$1" "run.sh [--seconds N] [--list] FOLDER [TEST...]; tests: $(cut -d " " -f 1 <<<"$tests" | tr "\n" " ")" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --list) cut -d ' ' -f 1 <<<"$tests"; exit ;;
        --seconds)
            [[ ${2-} =~ ^[1-9][0-9]{0,5}$ ]] || usage "--seconds wants a number"
            seconds=$2
            shift
            ;;
        -*) usage "unknown option $1" ;;
        *)
            if [ -z "$build" ]; then
                build=$1
            elif known "$1"; then
                wanted+=("$1")
            else
                usage "no test is called $1"
            fi
            ;;
    esac
    shift
done
[ -d "$build" ] || usage "no folder of a build"

build=$(cd "$build" && pwd)
export PK_GPU_FIGURES=${PK_GPU_FIGURES:-$build/gpu-figures.tsv}
beside=$(realpath -m "$(dirname "$PK_GPU_FIGURES")")
PK_GPU_FIGURES=$beside/$(basename "$PK_GPU_FIGURES") log=$beside/gpu-log.txt
failed=() skipped=() not_run=()

say() { printf '%s\n' "$*" | tee -a "$log"; }
left() { echo $((seconds - SECONDS)); }

# What a test came to; a later line of the same key replaces an earlier one.
note() { printf '%s\t%s\n' "$1" "$2" >>"$PK_GPU_FIGURES"; }

have() { command -v "$1" >/dev/null 2>&1; }

# arguments NAME - what a program is given.
arguments()
{
    case $1 in
        train) printf '%s\n' "${PK_GPU_TRAIN:-$build/examples/cuda_train}" ;;
        profiler | preload) printf '%s\n' "$build" ;;
        clocks) # what is left, in two halves
            local half=$((($(left) - 20) / 2)) most=${PK_GPU_CLOCK_SECONDS:-60}
            printf '%s\n' $((half > most ? most : half < 2 ? 2 : half))
            ;;
    esac
}

# is_wanted NAME
is_wanted() { [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " = *" $1 "* ]]; }

# command NAME - into the array `command`; answers with a reason if there is nothing to run.
find_command()
{
    command=("$build/tests/gpu/gpu-tests" "$1")
    if [ -e "$here/$1.py" ]; then
        command=(python3 -B "$here/$1.py")
        have python3 || { echo "skipped: there is no python3"; return 1; }
    elif [ ! -x "${command[0]}" ]; then
        echo "skipped: $build has no tests/gpu/gpu-tests"
        return 1
    fi
}

# keep_traces NAME - small enough to be carried away.
keep_traces()
{
    local traces=$beside/gpu-traces/$1
    have gzip && find "$traces" -name '*.json' -size +256k -exec gzip -f {} +
    rmdir "$traces" 2>/dev/null || say "$1: its traces are in $traces"
}

# one NAME SECONDS
one()
{
    local name=$1 limit=$2 begun=$SECONDS status said=$beside/gpu-log.last
    note "test.$name" "begun"
    say "$name"
    mkdir -p "$beside/gpu-traces/$name"
    if find_command "$name" >"$said"; then
        TMPDIR=$beside/gpu-traces/$name timeout -k 3 "$limit" "${command[@]}" $(arguments "$name") 2>&1 | tee "$said"
        status=${PIPESTATUS[0]}
    else
        cat "$said"
        status=77
    fi
    cat "$said" >>"$log"
    judge "$name" "$status" "$((SECONDS - begun)) s" "$limit" "$said"
    rm -f "$said"
}

# judge NAME STATUS TOOK LIMIT SAID
judge()
{
    local outcome="failed ($2), $3"
    case $2 in
        0) outcome="well, $3" ;;
        77) outcome="skipped: $(sed -n 's/^skipped: //p' "$5" | tail -n 1)" ;;
        124 | 137) outcome="failed: not done in $4 s" ;;
    esac
    note "test.$1" "$outcome"
    say "$1: $outcome"
    case $2 in
        0) ;;
        77) skipped+=("$1") ;;
        *) failed+=("$1"); keep_traces "$1"; return ;;
    esac
    rm -rf "$beside/gpu-traces/$1"
}

all()
{
    local name limit least
    while read -r name limit least; do
        is_wanted "$name" || continue
        if [ "$(left)" -lt "$least" ]; then
            not_run+=("$name")
            note "test.$name" "not run: $(left) s were left, it wants $least"
        else
            # Three seconds for one that does not end when it is told to, and one for us.
            one "$name" $(($(left) - 4 < limit ? $(left) - 4 : limit)) </dev/null
        fi
    done <<<"$tests"
    rmdir "$beside/gpu-traces" 2>/dev/null
    say "failed: ${failed[*]:-none}; skipped: ${skipped[*]:-none}; not run: ${not_run[*]:-none}; $SECONDS s;" \
        "figures: $PK_GPU_FIGURES"
    [ ${#failed[@]} -eq 0 ]
}

. "$here/libraries.sh"
find_libraries "$build"
machine=$(timeout 60 "$build/tests/gpu/gpu-tests" status --probe 2>&1)
case $? in
    0) ;;
    77) printf '%s\n' "$machine"; exit 77 ;; # nothing is noted
    *) printf 'gpu-tests status --probe: %s\n' "$machine"; exit 1 ;;
esac
mkdir -p "$beside" && touch "$PK_GPU_FIGURES" || exit 1
commit=$(git -C "$here" log -n 1 --format=%h 2>/dev/null)
note run "$(date -u '+%Y-%m-%d %H:%M UTC')${commit:+, commit $commit}"
printf '%s\n' "$machine" >>"$PK_GPU_FIGURES"
all
