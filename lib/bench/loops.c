/* The loops that the harness measures itself by, each at several places: overhead.h. */
#include "bench/overhead.h"

#include <pk/bench.h>

/* So many bytes behind the begin of a cache line, and of what a processor fetches at once. */
#if defined(__x86_64__) || defined(__i386__)
#define NOP_BYTES "1"
#else
#define NOP_BYTES "4"
#endif
#define PLACE(bytes)                                                                               \
    __asm__ volatile(".p2align 6\n\t.rept " #bytes "/" NOP_BYTES "\n\tnop\n\t.endr");

#define TIMES(n) PK_BENCH_UNROLLED_ for (uint64_t left = (n); left; left--)

/* A link of the chain: the compiler has to go through the register. */
#define LINK(x)                                                                                    \
    x *= 3;                                                                                        \
    __asm__ volatile("" : "+r"(x));
#define CHAIN(x) LINK(x) LINK(x) LINK(x) LINK(x)
#define CHAINS(x) CHAIN(x) CHAIN(x) CHAIN(x) CHAIN(x)
#define MANY 16 /* chains in a row, so that the loop around them is next to nothing */

static uint64_t chain_state = 1;

/* Stands where the compiler cannot see what is called. */
static void (*volatile called)(void *);
static uint64_t in_memory = 1;

static void nothing(void *arg)
{
    (void)arg;
    __asm__ volatile("");
}

static void chain(void *arg)
{
    uint64_t *x = arg, y = *x;
    CHAIN(y)
    *x = y;
}

#define LOOPS_AT(place)                                                                            \
    static void loop_empty_##place(uint64_t turns)                                                 \
    {                                                                                              \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        __asm__ volatile("");                                                                      \
    }                                                                                              \
    static void loop_chain_##place(uint64_t turns)                                                 \
    {                                                                                              \
        uint64_t x = chain_state;                                                                  \
        PLACE(place)                                                                               \
        TIMES(turns){CHAIN(x)} chain_state = x;                                                    \
    }                                                                                              \
    static void chain_##place(uint64_t turns)                                                      \
    {                                                                                              \
        uint64_t x = chain_state;                                                                  \
        PLACE(place)                                                                               \
        for (uint64_t left = turns / MANY; left; left--) {                                         \
            CHAINS(x) CHAINS(x) CHAINS(x) CHAINS(x)                                                \
        }                                                                                          \
        chain_state = x;                                                                           \
    }                                                                                              \
    static void call_##place(uint64_t turns, void (*function)(void *))                             \
    {                                                                                              \
        called = function;                                                                         \
        void (*fn)(void *) = called;                                                               \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        fn(&in_memory);                                                                            \
    }                                                                                              \
    static void call_empty_##place(uint64_t turns)                                                 \
    {                                                                                              \
        call_##place(turns, nothing);                                                              \
    }                                                                                              \
    static void call_chain_##place(uint64_t turns)                                                 \
    {                                                                                              \
        call_##place(turns, chain);                                                                \
    }                                                                                              \
    static void chain_in_memory_##place(uint64_t turns)                                            \
    {                                                                                              \
        volatile uint64_t *x = &in_memory;                                                         \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        {                                                                                          \
            uint64_t y = *x;                                                                       \
            CHAIN(y)                                                                               \
            *x = y;                                                                                \
        }                                                                                          \
    }

LOOPS_AT(0)
LOOPS_AT(16)
LOOPS_AT(32)
LOOPS_AT(48)

#define PLACES(name)                                                                               \
    {                                                                                              \
        name##_0, name##_16, name##_32, name##_48                                                  \
    }

const pki_bench_loops pki_bench_own_loops = {
    .run = {[PKI_BENCH_LOOP_EMPTY] = PLACES(loop_empty),
            [PKI_BENCH_LOOP_CHAIN] = PLACES(loop_chain),
            [PKI_BENCH_CHAIN] = PLACES(chain),
            [PKI_BENCH_CALL_EMPTY] = PLACES(call_empty),
            [PKI_BENCH_CALL_CHAIN] = PLACES(call_chain),
            [PKI_BENCH_CHAIN_IN_MEMORY] = PLACES(chain_in_memory)},
};
