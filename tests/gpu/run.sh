#!/bin/bash
# run.sh FOLDER - the tests on a GPU, in the order in which one wants to know, with the programs of a build folder.
# Says what is not so and goes on; ends with 0, 1, or 77 and the reason if there is no GPU. Figures go to
# FOLDER/gpu-figures.tsv.
set -u

build=$(cd "$1" && pwd)
programs=$build/tests/gpu
export PK_GPU_FIGURES=$build/gpu-figures.tsv
failed=() skipped=()

# CUPTI comes with the toolkit, which puts it where the loader does not look. One that was carried here is the last
# choice: it may be newer than the driver.
find_cupti()
{
    local file
    for file in {"${CUDA_HOME:-/usr/local/cuda}",/usr/local/cuda*}/{extras/CUPTI/lib64,lib64}/libcupti.so.1? \
        "$build"/libcupti.so.1?; do
        [ -e "$file" ] && export PK_CUPTI_LIBRARY=$file && return
    done
}

# one SECONDS NAME ARGUMENT...
one()
{
    local seconds=$1 name=$2 status=0 begun=$SECONDS
    shift 2
    echo "$name"
    timeout "$seconds" "$programs/gpu-$name" "$@" 2>&1 || status=$?
    case $status in
        0) echo "$name: well, $((SECONDS - begun)) s" ;;
        77) skipped+=("$name") ;;
        124) failed+=("$name"); echo "$name: not done in $seconds s" ;;
        *) failed+=("$name"); echo "$name: failed ($status)" ;;
    esac
    return "$status"
}

[ -n "${PK_CUPTI_LIBRARY-}" ] || find_cupti
: >"$PK_GPU_FIGURES"
one 60 status
[ $? -eq 77 ] && exit 77
one 45 pairs
one 45 capture
one 45 kernels
one 80 clocks
one 45 holder
one 90 nccl
one 45 faults
one 180 train "$build/examples/cuda_train"
printf 'date\t%s\n' "$(date +%Y-%m-%d)" >>"$PK_GPU_FIGURES"
printf 'failed\t%s\nskipped\t%s\n' "${failed[*]:-none}" "${skipped[*]:-none}" >>"$PK_GPU_FIGURES"
echo "failed: ${failed[*]:-none}; skipped: ${skipped[*]:-none}; $SECONDS s; figures: $PK_GPU_FIGURES"
[ ${#failed[@]} -eq 0 ]
