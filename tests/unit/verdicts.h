/* tests/unit/verdicts.h - the verdicts of a summary, for tests. */
#ifndef TESTS_VERDICTS_H
#define TESTS_VERDICTS_H

#include <string.h>

#include "measure/summary.h"

/* NULL: there is none of that name. */
static inline const pki_verdict *find_verdict(const pki_summary *s, const char *name)
{
    for (size_t i = 0; i < s->verdict_count; i++)
        if (strcmp(s->verdicts[i].name, name) == 0)
            return &s->verdicts[i];
    return NULL;
}

#endif
