/* kernels.c - what the self-check compares: an arithmetic kernel of about 50 ns and a memory-bound one
 * of about 50 us, truly slower by -DSLOWER=0.02.
 *
 * The slow-down is more of the same work: links of a chain, lines of a buffer. 50 links and 40000
 * lines, so that 2 % and 5 % are whole numbers of both.
 */
#include <pk/bench.h>

#include <stdlib.h>
#include <string.h>

#ifndef SLOWER
#define SLOWER 0
#endif

#define MORE(n) ((n) + (int)((n) * (double)(SLOWER) + 0.5))

/* ---- arithmetic: each multiplication waits for the one before it ---- */

#define LINKS MORE(50)

PK_BENCH(arithmetic)
{
    uint64_t x = 88172645463325252u;
    PK_BENCH_LOOP
    {
        /* Unrolled whole: no loop's end is predicted right or wrong. */
#pragma GCC unroll 64
        for (int i = 0; i < LINKS; i++) {
            x *= 0x9E3779B97F4A7C15u;
            __asm__ volatile("" : "+r"(x)); /* two links do not become one */
        }
        pk_keep(x);
    }
}

/* ---- memory: a walk over lines in an order that no prefetcher knows ---- */

#define LINE 64
#define ROOM (8 << 20)
#define LINES MORE(MEMORY_LINES)
#ifndef MEMORY_LINES
#define MEMORY_LINES 40000
#endif

static unsigned char *room;

static int set_up(void *user)
{
    (void)user;
    room = malloc(ROOM);
    if (!room)
        return 1;
    memset(room, 1, ROOM);
    return 0;
}

static void tear_down(void *user)
{
    (void)user;
    free(room);
    room = NULL;
}

PK_BENCH(memory)
{
    PK_BENCH_LOOP
    {
        uint64_t at = 1, sum = 0;
        for (int i = 0; i < LINES; i++) {
            at = at * 6364136223846793005u + 1442695040888963407u;
            sum += room[(at >> 40) % (ROOM / LINE) * LINE];
        }
        pk_keep(sum);
    }
}

PK_BENCH_OPTIONS(memory)
{
    options->setup = set_up;
    options->teardown = tear_down;
}

PK_BENCH_MAIN
