// google.cc - the kernels of kernels.c for Google Benchmark: what its usual verdict makes of the same question.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

static void arithmetic(benchmark::State &state)
{
    uint64_t x = 88172645463325252u;
    for (auto _ : state) {
#pragma GCC unroll 256
        for (int i = 0; i < 200; i++) {
            x += 0x9E3779B97F4A7C15u;
            __asm__ volatile("" : "+r"(x));
        }
        benchmark::DoNotOptimize(x);
    }
}
BENCHMARK(arithmetic);

static void memory(benchmark::State &state)
{
    static size_t at;
    const size_t size = (size_t)8 << 20;
    unsigned char *room = static_cast<unsigned char *>(std::malloc(size));
    std::memset(room, 1, size);
    for (auto _ : state) {
        uint64_t sum = 0;
        for (int i = 0; i < 25000; i++) {
            sum += room[at];
            at = (at + 64) % size;
        }
        benchmark::DoNotOptimize(sum);
    }
    std::free(room);
}
BENCHMARK(memory);

BENCHMARK_MAIN();
