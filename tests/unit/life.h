/* tests/unit/life.h - a state file's text, added up. */
#ifndef TESTS_LIFE_H
#define TESTS_LIFE_H

#include "folder.h"

#include "measure/goodput/life.h"

#define MS 1000000u

static inline uint64_t sum_of(const uint64_t parts[PKI_PARTS])
{
    uint64_t sum = 0;
    for (size_t i = 0; i < PKI_PARTS; i++)
        sum += parts[i];
    return sum;
}

/* Whatever is in it. */
static inline pki_life_sum life_of(const char *text, size_t n)
{
    pki_life *life = pki_life_begin();
    for (const char *at = text, *end = text + n, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        pki_life_add(life, at, (size_t)(stop - at));
    }
    pki_life_sum s = pki_life_end(life);
    assert_int_equal(s.wall, s.down + sum_of(s.parts));
    return s;
}

#endif
