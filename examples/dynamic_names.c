/* dynamic_names.c - regions whose names are known only at run time, and variants: one distribution
 * per value of a parameter.
 *
 *     cc dynamic_names.c $(pkg-config --cflags --libs pk) -o dynamic_names && ./dynamic_names
 */
#include <inttypes.h>
#include <pk/pk.h>
#include <stdio.h>

enum { SIZES = 4, CALLS = 50 };

static pk_region dot = PK_REGION_OF(PK_COMPUTE, "dot");
static const size_t sizes[SIZES] = {64, 256, 1024, 4096};
static double a[4096], b[4096];
static volatile double sink = 0.5; /* what the compiler must not work out beforehand */

static void multiply(size_t size)
{
    double sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += a[i] * b[i];
    sink = sum;
}

/* A mean over sizes that differ would say nothing. A variant is a region of its own,
 * "dot[size=256]", and the work that it did gives a throughput that can be compared. */
static void measure_sizes(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        pk_region *variant = pk_region_variant(&dot, "size", (int64_t)sizes[i]); /* look up once */
        for (int call = 0; call < CALLS; call++) {
            pk_region_begin(variant);
            multiply(sizes[i]);
            pk_region_add(variant, 2 * sizes[i] * sizeof(double), 2 * sizes[i]);
            pk_region_end(variant);
        }
    }
}

/* As an interpreter or a plug-in host would: the name is copied, and the same name is the same
 * region. */
static void run_script(const char *const *commands, size_t count)
{
    char name[64];
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "command %s", commands[i]);
        pk_region *command = pk_region_named(name);
        pk_region_begin(command);
        multiply(sizes[i % SIZES]);
        pk_region_end(command);
        pk_counter_set(pk_counter_named("commands done", NULL), (double)(i + 1));
    }
}

static uint64_t print_calls(const pk_region *region)
{
    pk_stats stats;
    pk_region_stats(region, &stats);
    printf("%-16s %4" PRIu64 " calls, p50 %6" PRIu64 " ns\n", region->name, stats.count,
           pk_stats_quantile(&stats, 0.5));
    return stats.count;
}

int main(void)
{
    static const char *const script[] = {"open", "scale", "open", "scale", "scale", "close"};
    uint64_t calls = 0;
    if (pk_start(pk_options(.trace_path = "dynamic_names.json", .report_path = "-")) != PK_OK)
        fprintf(stderr, "perfkit: %s\n", pk_error_message());
    for (size_t i = 0; i < 4096; i++)
        a[i] = b[i] = sink;
    measure_sizes();
    run_script(script, sizeof(script) / sizeof(*script));
    pk_stop();

    for (size_t i = 0; i < SIZES; i++)
        calls += print_calls(pk_region_variant(&dot, "size", (int64_t)sizes[i]));
    uint64_t scales = print_calls(pk_region_named("command scale"));
    printf("%" PRIu64 " calls of all sizes, %" PRIu64 " of scale\n", calls, scales);
    return 0;
}
