# mpi.sh - libpk_mpi as it is installed; a part of run.sh.

# One rank, which is started without mpiexec, for each MPI that is here, and for the default one by the plain name.
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
    local mpi mpis=()
    for mpi in openmpi mpich; do
        [ ! -e "$root/$libdir/pkgconfig/pk-mpi-$mpi.pc" ] || mpis+=("$mpi")
    done
    echo "installed for: ${mpis[*]}"
    if [ -e "$root/$libdir/libpk_mpi.so" ]; then
        mpi_shared mpicc pk_mpi libpk_mpi.so
        for mpi in "${mpis[@]}"; do mpi_shared "mpicc.$mpi" "pk-mpi-$mpi" "libpk_mpi-$mpi.so"; done
        if [ ${#mpis[@]} -gt 1 ]; then # each preloaded for the other
            mpicc.openmpi ring.c -o plain && LD_PRELOAD=$root/$libdir/libpk_mpi-mpich.so ./plain 2>said
            grep 'this libpk_mpi is for MPICH' said
            mpicc.mpich ring.c -o plain && LD_PRELOAD=$root/$libdir/libpk_mpi-openmpi.so ./plain 2>said
            grep 'this libpk_mpi is for Open MPI' said
        fi
        rm -f "$root/$libdir"/libpk*.so*
    fi
    mpi_static mpicc pk_mpi
    for mpi in "${mpis[@]}"; do mpi_static "mpicc.$mpi" "pk-mpi-$mpi"; done
}

# mpi_shared MPICC PACKAGE LIBRARY
mpi_shared()
{
    "$1" ring.c -o plain
    LD_PRELOAD=$root/$libdir/$3 ./plain 2>preloaded
    found preloaded
    "$1" ring.c -o linked $(pkg-config --cflags --libs "$2") -Wl,-rpath,"$root/$libdir"
    ./linked 2>shared || { cat shared; return 1; }
    found shared
}

# mpi_static MPICC PACKAGE
mpi_static()
{
    "$1" ring.c -o whole $(pkg-config --static --cflags --libs "$2")
    ./whole 2>static || { cat static; return 1; }
    found static
}
