#!/bin/bash
# run.sh SOURCE LIBPK_SO PROGRAM [--rounds N] - builds a module of each language that is here, and measures them.

set -eu
source=$1 library=$(realpath "$2") program=$(realpath "$3")
shift 3
folder=$(mktemp -d "${TMPDIR:-/tmp}/pk-bench-ffi-XXXXXX")
trap 'rm -rf "$folder"' EXIT
here=$source/bench/ffi bindings=$source/bindings
cd "$folder"
ln -s "$library" libpk.so
ln -s "$library" libpk.so.1
cat >pk.pc <<END
Name: pk
Description: libpk.so
Version: 0
Cflags: -I$source/include
Libs: -L$folder -lpk
END
export LD_LIBRARY_PATH=$folder PKG_CONFIG_PATH=$folder LIBRARY_PATH=$folder
export GOCACHE=$folder/go-cache GOFLAGS=-mod=mod GOPROXY=off
flags=(-O2 -shared -fPIC -I "$source/include")
have() { command -v "$1" >/dev/null || { echo "no $1 here: left out"; false; }; }

cc "${flags[@]}" "$here/symbol.c" -o symbol.so -lpk
cc "${flags[@]}" "$here/inline.c" -o inline.so -lpk
c++ "${flags[@]}" -std=c++11 "$here/scope.cpp" -o scope.so -lpk
modules=("C, through libpk.so's symbols=./symbol.so" "C, inline=./inline.so" "C++, pk::scope=./scope.so")
if have gfortran; then
    gfortran "${flags[@]}" "$bindings/fortran/pk.f90" "$here/pairs.f90" -o fortran.so -lpk
    modules+=("Fortran=./fortran.so")
fi
if have rustc; then
    rustc -O --edition 2021 --crate-type rlib --crate-name pk "$bindings/rust/pk.rs"
    rustc -O --edition 2021 --crate-type cdylib --extern pk=libpk.rlib -L . "$here/pairs.rs" -o rust.so
    modules+=("Rust, Scope=./rust.so")
fi
"$program" "${modules[@]}" "$@"
# Go brings a runtime with threads and signals of its own: in a process of its own, beside C.
if have go; then
    mkdir -p contrib bench/ffi
    cp -r "$contrib/go" contrib/
    cp -r "$here/go" bench/ffi/
    (cd bench/ffi/go && go build -buildmode=c-shared -o "$folder/go.so" .)
    "$program" "${modules[0]}" "Go, Begin().End()=./go.so" "$@"
fi
for home in "${JAVA_HOME:-}" /usr/lib/jvm/*; do
    case $("$home/bin/javac" -version 2>/dev/null) in
        "javac 2"[2-9]* | "javac "[3-9][0-9]*)
            "$home/bin/javac" -d classes "$contrib"/java/perfkit/*.java "$here/Pairs.java"
            "$home/bin/java" --enable-native-access=ALL-UNNAMED -cp classes Pairs "$@"
            break ;;
    esac
done
PYTHONPATH=$bindings/python PK_LIBRARY=$library python3 -B "$here/python.py" "$@"
