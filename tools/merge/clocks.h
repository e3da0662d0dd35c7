/* tools/merge/clocks.h - the clocks that traces were written by, on one axis.
 *
 * A node has one clock, CLOCK_MONOTONIC from its start on: its files are put side by side as they
 * are. How far two nodes' clocks are apart is bounded from two sides by everything that one rank
 * did before another could go on: messages and collectives of the program's, and those that
 * libpk_mpi measures by. Bounds are hard; nothing is taken for symmetric, and a clock that no
 * straight line through its bounds fits is said to be broken.
 */
#pragma once

#include "merge/operations.h"
#include "merge/source.h"

typedef enum clock_method {
    CLOCK_SAME,     /* the clock of the axis itself */
    CLOCK_BOUNDED,  /* by bounds from both sides */
    CLOCK_REAL_TIME /* as the nodes' real times say: nothing bounds how wrong those are */
} clock_method;

/* At a moment of its own, what has to be added to get the time of the axis. */
typedef struct clock_knot {
    uint64_t at;
    int64_t offset, doubt; /* doubt: half the interval that the truth is in */
} clock_knot;

#define CLOCK_KNOTS 65

typedef struct merge_clock {
    const char *name, *host;
    uint64_t first, last; /* ns of this clock, over its files */
    int64_t real_offset;  /* real time minus this clock */
    clock_method method;
    bool broken;     /* its bounds contradict each other */
    uint64_t bounds; /* how many there were */
    clock_knot knots[CLOCK_KNOTS];
    uint32_t count; /* of knots: at least one */
} merge_clock;

typedef struct merge_clocks {
    merge_clock *all;
    size_t count;
    uint64_t origin; /* of the axis: this moment of the first clock is 0 */
    uint64_t origin_unix;
} merge_clocks;

/* Gives each source its clock; the axis is that of the first source's, from the first moment of
 * any of them on. By real time, until clocks_fit. */
void clocks_make(merge_clocks *c, merge_sources *s);

/* By what ranks did together; files have been read once, and their ends are known. */
bool clocks_fit(merge_clocks *c, const merge_sources *s, operations *o, complaint *why);
void clocks_free(merge_clocks *c);

/* A moment of a file, ns, on the axis. Never runs backwards. */
uint64_t clocks_axis(const merge_clocks *c, const merge_source *s, uint64_t ns);

/* The largest doubt of this clock; negative: not known. */
int64_t clock_doubt(const merge_clock *c);

/* How fast it drifts away from the first one, parts per million. */
double clock_drift(const merge_clock *c);
