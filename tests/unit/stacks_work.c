/* Functions whose callers are known, built with frame pointers or without; see test_stacks.c. */
#include "stacks_work.h"

volatile double WORK(sink);

__attribute__((noinline)) static double leaf(uint64_t rounds)
{
    double x =
        __builtin_frame_address(0) != 0; /* so that it has a frame, where it is to have one */
    for (uint64_t i = 0; i < rounds; i++)
        x = x * 1.0000001 + 0.3;
    return x;
}

__attribute__((noinline)) static double middle(uint64_t rounds)
{
    char room[300];
    for (unsigned i = 0; i < sizeof room; i++)
        room[i] = (char)(rounds + i);
    double x = leaf(rounds);
    return x + room[rounds % sizeof room];
}

double WORK(outer)(uint64_t rounds)
{
    double x = middle(rounds);
    WORK(sink) += x;
    return x;
}

work_function *const WORK(places)[3] = {leaf, middle, WORK(outer)};
