/* fault.h - a session in which one call of one function fails, again and again in a child of its
 * own, until each way to that function has met it.
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include "failing.h"

typedef struct fault {
    const char *function;
    failing_way way;
    int error;
    bool harmless; /* nothing may be lost by it */
    const char *trace;
    bool once; /* of each way the first call alone */
    way which; /* the call; none at first, when the ways are counted */
} fault;

/* What a session does once it is ready. */
void fault_arm(const fault *f);

/* `session` arms it and checks with must() what is left; in an empty kit_folder(). */
void fault_sweep(void (*session)(const fault *f), fault f);

/* The same but for the ways in `known`, to which it adds its own. Ways have the same names in two
 * sweeps only if both are called from one line. */
void fault_sweep_on(void (*session)(const fault *f), fault f, ways *known);

#endif
