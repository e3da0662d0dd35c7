// Google Benchmark's own file, to hold ours against.
#include <benchmark/benchmark.h>

static void nothing(benchmark::State &state)
{
    for (auto turn : state)
        benchmark::DoNotOptimize(turn);
    state.SetBytesProcessed(state.iterations());
}
BENCHMARK(nothing);

BENCHMARK_MAIN();
