/* lib/measure/goodput/life.h - a job's life: the runs of its state file, added up.
 *
 *     pki_life *life = pki_life_begin();
 *     ... pki_life_add(life, text, length) for each line of the file, in their order ...
 *     pki_life_sum sum = pki_life_end(life);
 *
 * Wall time is that of the runs and of what lies between them. Between two runs of the same start
 * of the machine it is a difference of CLOCK_BOOTTIME, which nobody sets; else of the calendar's
 * clock, and where that has gone back, or ahead by more than a year, the time between is unknown,
 * counts as none, and is said.
 *
 *     goodput = productive / wall                 (waiting for data is not in it)
 *     ETTR    = (productive + data wait) / wall   effective training time ratio: the time that took
 *               the training on, over all ("Revisiting Reliability in Large-Scale Machine Learning
 *               Research Clusters", arXiv 2410.21680; ByteRobust, arXiv 2509.16293)
 */
#pragma once

#include "measure/goodput/goodput.h"

typedef struct pki_life pki_life;

typedef struct pki_life_sum {
    uint64_t lines, damaged; /* whole ones; those that are not, or say what cannot be */
    uint64_t runs, ended;    /* ended: by themselves; the others were killed, or run */
    uint64_t wall, down;     /* ns; wall is down and all parts */
    uint64_t parts[PKI_PARTS];
    uint64_t doubt; /* ns: what has been since the last lines of killed runs counts as down */
    uint64_t steps, recomputed;
    /* In that time killed runs may have made so many steps more, of about the length of those that
     * are known, which the next run has made again; and so many the last one, if it is over. */
    uint64_t doubt_steps, last_doubt_steps;
    int64_t furthest, saved; /* steps behind the training, and behind the last checkpoint; -1 */
    bool at_known;           /* every run with steps has said where it went on */
    uint64_t saves, save_ns, save_bytes;
    uint64_t overlaps, overlap; /* runs that began before the one before them had ended, ns */
    uint64_t clock_set;         /* times between runs that are unknown */
    uint64_t rank;
    uint64_t first_unix, last_unix; /* ns since 1970, as the clocks said then */
    double goodput, ettr;
} pki_life_sum;

/* NULL without memory; the others take that. */
pki_life *pki_life_begin(void);
void pki_life_add(pki_life *life, const char *line, size_t length); /* without the newline */
pki_life_sum pki_life_end(pki_life *life);                          /* and gives it back */
