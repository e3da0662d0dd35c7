# bench.sh - libpkbench as it is installed; a part of run.sh.

measures() # PROGRAM
{
    "$@" --max-samples 5 --max-warmup 1ms --csv - | grep '^"add",0,1,5,'
}

# Benchmarks are linked with libpkbench and libpk, a traced program with libpk alone.
run_bench()
{
    have pkg-config
    local how static
    none '<pk/bench' "$root/include/pk/pk.h"
    none pkbench "$root/$libdir/pkgconfig/pk.pc"
    nm "$root/$libdir/libpk.a" 2>/dev/null | none 'pki*_bench'
    if [ -e "$root/$libdir/libpkbench.so" ]; then
        compile "$here/bench.c" -o bench-shared $(pkg-config --cflags --libs pk-bench)
        readelf -d bench-shared | grep 'NEEDED.*libpkbench\.so\.'
        LD_LIBRARY_PATH=$root/$libdir measures ./bench-shared
        compile "$here/consumer.c" -o traced $(pkg-config --cflags --libs pk)
        readelf -d traced "$root/$libdir/libpk.so" | none 'NEEDED.*libpkbench'
        rm -f "$root/$libdir"/libpk*.so*
    fi
    static=$(pkg-config --static --cflags --libs pk-bench)
    for how in '' '-static' '-O2 -flto' '-O2 -Wl,--gc-sections -s'; do
        echo "$how"
        compile $how "$here/bench.c" -o bench-static $static 2>warnings || { cat warnings; return 1; }
        measures ./bench-static
    done
}
