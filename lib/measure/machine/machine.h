/* lib/measure/machine/machine.h - what a machine can do, as `pk machine` has measured it.
 *
 * It is kept in a small file of text, which the library reads without a parser of JSON:
 *
 *     perfkit machine 1
 *     host node7
 *     cpu AMD EPYC 9354 32-Core Processor
 *     processors 64                              online when it was measured
 *     measured 1795369527                        seconds since 1970
 *     limit triad one 21400000000 21100000000 20000000000 9
 *
 * A limit has a name (below), who reached it (`one` processor or `all` that the process may use),
 * its best, median and worst round in bytes or operations per second, and how many rounds there
 * were. Numbers are integers, so no locale reads them differently. Words that a later version adds
 * are passed over; what is there and makes no sense refuses the file.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKI_MACHINE_BYTES 8192u /* a file is shorter */
#define PKI_MACHINE_LIMITS 32u
#define PKI_MACHINE_RATE_MOST 1000000000000000000u /* 1e18 per second */

/* Names of limits. Peaks begin with one of the latter two: "double-avx512f". */
#define PKI_LIMIT_COPY "copy"
#define PKI_LIMIT_TRIAD "triad"
#define PKI_LIMIT_STREAMED "triad-streamed" /* its stores pass the caches by */
#define PKI_LIMIT_DOUBLE "double-"
#define PKI_LIMIT_SINGLE "single-"

typedef struct pki_limit {
    char name[32];
    bool all;                     /* processors; else one */
    uint64_t best, median, worst; /* B/s or operations/s */
    uint64_t rounds;
} pki_limit;

typedef struct pki_machine {
    char host[64], cpu[128];
    uint64_t processors; /* online */
    uint64_t measured;   /* s since 1970 */
    uint64_t limit_count;
    pki_limit limits[PKI_MACHINE_LIMITS];
} pki_machine;

/* False, and why in words, for anything but a whole file of that kind. */
bool pki_machine_parse(const char *text, size_t length, pki_machine *machine, char *why,
                       size_t size);

/* The file's text; its length. */
size_t pki_machine_print(const pki_machine *machine, char text[PKI_MACHINE_BYTES]);

/* One more; false if there are PKI_MACHINE_LIMITS. */
bool pki_machine_add(pki_machine *machine, const pki_limit *limit);

/* The best round of this limit, or of the largest whose names begin so if it ends in "-"; 0: there
 * is none. */
uint64_t pki_machine_best(const pki_machine *machine, const char *name, bool all);

/* This machine: host, cpu and processors, nothing measured. */
void pki_machine_here(pki_machine *machine);

/* Where its file lies if nothing else is said: in XDG_CACHE_HOME or ~/.cache, in a folder perfkit,
 * under the host's name, since machines may share a home. False: neither is set. */
bool pki_machine_path(const char *host, char path[PATH_MAX]);

/* Reads the file of any machine. False, and why in words. */
bool pki_machine_read(const char *path, pki_machine *machine, char *why, size_t size);

/* Reads the file of this machine. False, and why in words: no such file, not one of these, of
 * another processor, or, unless the user has named it (`named`), of another host. */
bool pki_machine_load(const char *path, bool named, pki_machine *machine, char *why, size_t size);
