/* lib/measure/goodput/line.h - a line of the state file: a run of the job as far as it has come.
 *
 *     pk-goodput 1 run=5d1c... n=7 why=beat unix=... up=... productive=... ... check=9f21c3d0
 *
 * Everything in it counts from the run's beginning, so of a run its last line says it all, and one
 * that a kill or a full disk has cut costs what has been since the line before. A line is whole if
 * its checksum is right. What is not known here is passed over: later versions add words. A new
 * format has a new number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "measure/goodput/parts.h"

#define PKI_LIFE_MAGIC "pk-goodput 1 "
#define PKI_LIFE_LINE 1024

typedef enum pki_life_why {
    PKI_LIFE_START,
    PKI_LIFE_BEAT,
    PKI_LIFE_END, /* the run has ended by pk_stop or exit() */
    PKI_LIFE_WHYS
} pki_life_why;

typedef struct pki_life_line {
    uint64_t run, n; /* a number that no other run has; of its lines, from 0 */
    uint32_t why;
    uint64_t unix_ns;       /* now */
    uint64_t boot, boot_ns; /* of this start of the machine (0: unknown), CLOCK_BOOTTIME */
    uint64_t up;            /* since the run's beginning, without what the machine slept */
    uint64_t beat;          /* the next line comes within so many ns */
    uint64_t rank, pid;
    uint64_t steps, recomputed;
    int64_t at, furthest; /* steps behind the training, here and in any run; -1: unknown */
    uint64_t saves, save_ns, save_bytes;
    int64_t saved;             /* steps behind the last checkpoint of this run; -1: none */
    uint64_t parts[PKI_PARTS]; /* they sum to `up` */
} pki_life_line;

/* With a newline; its length. */
size_t pki_life_put(const pki_life_line *line, char text[PKI_LIFE_LINE]);

/* Of a line without its newline. False: it is none, not whole, or its times cannot be: a clock or a
 * disk was out of its mind. */
bool pki_life_read(const char *text, size_t length, pki_life_line *line);
