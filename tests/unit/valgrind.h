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

#endif
