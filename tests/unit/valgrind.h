/* tests/unit/valgrind.h - is this one of valgrind's runs? It replaces malloc, and takes fifty times
 * as long. */
#ifndef TESTS_VALGRIND_H
#define TESTS_VALGRIND_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload");
}

/* Everything takes long: fewer rounds will do. */
static inline bool is_slow(void)
{
#ifdef EMULATED
    return true;
#else
    return under_valgrind();
#endif
}

/* A simulation, of code that others call: it takes long there, and finds nothing. */
static inline bool is_instrumented(void)
{
#ifdef __SANITIZE_THREAD__
    return true;
#else
    return under_valgrind();
#endif
}

/* ThreadSanitizer and qemu know no child of a fork that makes threads; valgrind takes what it has
 * left of its parent for lost. */
static inline bool forked_child_may_not_record(void)
{
#ifdef __SANITIZE_THREAD__
    return true;
#else
    return is_slow();
#endif
}

#endif
