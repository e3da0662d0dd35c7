/* tests/unit/lengthy.h - a region whose events are long: a file or a buffer is full of few of them,
 * which are soon read back. */
#ifndef TESTS_LENGTHY_H
#define TESTS_LENGTHY_H

#include <pk/pk.h>

#define FORTY_LETTERS "of a name that has more than forty letters "

static pk_region lengthy =
    PK_REGION_OF(PK_COMPUTE, FORTY_LETTERS FORTY_LETTERS FORTY_LETTERS FORTY_LETTERS FORTY_LETTERS);

#endif
