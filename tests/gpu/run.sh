#!/bin/bash
# run.sh [--seconds N] [--list] FOLDER [TEST...] - the tests on a GPU, with the programs of a build folder.
#
# In the order in which one wants to know, the longest last; only those named, if any are. N seconds are never
# exceeded (default 540): a test that would need more than is left is not begun, one that takes more is ended.
# Says what is not so and goes on; ends with 0, 1, or 77 and the reason if there is no GPU.
#
# PK_GPU_FIGURES (default FOLDER/gpu-figures.tsv) gets each figure and each test's outcome at once, at its end: what
# was measured stays, whatever happens next. Beside it: gpu-log.txt, all that was said, and gpu-traces.tar.gz, the
# traces of tests that were not well, by test. results.py puts the figures into docs/gpu-results.md.
set -u

# NAME SECONDS LEAST WHAT - at most so many seconds, not worth beginning with less left, and what it would prove.
tests="status 60 5 what perfkit finds here, and that one span, one sample and one session work at all
threads 30 5 a thread without a context: what the driver answers, and that its spans are recorded
pairs 45 10 what a pair of event records costs, and how much too long a span is
capture 45 10 the collector disturbs no stream capture, and spans in a graph are measured at each replay
graphs 60 10 graphs in which events may not stand (conditional nodes, launched by the device) stay whole
kernels 45 10 each kernel is tied to its region, not before its launch, and as long as its own clock says
deep 40 15 fifty launches queued for ten seconds: report, trace and launches agree, a capture has its kernels
verdicts 30 8 short kernels with gaps are launch-bound, long ones in a row gpu-bound, in the report's words
gemm 40 10 products by cuBLAS: MFU against own arithmetic, beside the device's own counters (GPM)
cost 60 15 a launch and a step without CUPTI, with all of it recorded, and armed
overlap 30 8 streams side by side, and one queue for all: as the report has it and as the kernels' timers
memory 45 10 what is allocated on the device, by region, and what a pool says, against what was
idle 40 12 waits are the program's, none of perfkit's own questions
launch 45 15 what a launch costs before a session, in it, after spans, within one, and once it is over
holder 45 5 another tool that has CUPTI, before and after perfkit: said, and neither harmed
faults 60 10 destroyed contexts, a kernel that writes where it may not, a fork: perfkit ends well
storm 90 20 300 contexts destroyed and devices reset at once, 100 exits in flight: no crash, whole traces
modules 30 8 code loaded by one thread while another records: nothing is missing
processes 60 15 two and four processes on one device: each records its own, NCCL between two if it may
anchors 60 15 spans and kernels stand at the right place of the host's clock, after a pause, too
nccl 60 15 messages and all-reduces between events against NCCL's kernels and nccl-tests
bench 90 20 pk_bench: the queue, the cold cache, clocks, and a bandwidth beside the device's own
sweep 120 20 figures of 1 B to 1 GiB all-reduces against this program's own clock
profiler 120 20 torch.profiler before, during and after perfkit: neither loses kernels for good
preload 120 20 libpk_nccl preloaded into PyTorch: the same result, each collective in the trace
train 180 40 the training example: what perfkit costs it, every kernel in the region that launched it
clocks 140 15 the device's clock against the host's over minutes: drift, and what is left of it"

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
        --list) # seconds at most, and what it would prove
            while read -r name limit _ what; do printf '%-9s %4d s  %s\n' "$name" "$limit" "$what"; done <<<"$tests"
            exit
            ;;
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

# keep_traces - those that are left as one archive, to be carried away.
keep_traces()
{
    rmdir "$beside/gpu-traces"/* "$beside/gpu-traces" 2>/dev/null
    [ -d "$beside/gpu-traces" ] && have tar || return 0
    rm -f "$beside/gpu-traces.tar.gz"
    tar -C "$beside" -czf "$beside/gpu-traces.tar.gz" gpu-traces && rm -rf "$beside/gpu-traces" &&
        say "traces of what was not well: $beside/gpu-traces.tar.gz"
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
        *) failed+=("$1"); return ;;
    esac
    rm -rf "$beside/gpu-traces/$1"
}

all()
{
    local name limit least
    while read -r name limit least _; do
        is_wanted "$name" || continue
        if [ "$(left)" -lt "$least" ]; then
            not_run+=("$name")
            note "test.$name" "not run: $(left) s were left, it wants $least"
        else
            # Three seconds for one that does not end when it is told to, and one for us.
            one "$name" $(($(left) - 4 < limit ? $(left) - 4 : limit)) </dev/null
        fi
    done <<<"$tests"
    keep_traces
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
