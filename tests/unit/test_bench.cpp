// pk/bench.h in C++: macros, barriers for every kind of value, one function by pk_bench.
#include <pk/bench.h>
#include <pk/pk.hpp>

#include "bench/drive.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace
{

struct big {
    double values[32];
};

PK_BENCH(numbers)
{
    auto n = static_cast<std::size_t>(pk_bench_arg(bench, 0));
    std::vector<double> x(n, 1.5);
    double sum = 0;
    PK_BENCH_LOOP {
        for (double value : x)
            sum += value;
        pk_keep(sum);
    }
    pk_bench_set_work(bench, 0, 0, n);
}
PK_BENCH_RANGE(numbers, "n", 4, 16, 2)
PK_BENCH_OPTIONS(numbers)
{
    options->max_samples = 5;
    options->iterations = 3;
}

PK_BENCH(values)
{
    big large = {};
    std::string text = "text";
    std::unique_ptr<int> owned(new int(3));
    PK_BENCH_LOOP {
        pk_keep(large);
        pk_keep(text);
        pk_keep(owned);
        pk_keep(1.5f);
        pk_keep(true);
        pk_keep("literal");
        pk_clobber();
    }
}
PK_BENCH_OPTIONS(values)
{
    options->max_samples = 5;
    options->iterations = 3;
}

int failures;

void check(bool fine, const char *what)
{
    if (!fine) {
        std::printf("failed: %s\n", what);
        failures++;
    }
}

void call(void *arg)
{
    ++*static_cast<unsigned *>(arg);
}

} // namespace

int main()
{
    unsigned calls = 0;
    pk_bench_options options = {};
    options.size = sizeof options;
    options.iterations = 10;
    options.max_samples = 4;
    pk_bench_result result = {};
    result.size = sizeof result;
    check(pk_bench("call", call, &calls, &options, &result) == PK_OK, "pk_bench");
    check(result.count == 4 && calls == 40 + result.warmup_iterations, "calls");
    pk_bench_result_release(&result);

    check(pk_bench_instance_count_() == 4, "registered");
    check(std::string(pk_bench_instance_name_(2)) == "numbers/n:16", "names");
    char program[] = "program", quiet[] = "--quiet", warm[] = "--max-warmup=1ms";
    char *argv[] = {program, quiet, warm, nullptr};
    check(pk_bench_main(3, argv) == 0, "pk_bench_main");
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
