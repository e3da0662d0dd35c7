/* bench/alloc_pairs.c - what libpk_alloc adds to a malloc and its free.
 *
 *     LD_PRELOAD=libpk_alloc.so alloc_pairs [SIZE...]; alloc_pairs [SIZE...]
 *
 * Within an open region of a session; the best of 300 short rounds, for some sizes, and blocks
 * freed at once or in rows of 64. With an allocator behind it in LD_PRELOAD, and with that one
 * alone, it is on that. Sizes 8 larger, alone, tell what the tag's room costs in the allocator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <pk/pk.h>

#define ROUNDS 300
#define ROW 64

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void keep(void *p)
{
    __asm__ volatile("" : : "g"(p) : "memory");
}

static void in_rows(size_t size, int row, int pairs)
{
    void *blocks[ROW];
    for (int i = 0; i < pairs; i += row) {
        for (int k = 0; k < row; k++)
            keep(blocks[k] = malloc(size));
        for (int k = 0; k < row; k++)
            free(blocks[k]);
    }
}

static double best(size_t size, int row)
{
    const int pairs = size > 2000 ? 1280 : 12800;
    double least = 1e30;
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now();
        in_rows(size, row, pairs);
        double each = (now() - begin) / pairs;
        least = each < least ? each : least;
    }
    return least;
}

static void measure(size_t size)
{
    printf("%zu %.2f %.2f\n", size, best(size, 1), best(size, ROW));
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {16, 64, 256, 1024, 4096, 65536};
    pk_region *region = pk_region_named("alloc");
    pk_start(pk_options(.report_path = NULL));
    pk_region_begin(region);
    for (int i = 1; i < argc; i++)
        measure((size_t)strtoull(argv[i], NULL, 10));
    for (size_t i = 0; argc < 2 && i < sizeof sizes / sizeof *sizes; i++)
        measure(sizes[i]);
    pk_region_end(region);
    pk_stop();
    return 0;
}
