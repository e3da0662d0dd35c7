/* bench/alloc_pairs.c - what libpk_alloc adds to a malloc and its free.
 *
 *     LD_PRELOAD=libpk_alloc.so alloc_pairs; alloc_pairs
 *
 * Within an open region of a session; the best of 300 short rounds, for some sizes, and blocks
 * freed at once or in rows of 64. bench/alloc.sh runs both in turns, and on other allocators.
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

int main(void)
{
    static const size_t sizes[] = {16, 64, 256, 1024, 4096, 65536};
    pk_region *region = pk_region_named("alloc");
    pk_start(pk_options(.report_path = NULL));
    pk_region_begin(region);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        printf("%zu %.2f %.2f\n", sizes[i], best(sizes[i], 1), best(sizes[i], ROW));
    pk_region_end(region);
    pk_stop();
    return 0;
}
