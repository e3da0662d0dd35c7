#!/bin/bash
# run.sh CASE SOURCE BUILD PREFIX LIBDIR - has the build installed in a folder, which is not the one it was configured
# for, and is its user: through pkg-config, CMake, as a meson subproject, from a plug-in that comes and
# goes, with the linkers' ways to leave things out; and builds it as a Debian package and with musl.

set -eu -o pipefail
case=$1 source=$2 build=$3 prefix=$4 libdir=$5
here=$source/tests/install
# What builds perfkit does so at the same place each time: a compiler's cache knows sources by their paths, too.
folder=$build/tests/install/$case
case $case in
    core | deb | musl | subproject) rm -rf "$folder" && mkdir -p "$folder" ;;
    *) folder=$(mktemp -d) ;;
esac
trap 'rm -rf "$folder"' EXIT
cd "$folder"

skip() { echo "skipped: $*"; exit 77; }
have() { command -v "$1" >/dev/null || skip "$1 is not installed"; }
have_shared() { [ -e "$root/$libdir/libpk.so" ] || skip "this build has no libpk.so"; }
none() { if grep "$@"; then return 1; fi; } # what is found is wrong ("! grep" would not end the script)
as_built() { python3 -B "$source/tests/kit/as_built.py" "$build" "$1"; }
# known ROOT - the build's compiler, which has the build's objects of the same files by the same flags: known.sh. ROOT of the
# sources as command lines have it.
known()
{
    python3 -B "$source/tests/kit/as_built.py" "$build" known "$folder/known"
    echo "$source/tests/kit/known.sh $folder/known $1 $(as_built compiler)"
}
compile() { ${CC:-cc} -std=c11 -Wall -Werror "$@"; }

# The tree that is used from here on: use PREFIX LIBDIR
use()
{
    root=$1 libdir=$2
    export PKG_CONFIG_PATH=$root/$libdir/pkgconfig
}

"$source/tests/kit/installed.sh" "$build" "$prefix" "$folder/moved"
unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH CPATH LIBRARY_PATH
use "$folder/moved" "$libdir"
version=$(pkg-config --modversion pk 2>/dev/null || true)

. "$here/bench.sh"
. "$here/mpi.sh"

run_files()
{
    diff <(cd "$source/include/pk" && ls) <(cd "$root/include/pk" && ls)
    for file in libpk.a libpkbench.a pkgconfig/pk.pc pkgconfig/pk-bench.pc cmake/pk/pkConfig.cmake cmake/pk/pkConfigVersion.cmake; do
        [ -s "$root/$libdir/$file" ] || { echo "$file is not installed"; return 1; }
    done
    diff <(cd "$source/docs" && ls -R) <(cd "$root/share/doc/perfkit" && ls -R)
    cmp "$source/LICENSE" "$root/share/licenses/perfkit/LICENSE"
    grep -x "PackageVersion: $version" "$root/share/licenses/perfkit/perfkit.spdx"
    if [ -e "$root/$libdir/libpk.so" ]; then
        # Programs are linked with libpk.so, look for libpk.so.ABI, and find libpk.so.VERSION.
        local abi
        abi=$(readelf -d "$root/$libdir/libpk.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
        [ "$(readlink "$root/$libdir/libpk.so")" = "$abi" ]
        [ "$(readlink "$root/$libdir/$abi")" = "libpk.so.$version" ]
    fi
    # Nothing of this machine may travel with it.
    none -rlF -e "$source" -e "$build" -e "$folder" "$root/$libdir/pkgconfig" "$root/$libdir/cmake" "$root/include" "$root/share"
}

# The headers as they are installed, without anything else of ours on the path.
run_headers()
{
    local header
    for header in "$root"/include/pk/*.h; do
        echo "#include <pk/${header##*/}>" | compile -x c -fsyntax-only -I"$root/include" -
    done
    echo '#include <pk/pk.hpp>' | ${CXX:-c++} -x c++ -std=c++11 -Wall -Werror -fsyntax-only -I"$root/include" -
}

run_shared()
{
    have pkg-config; have_shared
    compile "$here/consumer.c" -o consumer $(pkg-config --cflags --libs pk)
    readelf -d consumer | grep 'NEEDED.*libpk\.so\.'
    LD_LIBRARY_PATH=$root/$libdir ./consumer
}

# What `pk run` preloads lies beside pk, wherever that has been moved to.
run_attach()
{
    [ -x "$root/bin/pk" ] && [ -e "$root/$libdir/libpk_attach.so" ] || skip "this build has no pk run"
    cat >maps.c <<'END'
#include <stdio.h>
int main(void)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        fputs(line, stdout);
    return 5;
}
END
    cc maps.c -o maps
    ! "$root/bin/pk" run -o of -- ./maps >maps.out 2>said || return 1
    grep -F "$(cd "$root" && pwd -P)/$libdir/libpk_attach.so." maps.out
    grep -F "$(cd "$root" && pwd -P)/$libdir/libpk.so." maps.out
    grep 'recorded in' said
    [ -s of/0.report.json ]
}

# A static program finds the shim beside the library; a shared one is its own.
run_shim()
{
    have pkg-config
    [ -e "$root/$libdir/libpkshim.so" ] || skip "this build has no libpkshim.so"
    cat >listen.c <<'END'
#include <pk/pk.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    pk_backend_info info = {.size = sizeof info};
    pk_start(pk_options(.tuning = "nvtx_consume=1"));
    pk_backend_status("nvtx", &info);
    printf("%s: %s\n", getenv("NVTX_INJECTION64_PATH"), info.reason);
    return pk_stop() || !info.live;
}
END
    export LD_LIBRARY_PATH=$root/$libdir
    compile -D_GNU_SOURCE listen.c -o listen $(pkg-config --static --cflags --libs pk)
    if (./listen || true) | grep 'perfkit was built without NVTX'; then # it fails then
        skip "this build has no NVTX; NCCL uses the shim, too"
    fi
    if [ -e "$root/$libdir/libpk.so" ]; then
        compile -D_GNU_SOURCE listen.c -o listen $(pkg-config --cflags --libs pk)
        ./listen | grep '/libpk\.so.*: consuming the ranges of 0 users'
        rm -f "$root/$libdir"/libpk.so*
    fi
    compile -D_GNU_SOURCE listen.c -o listen-static $(pkg-config --static --cflags --libs pk)
    ./listen-static | grep '/libpkshim\.so: consuming the ranges of 0 users'
    # Where the loader does not look, the program says where it is.
    unset LD_LIBRARY_PATH
    PK_NVTX_SHIM=$root/$libdir/libpkshim.so ./listen-static | grep '/libpkshim\.so: consuming the ranges of 0 users'
}

run_static()
{
    have pkg-config
    rm -f "$root/$libdir"/libpk.so*
    compile "$here/consumer.c" -o consumer $(pkg-config --static --cflags --libs pk)
    ./consumer
}

# A program of -static opens no libraries. It records all the same, and says why the backends are off.
run_whole()
{
    have pkg-config
    rm -f "$root/$libdir"/libpk.so*
    local how
    for how in -static -static-pie; do
        # The linker warns of dlopen: what it brings in has to be of the very glibc of the build.
        compile $how "$here/consumer.c" -o whole $(pkg-config --static --cflags --libs pk) 2>warnings
        sed "/Using 'dlopen' in statically linked/d" warnings | none -i warning
        ./whole
        LD_PRELOAD=/nowhere/libpk_alloc.so PK_REPORT_PATH=- ./whole 2>&1 | tr -s ' \n' ' ' |
            grep 'libpk_alloc counts nothing: the program is linked with -static: LD_PRELOAD does nothing there'
        compile $how -D_GNU_SOURCE "$here/backends.c" -o off $(pkg-config --static --cflags --libs pk) 2>/dev/null
        ./off >reasons
        cat reasons
        none -v -e 'off: .*the program is linked with -static: no library can be opened' -e 'off: .*built without' reasons
    done
}

# What linkers leave out is nothing that is needed.
run_linkers()
{
    have pkg-config
    local flags static cc
    rm -f "$root/$libdir"/libpk.so*
    static=$(pkg-config --static --cflags --libs pk)
    for flags in '-ffunction-sections -fdata-sections -Wl,--gc-sections' '-O2 -flto' '-no-pie -fno-pie' \
                 '-static -O2 -flto -Wl,--gc-sections' 'clang -O2 -flto -fuse-ld=lld -Wl,--gc-sections,--icf=all' \
                 '-Wl,--gc-sections -s -Wl,-z,now'; do
        cc=${CC:-cc}
        if [[ $flags = clang* ]]; then
            command -v clang ld.lld >/dev/null || { echo "without clang and lld: $flags"; continue; }
            cc=clang flags=${flags#clang}
        fi
        echo "$cc $flags"
        CC=$cc compile $flags "$here/consumer.c" -o linked $static 2>warnings || { cat warnings; return 1; }
        ./linked
        readelf -nW linked | grep '^  perfkit'
    done
}

# The second of two perfkits in a process is refused, however well they are hidden from each other.
run_copies()
{
    have pkg-config
    rm -f "$root/$libdir"/libpk.so*
    local static=$(pkg-config --static --cflags --libs pk) hidden='-shared -fPIC -fvisibility=hidden -Wl,--exclude-libs,ALL'
    compile $hidden -O2 -ffunction-sections -Wl,--gc-sections "$here/copy.c" -o libfirst.so $static
    compile $hidden -O2 -flto -s "$here/copy.c" -o libsecond.so $static
    [ -z "$(nm -D --defined-only libfirst.so | grep ' pk')" ]
    compile -D_GNU_SOURCE -pthread "$here/copies.c" -o copies $static -ldl
    ./copies report.txt
    grep '! two-perfkits: Another copy' report.txt
}

# Whom NCCL's loader finds, and by which way: nccl.c has its steps.
run_nccl()
{
    have pkg-config
    [ -n "$(pkg-config --variable=nccl_export pk)" ] || skip "this build is without NCCL, or its linker without the flags"
    local build="compile -D_GNU_SOURCE $here/nccl.c -o"
    finds() # program, words
    {
        local said=$(PK_BACKENDS=nccl "$1" 2>&1)
        [[ $said == $2 ]] || { echo "$1: $said, not $2"; return 1; }
    }
    if [ -e "$root/$libdir/libpk.so" ]; then
        $build linked $(pkg-config --cflags --libs pk) -Wl,-rpath,"$root/$libdir"
        finds ./linked 'STATIC_PLUGIN 5'
        NCCL_PROFILER_PLUGIN=none finds ./linked 'none 0' # somebody has said so
        NCCL_PROFILER_PLUGIN=/opt/other.so finds ./linked '/opt/other.so 0'
        $build plain -DLOADED -ldl
        LD_PRELOAD=$root/$libdir/libpk.so finds ./plain 'STATIC_PLUGIN 5'
        rm -f "$root/$libdir"/libpk.so*
    fi
    local by_hand="-I$root/include $root/$libdir/libpk.a $(pkg-config --static --libs-only-l pk | sed s/-lpk//)"
    $build whole $(pkg-config --static --cflags --libs pk) -Wl,--gc-sections -s
    $build one $by_hand -Wl,-u,ncclProfiler_v6 -Wl,--export-dynamic-symbol=ncclProfiler_v6
    $build bare $by_hand
    $build asked $by_hand $(pkg-config --variable=nccl_export pk)
    export LD_LIBRARY_PATH=$root/$libdir
    finds ./whole 'STATIC_PLUGIN 5'
    finds ./asked 'STATIC_PLUGIN 5'
    finds ./bare '*/libpkshim.so 5'
    nm -D --defined-only one | grep -c ncclProfiler | grep -x 1
    rm "$root/$libdir/libpkshim.so"
    finds ./whole 'STATIC_PLUGIN 5'
    finds ./one 'STATIC_PLUGIN 1'
    finds ./bare '(not set) 0'
    NCCL_PROFILER_PLUGIN=none finds ./whole 'none 0'
}

run_cmake()
{
    have cmake; have pkg-config; have_shared
    cp "$here/cmake/CMakeLists.txt" "$here/bench.c" "$here/consumer.c" .
    cmake -G Ninja -S . -B made -DCMAKE_PREFIX_PATH="$root" -DVERSION="$version" >log 2>&1 || { cat log; return 1; }
    cmake --build made >log 2>&1 || { cat log; return 1; }
    for program in made/with-*; do $program; done
    for program in made/bench-*; do measures $program; done
    readelf -d made/with-pk | grep 'NEEDED.*libpk\.so\.'
    readelf -d made/with-alloc | grep 'NEEDED.*libpk_alloc\.so\.'
    PK_REPORT_PATH=- made/with-alloc 2>&1 | grep '^  allocated, from .*libc\.'
    readelf -d made/with-pk_static | none 'NEEDED.*libpk'
    [ -z "$(pkg-config --variable=nccl_export pk)" ] || nm -D made/with-pk_static | grep ncclProfiler_v6
}

# CMakeLists.txt: inside another project's build, fetched or as a folder of it. Without zlib it links with less.
run_inside()
{
    have cmake
    cp "$here/subproject/CMakeLists.txt" "$here/bench.c" "$here/consumer.c" .
    local -x CC
    CC=$(known "$source")
    local quick=-DCMAKE_BUILD_TYPE=None # of no type it would be optimised
    cmake -G Ninja -S . -B made $quick -DFETCHCONTENT_SOURCE_DIR_PERFKIT="$source" >log 2>&1 || { cat log; return 1; }
    grep "perfkit $version: libpk and libpkbench; without" log
    cmake --build made >log 2>&1 || { cat log; return 1; }
    none warning: log
    made/with-pk
    grep -q '"work"' consumer.json
    measures made/bench
    readelf -d made/with-pk | none 'NEEDED.*libpk'
    # Without zlib all files but one are the same: it is there, and the rest is linked without.
    cmake -G Ninja -S . -B plain $quick -DINSIDE="$source" -DPK_ZLIB=OFF >log 2>&1 || { cat log; return 1; }
    ninja -C plain perfkit/CMakeFiles/pk.dir/lib/out/gz_none.c.o >log 2>&1 || { cat log; return 1; }
    ninja -C plain -t commands with-pk >commands
    grep -c 'gz_none\.c\.o' commands
    none -E 'libz\.|-lz|/gz\.c' commands
}

# The core in two files: they compile without a word, have no other name than ours, record and report; what they lack is said.
run_amalgamated()
{
    local -x CC
    CC=$(as_built compiler)
    python3 -B "$source/package/amalgamate.py" "$source" pk
    (cd pk && $CC -O1 -c pk.c) 2>log || { cat log; return 1; }
    [ ! -s log ] || { cat log; return 1; }
    nm -g --defined-only pk/pk.o | awk '{ print $3 }' | none -vE '^pk(i)?_'
    compile -I. "$source/examples/first_region.c" pk/pk.o -o first -lm -ldl -pthread
    ./first 2>report
    grep -q '^  sum_up  .* 100 ' report
    python3 -c 'import json; assert sum(e.get("name") == "sum_up" for e in json.load(open("first_region.json"))["traceEvents"]) == 100'
    PK_CAPTURE=slow=1.2 ./first 2>&1 | grep "PK_CAPTURE: this build of perfkit has no captures"
    compile -I. "$here/consumer.c" pk/pk.o -o consumer -lm -ldl -pthread
    ./consumer
    ! command -v g++ >/dev/null || g++ -Wall -Werror -fsyntax-only -x c++ pk/pk.h
}

# The core alone: small, it records, and what it lacks it refuses by name. In the folder beside the build's, with the same
# flags, most of its objects are the build's own, which the compiler's cache has.
# As ./dev demo does, with benchmarks and without tests: all files that are named are there.
run_demo()
{
    meson setup made "$source" --buildtype=release -Dtests=false >log 2>&1 || { tail -5 log; return 1; }
    ninja -C made -n examples/train/pk-train tools/pk >log || { tail -5 log; return 1; }
}

run_core()
{
    local made=$folder/made
    if [ "${build%/*}" = "$source/build/check" ]; then
        made=$source/build/check/core
        rm -rf "$made"
    fi
    local -x CC
    CC=$(as_built compiler)
    meson setup "$made" "$source" -Dwerror=true -Dservices= -Dtools=false -Dtests=false -Dbench=false -Dexamples=false -Dshared=false \
        -Dcuda=disabled -Dcupti=disabled -Dnvtx=disabled -Dnccl=disabled -Dmpi=disabled >log 2>&1 || { cat log; return 1; }
    meson compile -C "$made" pk:static_library >log 2>&1 || { cat log; return 1; }
    compile -O2 -I"$source/include" -I"$made/include" "$here/consumer.c" -o core "$made/lib/libpk.a" -lm -lz -ldl -pthread
    ./core
    grep -q '"work"' consumer.json
    local text
    text=$(size core | awk 'NR == 2 { print $1 }')
    echo "$text bytes of text"
    [ "$text" -le 350000 ]
    cat >asks.c <<'END'
#include <pk/pk.h>
#include <stdio.h>
int main(void)
{
    pk_status status = pk_start(NULL);
    printf("%s: %s\n", pk_status_name(status), status ? pk_error_message() : "");
    return status == PK_OK ? pk_stop() != PK_OK : 0;
}
END
    compile -I"$source/include" asks.c -o asks "$made/lib/libpk.a" -lm -lz -ldl -pthread
    local asked
    for asked in REPORT_PATH=r HISTORY_STEPS=9 WINDOWS_PATH=w METRICS_PATH=m COSTS=io GOODPUT_PATH=g JOB_PATH=j HANG_SECONDS=9; do
        env "PK_$asked" ./asks | grep -E "^PK_ENOTSUP: ${asked%%=*}: this build of perfkit has no" -i
    done
    PK_CAPTURE=slow=1.2 ./asks | grep "PK_CAPTURE: this build of perfkit has no captures"
    ./asks | grep PK_OK
}

# Through a wrap, and installed from there; what it has installed goes again.
run_subproject()
{
    "$source/package/copy.sh" "$source" perfkit
    tar -c perfkit | gzip -1 >perfkit.tar.gz
    rm -r perfkit
    mkdir -p consumer/subprojects
    cat >consumer/subprojects/perfkit.wrap <<END
[wrap-file]
directory = perfkit
source_url = file://$folder/perfkit.tar.gz
source_filename = perfkit.tar.gz
source_hash = $(sha256sum perfkit.tar.gz | cut -d ' ' -f 1)

[provide]
dependency_names = pk, pk-bench
END
    cp "$here/subproject/meson.build" "$here/bench.c" "$here/consumer.c" consumer/
    local -x CC
    CC=$(known ../consumer/subprojects/perfkit)
    meson setup made consumer --wrap-mode=forcefallback --buildtype=plain --prefix="$folder/prefix" \
        -Dperfkit:mpi=disabled -Dperfkit:nccl=disabled >log 2>&1 ||
        { cat log; return 1; }
    # The command is the same program anywhere, and the services the same objects: here it is enough that each of its parts
    # finds what it includes, and that programs get the libraries.
    ninja -C made $(ninja -C made -t targets all | sed -n 's/^\(.*perfkit\/tools\/[^:]*\.o\): .*/\1/p' |
        awk '{ part = $0; sub("/[^/]*$", "", part); if (!seen[part]++) print }') >log 2>&1 || { cat log; return 1; }
    meson configure made -Dperfkit:{tools=false,tests=false,services=,cuda=disabled,cupti=disabled,nvtx=disabled}
    meson compile -C made >log 2>&1 || { cat log; return 1; }
    for kind in static shared default; do
        "made/with-$kind"
        measures "made/bench-$kind"
    done
    readelf -d made/with-shared | grep 'NEEDED.*libpk\.so\.'
    readelf -d made/with-static made/with-default | none 'NEEDED.*libpk'
    meson install -C made --quiet
    find prefix -name libpk.a -size +0 | grep . # in lib, or in lib/ARCH on some
    ninja -C made uninstall >log 2>&1 || { cat log; return 1; }
    [ ! -e prefix ] || find prefix ! -type d | none .
}

run_plugin()
{
    have pkg-config; have_shared
    compile -shared -fPIC "$here/plugin.c" -o plugin.so $(pkg-config --cflags --libs pk) \
        -Wl,-rpath,"$root/$libdir"
    compile -D_GNU_SOURCE -pthread "$here/host.c" -o host -ldl
    ./host ./plugin.so "$folder/plugin.json"
    [ "$(grep -c '"plugin.work"' plugin.json)" -ge 12000 ]
}

# pk.py finds the library of its own tree, wherever that has been moved; docs/ffi.md uses the rest (suite docs).
run_python()
{
    have python3; have_shared
    for file in bindings/{fortran/pk.f90,fortran/pk_c.inc,rust/Cargo.toml,rust/pk.rs,python/pk.py,python/pk_c.py} \
        contrib/{go/go.mod,go/pk.go,go/session.go,go/goodput.go,go/example/main.go,java/perfkit/Pk.java}; do
        cmp "$source/$file" "$root/share/perfkit/${file#*/}"
    done
    python3 -B "$root/share/perfkit/python/example.py" >said 2>report
    grep 'backward: 50 calls' said
    grep 'wait for batch' report
    none -r "$source" "$root/share/perfkit"
}

# As pip installs it, somewhere else, without the tree it was made of.
run_wheel()
{
    have_shared
    local python
    for python in python3 /usr/bin/python3 none; do
        if "$python" -c 'import pip, wheel' 2>/dev/null; then break; fi
    done
    [ "$python" != none ] || skip "Python's pip or wheel is not installed"
    "$python" -B "$source/package/make_wheel.py" "$root" "$libdir" made
    cp "$root/share/perfkit/python/example.py" .
    rm -rf "$root"
    "$python" -m pip install --quiet --no-index --no-deps --no-cache-dir --disable-pip-version-check --target site made/perfkit-*.whl
    PYTHONPATH=site "$python" -B example.py >said 2>report
    grep 'backward: 50 calls' said
    PYTHONPATH=site "$python" -B -c 'import pk_c; print(pk_c.library._name)' | grep "^$folder/site/perfkit.libs/libpk.so.1$"
}

# With an NCCL that answers at once: what makes communicators shows that the wrappers are there. No GPU is needed.
run_wrap()
{
    have pkg-config
    [ -e "$root/$libdir/pkgconfig/pk_nccl.pc" ] || skip "this build has no libpk_nccl"
    local stub=$source/tests/nccl/wrap
    cat >train.c <<'END'
#include "nccl_stub.h"
int main(void)
{
    float x[4] = {1}, sum[4];
    ncclUniqueId id;
    ncclComm_t comm;
    return ncclGetUniqueId(&id) || ncclCommInitRank(&comm, 2, id, 0) || ncclGroupStart() ||
           ncclAllReduce(x, sum, 4, FLOAT, SUM, comm, NULL) || ncclGroupEnd() || ncclCommDestroy(comm);
}
END
    mkdir nccl
    compile -shared -fPIC -Wl,-soname,libnccl.so.2 "$stub/stub.c" -o nccl/libnccl.so.2
    ln -s libnccl.so.2 nccl/libnccl.so
    export PK_NCCL_START=1 PK_REPORT_PATH=-
    local with=(-I"$stub" train.c) nccl=(-L"$folder/nccl" -lnccl -Wl,-rpath,"$folder/nccl")
    found() { grep 'ncclCommInitRank  *comm  *1 ' "$1" || { cat "$1"; return 1; }; }
    if [ -e "$root/$libdir/libpk_nccl.so" ]; then
        compile "${with[@]}" -o plain "${nccl[@]}"
        LD_PRELOAD=$root/$libdir/libpk_nccl.so ./plain 2>preloaded
        found preloaded
        compile "${with[@]}" -o linked $(pkg-config --cflags --libs pk_nccl) "${nccl[@]}" -Wl,-rpath,"$root/$libdir"
        ./linked 2>shared
        found shared
        rm -f "$root/$libdir"/libpk*.so*
    fi
    compile "${with[@]}" -o whole $(pkg-config --static --cflags --libs pk_nccl) "${nccl[@]}"
    ./whole 2>static
    found static
}

# Debian's packages, unpacked into a folder, used like any installed tree.
run_deb()
{
    have dpkg-buildpackage; have dh
    . "$source/tests/kit/debian.sh"
    CC=$(as_built compiler) "$source/package/deb.sh" debs $(as_built options) >log 2>&1 || { tail -n 40 log; return 1; }
    local deb
    for deb in debs/*.deb; do
        dpkg-deb -x "$deb" unpacked
        dpkg-deb --showformat='${Package} ${Version}: ${Depends}\n' -W "$deb"
        [[ $(dpkg-deb -f "$deb" Version) = "$version"-* ]]
    done
    use "$folder/unpacked/usr" "lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)"
    "$root/bin/pk" --version
    local file
    for file in man/man1/pk.1.gz man/man1/pk-report.1.gz man/man7/perfkit.7.gz fish/vendor_completions.d/pk.fish \
                bash-completion/completions/pk zsh/vendor-completions/_pk doc/libpk-dev/guide.md.gz; do
        [ -s "$root/share/$file" ] || { echo "no package has share/$file"; return 1; }
    done
    LD_LIBRARY_PATH=$root/$libdir PYTHONPATH=$root/lib/python3/dist-packages python3 -B - <<'END'
import pk
pk.start(backends="none")
with pk.region("work"):
    pass
pk.stop()
assert pk.counts().recorded == 1
END
    for file in shared attach cmake static; do "run_$file"; done # the others are of what is installed from the build
}

# With musl's C library: no zlib and jansson there, and so no pk. Debian has the kernel's headers elsewhere. CUDA's are not
# even on the path, as on most machines: what includes them all the same does not compile.
run_musl()
{
    have musl-gcc
    local part kernel=$build/tests/install/kernel cache=
    mkdir -p "$kernel" # always the same place: what is in a compiler's cache is known by its options
    for part in linux asm-generic; do ln -sfn "/usr/include/$part" "$kernel/$part"; done
    ln -sfn "/usr/include/$(${CC:-cc} -print-multiarch)/asm" "$kernel/asm"
    ! command -v ccache >/dev/null || cache="ccache "
    export CC="${cache}musl-gcc -isystem $kernel"
    mkdir -p none
    meson setup made "$source" --buildtype=plain --prefix="$folder/musl" --libdir=lib -Dwerror=true -Dtests=false \
        -Dexamples=false -Dbench=false -Dmpi=disabled -Dzlib=disabled -Dtools=false -Dcuda=disabled \
        -Dcupti=disabled -Dnvtx=disabled -Dinclude_cuda="$folder/none" >log 2>&1 || { cat log; return 1; }
    ninja -C made install >log 2>&1 || { cat log; return 1; }
    use "$folder/musl" lib
    run_headers
    run_shared
    run_bench
    run_static
    part=$(pkg-config --static --cflags --libs pk)
    compile -static "$here/consumer.c" -o whole $part
    ./whole
    compile -D_GNU_SOURCE "$source/examples/steps.c" -o steps $part
    ./steps 2>report
    grep 'step time' report
}

"run_$case"
