/* bench_one.c - one function measured from anywhere, and what is known about the figure.
 *
 *     cc -O2 bench_one.c $(pkg-config --cflags --libs pk) -o bench_one && ./bench_one
 */
#include <pk/bench.h>
#include <stdio.h>
#include <stdlib.h>

/* One iteration. */
static void parse(void *text)
{
    pk_keep(strtod(text, NULL));
}

int main(void)
{
    char text[] = "2.718281828459045";
    pk_bench_result r = PK_BENCH_RESULT;
    pk_status status = pk_bench("strtod", parse, text, pk_bench_options(.precision = 0.005), &r);
    if (status != PK_OK) {
        fprintf(stderr, "perfkit: %s\n", pk_error_message());
        return 1;
    }
    fprintf(stderr, "strtod: %.1f ns (%.1f .. %.1f), p99 %.1f ns, %zu samples of %llu calls\n",
            r.median, r.low, r.high, r.p99, (size_t)r.count, (unsigned long long)r.iterations);
    fprintf(stderr, "%s\n", r.verdict_text);
    pk_bench_result_release(&r);
    return 0;
}
