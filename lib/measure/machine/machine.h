/* lib/measure/machine/machine.h - what a machine can do: measured, or as its vendor says */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what a machine can do, as `pk machine` has measured it ---- */

/* It is kept in a small file of text, which the library reads without a parser of JSON:
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
 * are passed over; what is there and makes no sense refuses the file. */

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

/* ---- what a report says of the machine's limits: part of a pki_summary ---- */

/* A region beside the machine's limits (roofline.h); rates per second, of all its
 * threads together. */
typedef struct pki_roofline_row {
    char *region;
    double share;        /* of the self time of all regions */
    double threads;      /* that ran it at once */
    bool all_processors; /* it is held against the roof of all: more than these were at work */
    double intensity;    /* operations per byte; 0: without bytes, or without operations */
    double bytes_per_second, flops_per_second;
    double of_double, of_single; /* the achieved share of the attainable, by precision */
    bool memory_bound_double, memory_bound_single;
} pki_roofline_row;

/* The steps' operations beside the hardware's peak (utilisation.h); of the steady steps that have
 * told theirs. */
typedef struct pki_utilisation {
    uint64_t steps; /* 0: none has */
    uint64_t time;  /* of these steps, ns */
    double model, hardware;
    double peak;     /* operations per second; 0: not known, and... */
    double mfu, hfu; /* ...these are 0, too */
    char *precision; /* of the peak; "" if it is a number of the user's alone */
    char *source;    /* of the peak; or why it is not known. NULL: nobody has looked for it */
} pki_utilisation;

/* Limits of one processor and of all: B/s, operations/s. */
typedef struct pki_roofline {
    uint64_t measured; /* s since 1970; 0: there is none */
    char *host, *cpu;  /* where it was measured */
    uint64_t processors;
    double bandwidth_one, bandwidth_all;
    double double_one, double_all, single_one, single_all;
    size_t row_count;
    pki_roofline_row *rows; /* in the order of the regions */
} pki_roofline;

/* ---- what GPUs can do, as their vendor says. Not measured ---- */

/* Operations per second, dense (without the factor of two that sparsity may give), at the clock
 * that the data sheet assumes; bytes per second. 0: the data sheet has no such figure. */
typedef struct pki_device_limits {
    const char *name;   /* as NVML and /proc/driver/nvidia name it */
    const char *source; /* which document */
    double bandwidth;
    double fp64, fp64_tensor, fp32, tf32, bf16, fp16, fp8;
} pki_device_limits;

/* NULL: not in the table. Names are compared whole, since "A100-SXM4-40GB" and "-80GB" differ. */
const pki_device_limits *pki_device_find(const char *name);

/* All of them. */
extern const pki_device_limits pki_devices[];
extern const size_t pki_device_count;
