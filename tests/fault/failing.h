/* failing.h - makes one call of one library function fail: the n-th that is come to by one way.
 *
 * failing.c stands in front of each function in FAILING_FUNCTIONS (linked with --wrap): calls pass
 * through to the real one, but for the one that is armed. How the threads of a session take turns
 * changes which call is the n-th of all, but not who makes it.
 */
#ifndef TESTS_FAILING_H
#define TESTS_FAILING_H

#include "../unit/ways.h"

typedef enum failing_way {
    FAILING_ERROR, /* the call fails with this errno */
    FAILING_SHORT  /* a write takes only part of it */
} failing_way;

/* The way->times-th call of that function that comes by way->name, from now on, counted from 1. A
 * way of NULL: none fails, and failing_ways has how each was come to. A function of NULL: none, and
 * what has been hit stays so. */
void failing_arm(const char *function, const way *which, failing_way how, int error);

/* Shared with a child, which fills it. */
extern ways *failing_ways;

/* Has it been made? */
bool failing_hit(void);

#endif
