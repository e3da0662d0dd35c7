/* fault.h - a session in which one call of one function fails, again and again in a child of its
 * own, until that call is no longer made.
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
    unsigned n; /* which call it is */
} fault;

/* `session` arms it (failing_arm) and checks with must() what is left; in an empty kit_folder(). */
void fault_sweep(void (*session)(const fault *f), fault f);

#endif
