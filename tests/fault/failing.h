/* failing.h - makes the n-th call of one library function fail.
 *
 * failing.c stands in front of each function in FAILING_FUNCTIONS (linked with --wrap): calls pass
 * through to the real one, but for the one that is armed.
 */
#ifndef TESTS_FAILING_H
#define TESTS_FAILING_H

#include <stdbool.h>

typedef enum failing_way {
    FAILING_ERROR, /* the call fails with this errno */
    FAILING_SHORT  /* a write takes only part of it */
} failing_way;

/* The n-th call of that function from now on, counted from 1. NULL: none, and what has
 * been hit stays so. */
void failing_arm(const char *function, unsigned n, failing_way way, int error);

/* Has it been made? */
bool failing_hit(void);

#endif
