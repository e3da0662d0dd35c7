/* bench/alloc_pairs.c - what libpk_alloc adds to a malloc and its free.
 *
 *     LD_PRELOAD="libpk_alloc.so [libjemalloc.so.2]" alloc_pairs [ROUNDS]
 *
 * Within an open region of a session, in one process: rounds by the allocator beneath and by
 * libpk_alloc in alternation, in CPU time of the threads. Printed are ns of a pair: the medians of
 * both, the median of the difference of two rounds that follow each other, and how far apart the
 * least of both are, which is what a busy machine disturbs least. Without libpk_alloc there is
 * nothing to compare with, and the first column alone.
 *
 * at once: each block is freed before the next one is asked for. Rows of 64 blocks: the last one is
 * freed first, the first one first, or in any order; "mixed" sizes are from 16 to 65536 bytes, as
 * many of each octave. Handed over: another thread frees them.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pk/pk.h>

#include "alloc/interface.h"

#define ROUNDS_MOST 2001
#define ROW 64
#define MIXED 4096 /* sizes, in turn */

typedef struct way {
    void *(*malloc)(size_t);
    void (*free)(void *);
} way;

typedef enum how { AT_ONCE, LAST_FIRST, FIRST_FIRST, ANY, HANDED } how;

static const char *const names[] = {"at once", "last first", "first first", "any order",
                                    "handed over"};
static size_t sizes[MIXED];
static uint8_t order[MIXED];
static uint32_t seed = 1;

static uint32_t draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void keep(void *p)
{
    __asm__ volatile("" : : "g"(p) : "memory");
}

/* ---- what is asked for ---- */

static void set_sizes(size_t size)
{
    for (int i = 0; i < MIXED; i++) {
        size_t octave = (size_t)16 << draw() % 12;
        sizes[i] = size ? size : octave + draw() % octave;
    }
}

static void set_order(how h)
{
    for (int i = 0; i < MIXED; i++)
        order[i] = (uint8_t)(h == LAST_FIRST ? ROW - 1 - i % ROW : i % ROW);
    for (int i = 0; h == ANY && i < MIXED; i += ROW)
        for (uint32_t k = ROW - 1; k > 0; k--) {
            uint32_t with = draw() % (k + 1);
            uint8_t kept = order[i + (int)k];
            order[i + (int)k] = order[i + (int)with];
            order[i + (int)with] = kept;
        }
}

/* ---- one round ---- */

static void at_once(const way *w, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        void *block = w->malloc(sizes[i % MIXED]);
        keep(block);
        w->free(block);
    }
}

static void in_rows(const way *w, int pairs)
{
    void *blocks[ROW];
    for (int i = 0; i < pairs; i += ROW) {
        int at = i % MIXED;
        for (int k = 0; k < ROW; k++)
            keep(blocks[k] = w->malloc(sizes[at + k]));
        for (int k = 0; k < ROW; k++)
            w->free(blocks[order[at + k]]);
    }
}

typedef struct hand {
    const way *w;
    void **blocks;
    int pairs;
    double ns;
} hand;

static void *free_handed(void *of)
{
    hand *h = of;
    h->w->free(h->w->malloc(100)); /* a thread's first ones are not measured */
    double begin = cpu_ns();
    for (int i = 0; i < h->pairs; i++)
        h->w->free(h->blocks[i]);
    h->ns = cpu_ns() - begin;
    return NULL;
}

static double handed(const way *w, int pairs)
{
    static void *blocks[1280];
    pthread_t thread;
    double begin = cpu_ns();
    for (int i = 0; i < pairs; i++)
        keep(blocks[i] = w->malloc(sizes[i % MIXED]));
    hand h = {w, blocks, pairs, cpu_ns() - begin};
    double ns = h.ns;
    if (pthread_create(&thread, NULL, free_handed, &h) != 0)
        return 0;
    pthread_join(thread, NULL);
    return ns + h.ns;
}

static double measure_round(const way *w, how h, int pairs)
{
    if (h == HANDED)
        return handed(w, pairs) / pairs;
    double begin = cpu_ns();
    if (h == AT_ONCE)
        at_once(w, pairs);
    else
        in_rows(w, pairs);
    return (cpu_ns() - begin) / pairs;
}

/* ---- rounds in alternation ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sorted_at(double *of, int rounds, double share)
{
    qsort(of, (size_t)rounds, sizeof *of, by_value);
    return of[(int)((double)(rounds - 1) * share)];
}

static void measure(const way ways[2], how h, size_t size, int rounds)
{
    static double ns[2][ROUNDS_MOST], more[ROUNDS_MOST];
    const int pairs = h == HANDED || size > 2000 ? 1280 : 12800;
    set_sizes(size);
    set_order(h);
    for (int i = -2; i < rounds; i++) /* two that do not count */
        for (int k = 0; k < 2; k++) {
            double each = ways[k].malloc ? measure_round(&ways[k], h, pairs) : 0;
            if (i >= 0)
                ns[k][i] = each;
        }
    for (int i = 0; i < rounds; i++)
        more[i] = ns[1][i] - ns[0][i];
    char what[16];
    snprintf(what, sizeof what, size ? "%zu" : "mixed", size);
    printf("%-12s %6s %8.2f", names[h], what, sorted_at(ns[0], rounds, 0.5));
    if (ways[1].malloc) {
        double with = sorted_at(ns[1], rounds, 0.5);
        printf(" %8.2f %8.2f %8.2f", with, sorted_at(more, rounds, 0.5), ns[1][0] - ns[0][0]);
    }
    printf("\n");
    fflush(stdout);
}

/* ---- the two ---- */

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

/* Beneath, and in front of it; the second is empty without libpk_alloc. */
static bool find_ways(way ways[2])
{
    const pki_alloc_interface *alloc = dlsym(RTLD_DEFAULT, PKI_ALLOC_SYMBOL);
    const char *why, *file = alloc ? alloc->beneath(&why) : NULL;
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_NOLOAD) : RTLD_DEFAULT;
    ways[1] = (way){0};
    if (alloc && (!file || !library))
        return false;
    find(library, "malloc", &ways[0].malloc);
    find(library, "free", &ways[0].free);
    if (alloc) {
        find(RTLD_DEFAULT, "malloc", &ways[1].malloc);
        find(RTLD_DEFAULT, "free", &ways[1].free);
    }
    printf("# on %s\n", file ? file : "whatever there is");
    return ways[0].malloc && ways[0].free;
}

int main(int argc, char **argv)
{
    static const size_t each[] = {16, 64, 256, 1016, 1024, 4096, 16384, 65536, 0};
    int asked = argc > 1 ? atoi(argv[1]) : 101;
    int rounds = asked < 1 ? 1 : asked > ROUNDS_MOST ? ROUNDS_MOST : asked;
    pk_region *region = pk_region_named("alloc");
    way ways[2];
    if (!find_ways(ways))
        return 1;
    pk_start(pk_options(.report_path = NULL));
    pk_region_begin(region);
    printf("%-12s %6s %8s %8s %8s %8s\n", "", "bytes", "beneath", "with", "more", "least");
    for (how h = AT_ONCE; h <= HANDED; h++)
        for (size_t i = 0; i < sizeof each / sizeof *each; i++)
            measure(ways, h, each[i], rounds);
    pk_region_end(region);
    pk_stop();
    return 0;
}
