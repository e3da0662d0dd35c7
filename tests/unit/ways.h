/* tests/unit/ways.h - by which ways a program comes to a call: the functions that are entered
 * there.
 *
 * What happens after a call has failed depends on who made it. So a test that lets each call fail
 * need not let each of thousands fail: of each way the first two do, behind the second of which
 * there is something half made, and of those that come again and again ever fewer: the fourth, the
 * sixteenth, ...
 */
#ifndef WAYS_H
#define WAYS_H

#include <execinfo.h>
#include <stdbool.h>
#include <stdint.h>

#define WAYS_MOST 4096 /* a power of two; a run has some hundred */
#define WAYS_DEPTH 48

typedef struct way {
    uint64_t name; /* 0: a free place */
    unsigned times;
} way;

/* One that is zero is empty. */
typedef struct ways {
    way seen[WAYS_MOST];
    unsigned count;
} ways;

static inline bool way_has(void *const *callers, int count, const void *caller)
{
    while (count-- > 0)
        if (callers[count] == caller)
            return true;
    return false;
}

/* Who has called, and who has called them; the same in a fork's child. Never 0. How deep a
 * recursion is makes no difference. */
static inline uint64_t way_here(void)
{
    void *callers[WAYS_DEPTH];
    uint64_t name = UINT64_C(14695981039346656037);
    for (int i = backtrace(callers, WAYS_DEPTH); i-- > 0;)
        if (!way_has(callers, i, callers[i]))
            name = (name ^ (uintptr_t)callers[i]) * UINT64_C(1099511628211);
    return name | 1;
}

/* Seen once more: how often by now; 0: there is no room for another way. */
static inline unsigned ways_count(ways *w, uint64_t name)
{
    unsigned at = (unsigned)(name >> 20) % WAYS_MOST;
    while (w->seen[at].name && w->seen[at].name != name)
        at = (at + 1) % WAYS_MOST;
    if (!w->seen[at].name) {
        if (w->count == WAYS_MOST / 2)
            return 0;
        w->count++;
        w->seen[at].name = name;
    }
    return ++w->seen[at].times;
}

/* 1, 2, 4, 16, 64, ...; under a sanitizer, to which processes are dear, the first two alone. */
static inline bool way_tells(unsigned times)
{
    if (times == 1 || times == 2)
        return true;
#ifdef __SANITIZE_ADDRESS__
    return false;
#else
    return times && !(times & (times - 1)) && __builtin_ctz(times) % 2 == 0;
#endif
}

#endif
