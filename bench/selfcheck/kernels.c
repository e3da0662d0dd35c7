/* kernels.c - what the self-check compares: an arithmetic kernel of about 50 ns and a memory-bound
 * one of about 50 us, truly slower by -DSLOWER=0.02.
 *
 * The slow-down is more of the same work: links of a chain, lines of a buffer. 200 links and 25000
 * lines, so that 2 % and 5 % are whole numbers of both.
 */
#include <pk/bench.h>

#include <stdlib.h>
#include <string.h>

#ifndef SLOWER
#define SLOWER 0
#endif

#define MORE(n) ((n) + (int)((n) * (double)(SLOWER) + 0.5))

/* ---- arithmetic: each addition waits for the one before it, a cycle ---- */

#define LINKS MORE(200)

PK_BENCH(arithmetic)
{
    uint64_t x = 88172645463325252u;
    PK_BENCH_LOOP {
        /* Unrolled whole: no loop's end is predicted right or wrong. */
#pragma GCC unroll 256
        for (int i = 0; i < LINKS; i++) {
            x += 0x9E3779B97F4A7C15u;
            __asm__ volatile("" : "+r"(x)); /* two links do not become one */
        }
        pk_keep(x);
    }
}

/* ---- memory: a walk over lines of a buffer that the second-level cache does not hold ---- */

#define LINE ((size_t)64)
#define ROOM ((size_t)8 << 20)
#define LINES MORE(25000)

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
    static size_t at;
    PK_BENCH_LOOP {
        uint64_t sum = 0;
        for (int i = 0; i < LINES; i++) {
            sum += room[at];
            at = (at + LINE) % ROOM;
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
