/* lib/measure/memory/course.h - what the collector sees of memory, look by look, put together.
 *
 * A look knows how many steps have been made, so what it finds belongs to the steps since the last
 * one: each of them has their mean. A step that is longer than the time between two looks has what
 * was found at the first look behind its end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "measure/rows.h"
#include "measure/timeline.h"
#include "stats/tally.h"

#define PKI_MEMORY_REGIONS 1024u /* whose growth is watched; the first ones */

typedef struct pki_memory_look {
    uint64_t steps; /* made so far */
    uint64_t resident, private_bytes, minor, major;
    uint64_t ns; /* since the session's start */
} pki_memory_look;

/* All zero is one that has seen nothing. */
typedef struct pki_memory_course {
    uint64_t looks, most_private;
    pki_memory_look first, last;       /* last: with which steps had been made */
    pki_memory_look end;               /* the last of all */
    pki_memory_look early, next_early; /* where the later half began, at most */
    pki_tally resident, minor, major;  /* by steps */
    pki_growth_series growth;
    pki_timeline line; /* resident */
    size_t region_room;
    pki_growth_series *regions; /* by id */
} pki_memory_course;

void pki_memory_course_finish(pki_memory_course *course);

/* True: this look is the first one of a later half that may be: who counts something else keeps it
 * as of now. */
bool pki_memory_course_see(pki_memory_course *course, const pki_memory_look *look);

/* Bytes that live in that region, as of the last look. */
void pki_memory_course_see_region(pki_memory_course *course, uint32_t region, uint64_t bytes);

/* What all looks say; nothing of libpk_alloc, and no texts. False without memory: there is no
 * series then. */
bool pki_memory_course_fill(const pki_memory_course *course, pki_memory_summary *out);

/* The same so far; most_resident is that of the looks. */
pki_memory_sum pki_memory_course_sum(const pki_memory_course *course);

#define PKI_MEMORY_GROWTH_LEAST 262144.0    /* bytes, of a region */
#define PKI_MEMORY_RESIDENT_LEAST 1048576.0 /* and of the process: pages come in bursts */

/* Where its bytes are estimates, with their standard error; 0: they are exact. */
pki_growth pki_memory_course_region(const pki_memory_course *course, uint32_t region, double error);

/* For qsort, of pki_memory_region: the largest at the peak first. */
int pki_memory_by_peak(const void *a, const void *b);

/* ---- how much memory the process may have, and how near it came ---- */

typedef struct pki_memory_limit {
    const char *of;       /* "cgroup", "RLIMIT_AS"; NULL: there is no limit */
    uint64_t limit, used; /* bytes; the most that was used, as far as it is known */
} pki_memory_limit;

/* The nearest one. most_private: bytes of the process itself, the most that were seen; a cgroup has
 * other processes, whose memory counts as of now, and pages of files, which count not, since the
 * kernel takes those back first. Both versions of cgroups, whichever of the groups around the
 * process is the narrowest. root: "" or, for tests, a folder that stands for "/". */
pki_memory_limit pki_memory_limit_find(const char *root, uint64_t most_private);

/* The number in a line "key value" or "key: value kB" of a file, in bytes. */
bool pki_memory_field(const char *path, const char *key, uint64_t *value);
