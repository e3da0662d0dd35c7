/* lib/measure/goodput/goodput.h - where a job's time goes, in all its lives, and in one */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what a run's time can have gone into ---- */

enum pki_part {
    PKI_PART_PRODUCTIVE, /* steps that took the training on */
    PKI_PART_RECOMPUTED, /* steps that an earlier run had made, and lost */
    PKI_PART_DATA,       /* of productive steps: waiting for input (PK_DATA) */
    PKI_PART_STARTUP,
    PKI_PART_COMPILE,
    PKI_PART_CHECKPOINT,
    PKI_PART_RESTORE,
    PKI_PART_EVALUATION,
    PKI_PART_HANG,       /* as the watchdog says */
    PKI_PART_UNFINISHED, /* of a step that had not ended when the run was last heard of */
    PKI_PART_OTHER,      /* between steps, behind the last one, and what is not known */
    PKI_PARTS
};

/* "productive", ...: their names in the state file and in `pk job --json` */
extern const char *const pki_part_names[PKI_PARTS];

/* Where a process's time has gone, of which `up` is the sum. */
typedef struct pki_goodput_summary {
    uint64_t up; /* ns, since the process's start; first: 0 leaves it out of the report file */
    uint64_t parts[PKI_PARTS];
    uint64_t steps, recomputed; /* usual ones; that an earlier run of the job had made, and lost */
} pki_goodput_summary;

/* Of a phase (pk/goodput.h), and of a kind of steps. */
uint32_t pki_part_of_phase(uint32_t phase);

/* ---- a line of the state file: a run of the job as far as it has come ---- */

/* "pk-goodput 1 run=5d1c... n=7 why=beat unix=... up=... productive=... ... check=9f21c3d0"
 *
 * Everything in it counts from the run's beginning, so of a run its last line says it all, and one
 * that a kill or a full disk has cut costs what has been since the line before. A line is whole if
 * its checksum is right. What is not known here is passed over: later versions add words. A new
 * format has a new number. */

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

/* ---- where a run's time goes: each moment into one part ---- */

/* A moment is     a hang, if the watchdog has found one,
 *                     else the phase that is announced (pk/goodput.h),
 *                     else what its step is: by its kind, and whether the training has been as far
 *                     else start-up before the first step, other after it
 *
 * Of a usual step the self time of kind PK_DATA is waiting for data, as far as no phase lies in it;
 * a step that is recomputed is that as a whole. The first step of a run that never calls
 * pk_step_begin holds its set-up: what it takes beyond the mean of those after it is start-up.
 *
 * All moments are ns since the session's start. The parts of pki_account_parts sum to the length of
 * the run exactly. A function of its arguments: no clock, no file.
 *
 * Threads: one at a time (the collector, under the fold lock). */

#define PKI_ACCOUNT_SPANS 256 /* phases and hangs in one step; further ones count as the step */

typedef struct pki_account_span {
    uint64_t begin, end;
    uint32_t part;
} pki_account_span;

typedef struct pki_account {
    uint64_t before;            /* the process's time before the session: start-up */
    int64_t furthest_before;    /* steps behind the training in earlier runs; -1: unknown */
    int64_t at;                 /* steps behind it now; -1: the program does not say */
    uint64_t steps, recomputed; /* usual ones */

    uint64_t parts[PKI_PARTS]; /* of [0, covered), but for the first step */
    uint64_t covered;
    size_t span_count;
    pki_account_span spans[PKI_ACCOUNT_SPANS];
    bool begun, first_held; /* a step has ended; the first one is in none of the parts yet */
    uint32_t first_part;
    uint64_t first, later, later_count;
    bool at_told; /* at_step holds from the step of that number on */
    uint64_t at_index, at_step;
} pki_account;

typedef struct pki_account_step {
    uint64_t index, start, duration, data;
    const char *kind; /* NULL: the usual one */
    bool between;
} pki_account_step;

void pki_account_begin(pki_account *account, uint64_t before, int64_t furthest_before);

/* A phase or a hang that is over. */
void pki_account_span_add(pki_account *account, uint64_t begin, uint64_t end, uint32_t part);

/* What goes on since then. part 0: no phase does. A hang goes on until it is said to be over, or a
 * step ends that it lies in. */
void pki_account_phase(pki_account *account, uint64_t since, uint32_t part);
void pki_account_hang(pki_account *account, uint64_t since);
void pki_account_hang_over(pki_account *account, uint64_t end);

/* The training has so many steps behind it before the step of that number. */
void pki_account_at(pki_account *account, uint64_t step, uint64_t index);

/* In their order. NULL for account: nothing. */
void pki_account_add(pki_account *account, const pki_account_step *step);

/* Of [0, now), and the time before it. last: the run ends here, so nothing is unfinished. */
void pki_account_parts(const pki_account *account, uint64_t now, bool last,
                       uint64_t parts[PKI_PARTS]);

/* ---- a job's life: the runs of its state file, added up ---- */

/* pki_life *life = pki_life_begin();
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
 *               Research Clusters", arXiv 2410.21680; ByteRobust, arXiv 2509.16293) */

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
