/* lib/capture/capture.h - which steps become a trace of their own, and how many of them */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the median of the last like steps ---- */

#define PKI_LIKE_STEPS 65 /* the median is of so many of them at most */
#define PKI_LIKE_LEAST 8  /* fewer are no ground for a judgement */
#define PKI_LIKE_KINDS 16 /* kinds beyond share the last one */

typedef struct pki_like_steps {
    uint32_t kind;
    uint32_t count;                    /* of those in the window */
    uint32_t oldest;                   /* place of the oldest in `in_order` */
    uint64_t in_order[PKI_LIKE_STEPS]; /* as they came */
    uint64_t sorted[PKI_LIKE_STEPS];
} pki_like_steps;

typedef struct pki_medians_by_kind {
    uint32_t kinds;
    pki_like_steps of[PKI_LIKE_KINDS];
} pki_medians_by_kind;

/* 0: too few are known. */
uint64_t pki_like_median(const pki_like_steps *like);

void pki_like_add(pki_like_steps *like, uint64_t ns);

/* ---- which steps are worth a trace: pk_options.capture, taken apart ---- */

/*
 *     slow=1.2              a step beyond 1.2 x the rolling median of like steps, and the 3 before
 *     slow=1.2,floor:500    and by 500 us at least; without it 100
 *     steps=100-104         these; also "steps=7", and several such clauses
 *     every=1000            each thousandth
 *     cycle=skip:10,wait:5,warmup:1,active:3,repeat:2     active is needed; repeat 0: for ever
 *     request               what `pk capture` asks for
 *     straggler             all ranks have found that this one is late (PK_MPI_STRAGGLERS)
 *     kernels=armed         CUPTI records while one of these is near; kernels=always: all the time;
 *                           kernels=armed,steps:4 so many behind a slow one */

#define PKI_CAPTURE_RANGES 8
#define PKI_CAPTURE_BEFORE 3          /* steps that are kept with a slow one */
#define PKI_CAPTURE_STEPS_MOST 10000u /* in one capture */
#define PKI_CAPTURE_BEHIND 4          /* a slow step, with CUPTI armed by it */
#define PKI_CAPTURE_BEHIND_MOST 1000u
#define PKI_CAPTURE_STRAGGLER_STEPS 8u /* of a rank that has been found late */

typedef struct pki_step_range {
    uint64_t first, last;
} pki_step_range;

typedef struct pki_cycle {
    uint64_t skip, wait, warmup, active, repeat; /* active 0: there is none */
} pki_cycle;

/* CUPTI cannot look back. */
typedef enum pki_capture_kernels {
    PKI_KERNELS_UNSAID,
    PKI_KERNELS_ARMED, /* it records from a slow step on, and where a capture is foreseen */
    PKI_KERNELS_ALWAYS
} pki_capture_kernels;

typedef struct pki_clauses {
    double slow; /* 0: no such clause */
    uint64_t floor_ns;
    pki_step_range ranges[PKI_CAPTURE_RANGES];
    uint32_t range_count;
    uint64_t every; /* 0: no such clause */
    pki_cycle cycle;
    bool request, straggler;
    pki_capture_kernels kernels;
    uint64_t behind; /* steps behind a slow one that are captured with it, if CUPTI is armed */
} pki_clauses;

/* "" is none. False, and why (which clause, and what is wrong with it). */
bool pki_clauses_parse(const char *text, pki_clauses *clauses, char *why, size_t size);

/* Is one of them about steps? */
bool pki_clauses_await_steps(const pki_clauses *clauses);

/* The most steps that one capture by these clauses is of. */
uint64_t pki_clauses_longest(const pki_clauses *clauses);

/* ---- from steps that have ended to those of which a trace is to be made ---- */

/* Decided after the fact: the steps before a slow one are still there (lib/history). Steps may be
 * missing, where a ring was full.
 *
 * Threads: one at a time (the drain lock). No clock of its own, no file, no memory. */

typedef enum pki_capture_reason {
    PKI_CAPTURE_SLOW,
    PKI_CAPTURE_STEPS,
    PKI_CAPTURE_EVERY,
    PKI_CAPTURE_CYCLE,
    PKI_CAPTURE_CALL,     /* pk_capture */
    PKI_CAPTURE_REQUEST,  /* pk capture */
    PKI_CAPTURE_HANG,     /* the watchdog */
    PKI_CAPTURE_STRAGGLER /* all ranks: this one is late */
} pki_capture_reason;

const char *pki_capture_reason_name(pki_capture_reason reason);

/* It is of what the history holds at that moment. */
static inline bool pki_capture_is_of_now(pki_capture_reason reason)
{
    return reason == PKI_CAPTURE_CALL || reason == PKI_CAPTURE_HANG ||
           reason == PKI_CAPTURE_STRAGGLER;
}

/* Within the hour's budget those of more worth win: of slow steps their ratio to the median, of
 * those at intervals 1, of those that somebody has asked for more than any step's. */
#define PKI_WORTH_TURN 1.0
#define PKI_WORTH_ASKED 1e9

typedef struct pki_wish {
    uint64_t first, last; /* steps; last UINT64_MAX: what there is now, in a run without steps */
    pki_capture_reason reason;
    double worth;
    uint64_t slow_step, slow_ns, median_ns; /* of PKI_CAPTURE_SLOW */
    char text[96];                          /* the program's words; "" for none */
    bool cut;                               /* the run ended before its last step */
    uint32_t serial;                        /* of a request; 0: none */
} pki_wish;

typedef struct pki_chooser {
    pki_clauses clauses;
    pki_medians_by_kind medians;
    uint64_t next;       /* the step that runs */
    uint32_t ranges_met; /* a bit for each that is over */
} pki_chooser;

/* Slow steps that follow each other are one capture, of so many steps at most. False: these are
 * two. */
#define PKI_WISH_MERGED_STEPS 32
bool pki_wish_merge(pki_wish *wish, const pki_wish *next);

#define PKI_WISHES_MOST (PKI_CAPTURE_RANGES + 3) /* that one step can give rise to */

/* A step has ended: how many wishes there are now. */
unsigned pki_choose(pki_chooser *chooser, uint64_t number, uint32_t kind, uint64_t ns,
                    pki_wish wishes[PKI_WISHES_MOST]);

/* How long a step of that kind has to last to be slow, ns; 0: that is not known yet, or none is. */
uint64_t pki_choose_late(pki_chooser *chooser, uint32_t kind);

/* Is one of these steps, none of which is over, to be captured by its number, or the first of them
 * in a cycle's warm-up? */
bool pki_choose_foresees(const pki_chooser *chooser, uint64_t first, uint64_t last);

/* The run has: what has begun is kept, and cut. */
unsigned pki_choose_at_end(pki_chooser *chooser, pki_wish wishes[PKI_WISHES_MOST]);

/* ---- how many captures, and how many bytes of them, an hour may leave ---- */

/* Of the captures made within the last hour there are never more than so many, nor of more bytes,
 * at any moment. When the hour is full, one of more worth takes the place of the one of least: that
 * file is removed. Nothing else ever is. Of two of the same worth the earlier one stays.
 *
 * Threads: one at a time (whoever writes captures). */

#define PKI_BUDGET_HOUR_NS 3600000000000u
#define PKI_BUDGET_LEAST 65536u /* bytes: with less left a capture is not begun */

typedef struct pki_kept {
    char *path;
    uint64_t device, inode; /* of the file that was made */
    uint64_t ns, bytes;
    double worth;
} pki_kept;

typedef struct pki_budget {
    uint32_t captures; /* per hour */
    uint64_t bytes;
    pki_kept *kept; /* of the last hour */
    size_t count, room;
    uint64_t removed; /* for others of more worth */
} pki_budget;

void pki_budget_finish(pki_budget *budget);

/* How many bytes one of that worth may take now; 0: it may not be made. */
uint64_t pki_budget_allows(pki_budget *budget, uint64_t now_ns, double worth);

/* One of so many bytes, as allowed, is about to get its name: removes what has to make room. */
void pki_budget_make_room(pki_budget *budget, uint64_t now_ns, double worth, uint64_t bytes);

/* It has it. Without memory it is counted as one that cannot be removed. */
void pki_budget_enter(pki_budget *budget, uint64_t now_ns, double worth, uint64_t bytes,
                      const char *path);

/* Was this path given to a capture of the last hour? */
bool pki_budget_has(const pki_budget *budget, const char *path);
