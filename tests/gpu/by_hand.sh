#!/bin/bash
# by_hand.sh FOLDER - builds what the tests on a GPU need where meson is missing: gcc or clang is enough, and bash with
# what every Linux has beside it. Of twins, NAME/none.c is taken where the files of NAME do not compile, for want of a
# header. nvcc, where there is one, builds the examples.
set -eu -o pipefail

mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
for cc in "${CC:-cc}" gcc clang; do
    command -v "$cc" >/dev/null && break
done
arch=$(uname -m)
[ -d "lib/base/arch/$arch" ] || arch=generic
flags=(-std=gnu11 -O2 -g1 -D_GNU_SOURCE -DNDEBUG -fPIC -fvisibility=hidden -fno-semantic-interposition
       -ftls-model=initial-exec -ffp-contract=off -pthread -Iinclude -Ilib "-Ilib/base/arch/$arch"
       "-DPKI_SHIM_FOLDER=\"$folder/lib\"")
for cuda in "${CUDA_HOME:-}" /usr/local/cuda; do
    [ -n "$cuda" ] && [ -d "$cuda/include" ] && flags+=(-isystem "$cuda/include") && break
done

compiles() { "$cc" "${flags[@]}" -fsyntax-only "$@" 2>/dev/null; }

# choose TWIN REAL... - which of the two is left out of the library: TWIN where the others compile.
without=()
choose()
{
    if [ $# -gt 1 ] && compiles "${@:2}"; then
        without+=("$1")
    else
        without+=("${@:2}")
        echo "$1 takes the place of what does not compile here"
    fi
}

# libpk: everything but the libraries beside it and what is for another processor.
mapfile -t sources < <(find lib -name '*.c' -not -path 'lib/comm/mpi/*' -not -path 'lib/comm/nccl/*' -not -path 'lib/bench/*' \
                            -not -path 'lib/backend/shim/*' -not -path 'lib/base/arch/*'; ls "lib/base/arch/$arch"/*.c)
for twin in lib/backend/*/*none.c lib/comm/plugin/none.c; do
    mapfile -t real < <(find "$(dirname "$twin")" -name '*.c' -not -name '*none.c')
    choose "$twin" "${real[@]}"
done
choose lib/out/gz_none.c lib/out/gz.c lib/out/deflate_zlib.c
choose lib/out/deflate_isal_none.c lib/out/deflate_isal.c
choose lib/bench/device_none.c lib/bench/device_cuda.c lib/bench/device_cuda.c
zlib=()
compiles lib/out/deflate_zlib.c && zlib=(-lz)

objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
mkdir -p "$folder/tests/gpu" "$folder/examples" "$folder/lib"
# objects_of FOLDER SOURCE... - of those that are not left out.
objects_of()
{
    local source
    mkdir -p "$1"
    for source in "${@:2}"; do
        [[ " ${without[*]} " = *" $source "* ]] || echo "$source"
    done | xargs -P "$(nproc)" -I{} sh -c \
        'out=$1/$(echo "$2" | tr / _).o; shift 2; exec "$@" -o "$out"' sh "$1" {} "$cc" "${flags[@]}" -c {}
}
objects_of "$objects" "${sources[@]}"
ar rcs "$objects/libpk.a" "$objects"/*.o
"$cc" -shared -o "$folder/lib/libpk.so.1" -Wl,-soname,libpk.so.1,-z,nodelete "$objects"/*.o "${zlib[@]}" -pthread -lm -ldl
"$cc" "${flags[@]}" -shared -o "$folder/lib/libpkshim.so" lib/backend/shim/*.c -Wl,-z,nodelete,-z,now -ldl

mapfile -t bench < <(find lib/bench -name '*.c')
objects_of "$objects/bench" "${bench[@]}"
ar rcs "$objects/libpkbench.a" "$objects/bench"/*.o

# NCCL looks for its profiler in the program; linkers before 2020 cannot export a single symbol.
exports=()
for version in 2 3 4 5 6; do
    exports+=("-Wl,-u,ncclProfiler_v$version" "-Wl,--export-dynamic-symbol=ncclProfiler_v$version")
done
echo 'int main(void) { return 0; }' | "$cc" -x c - "${exports[@]}" -o "$objects/probe" 2>/dev/null || exports=()
"$cc" "${flags[@]}" -o "$folder/tests/gpu/gpu-tests" tests/gpu/*.c "${exports[@]}" "$objects/libpkbench.a" "$objects/libpk.a" \
    "${zlib[@]}" -lm -ldl

nvcc=$(PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:/usr/local/cuda/bin command -v nvcc || true)
if [ -z "$nvcc" ]; then
    echo "no nvcc: without examples/cuda_train"
elif ! "$nvcc" -std=c++17 -O2 -arch=native -Iinclude -o "$folder/examples/cuda_train" examples/cuda_train.cu \
        "$objects/libpk.a" "${zlib[@]}" -lpthread -lm -ldl; then
    echo "nvcc does not compile examples/cuda_train: without it"
fi

# With the NCCL of the toolkit, if that has one.
wraps=()
for source in lib/comm/nccl/*.c; do
    object=$objects/$(basename "$source" .c).wrap.o
    "$cc" "${flags[@]}" -o "$object" -c "$source"
    wraps+=("$object")
done
ar rcs "$objects/libpk_nccl.a" "${wraps[@]}"
"$cc" "${flags[@]}" -shared -o "$folder/lib/libpk_nccl.so.1" -Wl,-soname,libpk_nccl.so.1,-z,nodelete,-z,now,-rpath,'$ORIGIN' \
    -DPKI_WRAP_LOADED lib/comm/nccl/real.c "$objects/wrap.wrap.o" "$folder/lib/libpk.so.1" -pthread -ldl
if [ -n "$nvcc" ] && ! "$nvcc" -std=c++17 -O2 -arch=native -Iinclude -o "$folder/examples/nccl_allreduce" \
        examples/nccl_allreduce.cu "$objects/libpk_nccl.a" "$objects/libpk.a" "-L$(dirname "$nvcc")/../lib64" -lnccl \
        -Xlinker "-rpath=$(dirname "$nvcc")/../lib64" "${zlib[@]}" -lpthread -lm -ldl; then
    echo "nvcc does not compile examples/nccl_allreduce: without it"
fi
