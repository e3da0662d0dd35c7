# What each page takes for granted: run in its folder before its first block. PAGE, SOURCE, BUILD: run.py.
case $PAGE in
docs/gpu.md | docs/nccl.md)
    cc "$SOURCE/examples/steps.c" -o train $(pkg-config --cflags --libs pk)
    ;;
docs/run.md)
    [ -z "$(command -v mpicc)" ] || mpicc "$SOURCE/tests/docs/given/solver.c" -o solver
    ;;
docs/guide.md)
    [ -z "$(command -v mpicc)" ] || mpicc "$SOURCE/tests/docs/given/solver.c" -o solver
    [ -z "$(command -v mpicc)" ] || mpicc "$SOURCE/tests/docs/given/trainer.c" $(pkg-config --cflags --libs pk) -o trainer
    ;;
docs/install.md)
    "$SOURCE/package/copy.sh" "$SOURCE" perfkit
    mkdir -p perfkit/as/deep/as && ln -s as/deep/as perfkit/build # as $BUILD: tests/kit/as_built.py
    [ ! -e "$SOURCE/build/charts" ] || cp -r "$SOURCE/build/charts" perfkit/build/
    ;;
docs/internals/bench.md)
    bench_sum --max-samples 20 --max-warmup 1ms --json bench.json
    ;;
docs/internals/report-format.md)
    cc "$SOURCE/examples/steps.c" -o steps $(pkg-config --cflags --libs pk)
    ./steps 2>/dev/null
    pk report --json steps.json >run.report.json
    ;;
docs/job.md)
    mkdir job
    "$BUILD/tests/tools/tools-job_files" job ranks=8 culprits=1 slow=0.08 per_host=4 regions=3 calls=50 > /dev/null
    mkdir before
    "$BUILD/tests/tools/tools-job_files" before ranks=8 seed=9 per_host=4 regions=3 calls=50 > /dev/null
    ;;
docs/mpi.md)
    cp "$SOURCE/tests/docs/given/solver.c" .
    ;;
docs/query.md)
    # Four ranks of a run, the third one slow, by perfkit's own formatter; and one rank's report.
    for rank in 0 1 2 3; do "$BUILD/tests/tools/tools-run_trace" rank$rank.json $rank 4 60; done
    cp rank0.json run.json
    pk report --json rank0.json >report.json
    ;;
examples/README.md)
    cp "$SOURCE"/examples/*.c .
    ln -s "$BUILD" build
    ;;
esac
