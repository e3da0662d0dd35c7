/* tests/unit/valgrind.h - is this one of valgrind's runs? It replaces malloc, and takes fifty times as
 * long. */
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

#endif
