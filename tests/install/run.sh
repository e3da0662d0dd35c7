#!/bin/bash
# run.sh CASE SOURCE BUILD PREFIX LIBDIR - installs the build into an empty folder and is its user: through
# pkg-config, CMake, as a meson subproject, and from a plug-in that comes and goes.

set -eu -o pipefail
case=$1 source=$2 build=$3 prefix=$4 libdir=$5
here=$source/tests/install
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

skip() { echo "skipped: $*"; exit 77; }
have() { command -v "$1" >/dev/null || skip "$1 is not installed"; }
have_shared() { [ -e "$root/$libdir/libpk.so" ] || skip "this build has no libpk.so"; }
compile() { ${CC:-cc} -std=c11 -Wall -Werror "$@"; }

DESTDIR=$folder/to meson install -C "$build" --no-rebuild --quiet
root=$folder/to$prefix
export PKG_CONFIG_PATH=$root/$libdir/pkgconfig
unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH

run_files()
{
    diff <(cd "$source/include/pk" && ls) <(cd "$root/include/pk" && ls)
    for file in libpk.a pkgconfig/pk.pc cmake/pk/pkConfig.cmake cmake/pk/pkConfigVersion.cmake; do
        [ -s "$root/$libdir/$file" ] || { echo "$file is not installed"; return 1; }
    done
    diff <(cd "$source/docs" && ls) <(cd "$root/share/doc/perfkit" && ls)
    # Nothing of this machine may travel with it.
    ! grep -rlF -e "$source" -e "$folder" "$root/$libdir/pkgconfig" "$root/$libdir/cmake" "$root/include"
}

run_shared()
{
    have pkg-config; have_shared
    compile "$here/consumer.c" -o consumer $(pkg-config --cflags --libs pk)
    readelf -d consumer | grep 'NEEDED.*libpk\.so\.'
    LD_LIBRARY_PATH=$root/$libdir ./consumer
}

# A static program finds the shim beside the library; a shared one is its own.
run_shim()
{
    have pkg-config
    [ -e "$root/$libdir/libpkshim.so" ] || skip "this build has no NVTX"
    cat >listen.c <<'END'
#include <pk/pk.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    pk_backend_info info = {.size = sizeof info};
    pk_start(pk_options(.nvtx_consume = 1));
    pk_backend_status("nvtx", &info);
    printf("%s: %s\n", getenv("NVTX_INJECTION64_PATH"), info.reason);
    return pk_stop() || !info.live;
}
END
    export LD_LIBRARY_PATH=$root/$libdir
    if [ -e "$root/$libdir/libpk.so" ]; then
        compile -D_GNU_SOURCE listen.c -o listen $(pkg-config --cflags --libs pk)
        ./listen | grep '/libpk\.so.*: consuming the ranges of 0 users'
        rm -f "$root/$libdir"/libpk.so*
    fi
    compile -D_GNU_SOURCE listen.c -o listen-static $(pkg-config --static --cflags --libs pk)
    ./listen-static | grep '/libpkshim\.so: consuming the ranges of 0 users'
}

run_static()
{
    have pkg-config
    rm -f "$root/$libdir"/libpk.so*
    compile "$here/consumer.c" -o consumer $(pkg-config --static --cflags --libs pk)
    ./consumer
    compile -static "$here/consumer.c" -o whole $(pkg-config --static --cflags --libs pk)
    ./whole
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

run_cmake()
{
    have cmake; have_shared
    cp "$here/cmake/CMakeLists.txt" "$here/consumer.c" .
    cmake -G Ninja -S . -B made -DCMAKE_PREFIX_PATH="$root" >log 2>&1 || { cat log; return 1; }
    cmake --build made >log 2>&1 || { cat log; return 1; }
    for program in made/with-*; do $program; done
    readelf -d made/with-pk | grep 'NEEDED.*libpk\.so\.'
    ! readelf -d made/with-pk_static | grep 'NEEDED.*libpk'
}

run_subproject()
{
    mkdir -p consumer/subprojects
    ln -s "$source" consumer/subprojects/perfkit
    cp "$here/subproject/meson.build" "$here/consumer.c" consumer/
    meson setup made consumer --wrap-mode=forcefallback >log 2>&1 || { cat log; return 1; }
    meson compile -C made >log 2>&1 || { cat log; return 1; }
    for kind in static shared default; do "made/with-$kind"; done
    readelf -d made/with-shared | grep 'NEEDED.*libpk\.so\.'
    ! readelf -d made/with-static made/with-default | grep 'NEEDED.*libpk'
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

# One rank, which is started without mpiexec.
run_mpi()
{
    have pkg-config; have mpicc
    [ -e "$root/$libdir/pkgconfig/pk_mpi.pc" ] || skip "this build has no libpk_mpi"
    cat >ring.c <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    double x = 1, sum = 0;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Finalize() || sum < 1;
}
END
    export PK_MPI_START=1 PK_REPORT_PATH=- OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    found() { grep 'MPI_COMM_WORLD  *MPI  *rank 0 of 1: 10 operations' "$1" || { cat "$1"; return 1; }; }
    if [ -e "$root/$libdir/libpk_mpi.so" ]; then
        mpicc ring.c -o plain
        LD_PRELOAD=$root/$libdir/libpk_mpi.so ./plain 2>preloaded
        found preloaded
        mpicc ring.c -o linked $(pkg-config --cflags --libs pk_mpi) -Wl,-rpath,"$root/$libdir"
        ./linked 2>shared || { cat shared; return 1; }
        found shared
        rm -f "$root/$libdir"/libpk*.so*
    fi
    mpicc ring.c -o whole $(pkg-config --static --cflags --libs pk_mpi)
    ./whole 2>static || { cat static; return 1; }
    found static
}

"run_$case"
