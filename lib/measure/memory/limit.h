/* lib/measure/memory/limit.h - how much memory the process may have, and how near it came. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
