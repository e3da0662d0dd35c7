/* lib/job/verdicts/verdicts.h - who is late, and what else is wrong with a job */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/stats/evidence.h"
#include "bench/stats/samples.h"
#include "core/seats.h"
#include "job/figures/figures.h"
#include "job/job.h"

/* ---- is one of several units (ranks, or hosts) later than the others, and surely? ---- */

/* A unit has a value in each block: the logarithm of its time for a piece of work. There are two
 * looks at how late it is:
 *
 *     in the middle    of a block its value less the median of the units; of all blocks the
 *                      pseudo-median (Hodges and Lehmann's), with the interval of Wilcoxon's signed
 *                      ranks (bench/stats/evidence.h). Sharp where noise is small and of both signs
 *     in better steps  the same with lower quartiles (Tukey's hinges) in both places, and the
 *                      interval between order statistics (binomial, of 1/4: Hollander, Wolfe,
 *                      Chicken: Nonparametric Statistical Methods, 3rd ed., 3.6). What disturbs a
 *                      step makes it longer, never shorter, and on a busy machine it does so for
 *                      steps on end: who is late by himself is so in his better steps, too, beside
 *                      those of the units that are not disturbed; and 0 is where the unit in the
 *                      middle of all is
 *
 * Blocks that depend on their neighbours count as fewer: as a unit's own do, or as those of the
 * units do in the mean, if that is more, since noise that lasts looks shorter than it is in any one
 * short series. Where that leaves too few for signed ranks, the interval is Student's of so many.
 *
 * A unit is late if either look finds it above the limit (PKI_JOB_LATE_LEAST), and surely above two
 * thirds of that, at a level that is divided by the number of all comparisons. Among many, whoever
 * seems to be above the limit is chosen for that, by luck as well. The likelihood of its lateness
 * l, given that the estimate e (with the standard error s) is above the limit m,
 *
 *     phi((e - l) / s) / Phi((l - m) / s)
 *
 * is largest at an l above the limit, if e - m > s sqrt(2 / pi) (Zhong, Prentice: Bias-reduced
 * estimators, Biostatistics 9, 2008, 621); so the lower end of the interval whose end is that far
 * from e has to be above the limit: at the level Phi(-sqrt(2 / pi)). */

#define PKI_JOB_LATE_LEAST 0.03       /* unless pki_job.late_least says otherwise, ... */
#define PKI_JOB_LATE_SURELY (2.0 / 3) /* ...and so much of it surely */
#define PKI_JOB_LATE_CHOSEN 0.21247   /* the level above */

typedef enum pki_job_look {
    PKI_JOB_IN_THE_MIDDLE,
    PKI_JOB_IN_BETTER_STEPS,
    PKI_JOB_LOOKS
} pki_job_look;

typedef struct pki_job_field {
    size_t units, blocks;
    double *values; /* [block * units + unit], at most; NAN: not there */
    double *low;    /* the same, at least: what counts of the unit that is judged */
    const uint32_t *roles;
    size_t role_count;
    double level;                /* of an interval's end: how likely it is beyond the truth */
    double least;                /* the limit, a share */
    bool shared;                 /* ranks share processors, which disturb steps for a while: but not
                                    the better ones */
    double dependence;           /* of blocks on their neighbours, in the mean of the units */
    double *late[PKI_JOB_LOOKS]; /* [unit * blocks + block], as many as there are... */
    size_t *counts;              /* ...by unit */
    double *quick[PKI_JOB_LOOKS]; /* by unit: what a look sees of it, without an interval; NAN: it
                                     has no blocks */
    double *room;                 /* for what is sorted */
} pki_job_field;

typedef struct pki_job_judgement {
    double by; /* as a logarithm; NAN: nothing is known */
    pki_interval interval;
    bool late;
} pki_job_judgement;

/* From values and low; to be ended in any case. */
bool pki_job_field_begin(pki_job_field *f);

/* Values and low are the caller's. */
static inline void pki_job_field_end(pki_job_field *f)
{
    for (int look = 0; look < PKI_JOB_LOOKS; look++)
        free(f->late[look]), free(f->quick[look]);
    free(f->counts);
    free(f->room);
}

pki_job_judgement pki_job_field_judge(const pki_job_field *f, pki_job_look look, size_t unit);

/* ---- late in a part of the run ---- */

/* How late a rank is in each block (in the middle, see above; without stages of its own kind of
 * work, as a checkpoint that it alone writes) is looked at in three ways:
 *
 *     once             the block in which it took longest beyond its usual, if that is more than
 *                      all of another step, and its neighbours are nothing like it
 *     a stretch        the run of blocks [i, j) with the largest
 *                          z = (mean in it - mean of the rest) sqrt(n (L / N) (1 - L / N))
 *                      of L of N blocks: circular binary segmentation (Olshen, Venkatraman, Lucito,
 *                      Wigler: Biostatistics 5, 2004, 557). To the end of the run: since then; a
 *                      line that fits better than the step: more and more
 *     now and then     the mean beyond its own better quarter, without the two worst blocks
 *
 * A figure counts if it is beyond what chance does among the *other ranks of the job*, whatever
 * their noise is, lasting or with heavy tails: the largest of so many arcs has a distribution of
 * extremes, whose place and scale the quartiles over the ranks tell (Gumbel's; of figures of few
 * blocks of their logarithms, Frechet's), so up to a quarter of the ranks may be late. And a
 * stretch counts only if the rank's own noise, with its dependence, does not explain it: Student's
 * t at a level divided by all arcs of all ranks. Nor may it be a few blocks with a hiccup each that
 * came to stand together, by the share of such blocks in the other ranks. With fewer than
 * SPELL_RANKS ranks there is no such distribution; there it has to be twice what the rank in the
 * middle has. PKI_JOB_SPELL_LEVEL is the probability of a false one, over all ranks and looks. */

#define PKI_JOB_SPELL_LEVEL 0.01
#define PKI_JOB_SPELL_WORTH 0.001 /* of the rank's steps */

typedef enum pki_job_when {
    PKI_JOB_ALL_ALONG,
    PKI_JOB_STRETCH,
    PKI_JOB_MORE_AND_MORE,
    PKI_JOB_NOW_AND_THEN,
    PKI_JOB_ONCE
} pki_job_when;

typedef struct pki_job_spell {
    pki_job_when when;
    size_t rank, begin, end; /* blocks */
    double by, low, high;    /* logarithms: beyond the others */
    double rest;             /* the same of the rest of the run */
    double share, worst;     /* now and then: of the blocks; in these */
    size_t every;            /* ...each so many steps, if they are that regular */
} pki_job_spell;

typedef struct pki_job_spells {
    size_t count, room;
    pki_job_spell *all; /* by rank */
} pki_job_spells;

/* Of a field that has begun. To be freed in any case (all). */
bool pki_job_find_spells(pki_job_spells *s, const pki_job *j, const pki_job_field *f);

/* ---- is it worth while to say of a rank that it is late? ---- */

/* No mending can make a step shorter by more than what the rank takes longer, its excess: own time
 * x by / (1 + by). With the lower end of the interval for by,
 *
 *     excess >= PKI_JOB_LATE_WORTH x the rank's step
 *
 * Where ranks share processors, steps are as long as the others make them. There what counts is
 * what a rank takes from the others, and its cost: by how much its own time, as lateness has it, is
 * longer than that of any rank that is not late, in the mean over the steps; of that the part that
 * it is at the lower end:
 *
 *     cost   >= PKI_JOB_LATE_COST x the job's step
 *
 * The two shares are chosen, not derived. A share of the processor time that a rank takes is no
 * measure of what it is late by: ranks that wait by asking (MPICH) run four times as long as they
 * compute. */

#define PKI_JOB_LATE_WORTH 0.005 /* of a step */
#define PKI_JOB_LATE_COST 0.001  /* of a step */

typedef struct pki_job_worth {
    const pki_job *of;
    bool by_work;
    const double *values;
    double *longest; /* by block: own time for a piece of work of who is not late */
    double time;     /* of the job's steps */
} pki_job_worth;

/* ---- does a rank stand out from the others of its host, where these share processors? ---- */

/* Processors are not alike: what runs on the other thread of a core, or beside a virtual machine,
 * takes a part of one and not of the next. Where ranks have a processor each, that is what one
 * wants to hear of. Where they share them, whoever sits on the slower one is late with all others
 * there, and by no fault of his own. Where ranks tell in which steps they sat where, that is taken
 * off (see below); not all of them do, and not all is seen. So of the ranks of a crowded host
 * (see below) that do the same work the latest has to be an outlier among them: with m, s mean and
 * deviation of the n others, beyond Student's t with n - 1 degrees of freedom,
 *
 *     (late - m) / (s sqrt(1 + 1 / n))
 *
 * (Grubbs: Procedures for detecting outlying observations in samples, Technometrics 11, 1969, as
 * the externally studentized residual); then the next one among the rest, until one is not. So a
 * rank that is alone in being late stands out, and half of them do not. Who takes twice as long or
 * more stands out in any case: a processor that is shared by two halves at most.
 *
 * Where what is the processors' is known and off (STANDS_DETERMINED is the level, at least):
 * - Of six ranks and more a third may stand out: the latest do, too, if the last of them is an
 *   outlier among the rest, since late ranks hide each other (Rosner: Percentage points for a
 *   generalized ESD many-outlier procedure, Technometrics 25, 1983). The level is divided by how
 *   many may be hidden, and by two where there are fewer ranks.
 * - Three ranks say little of how much such ranks differ. So s is pooled with STANDS_SPREAD, which
 *   counts as STANDS_RANKS more ranks, also among the degrees of freedom (Smyth: Linear models and
 *   empirical Bayes methods, Statistical Applications in Genetics and Molecular Biology 3, 2004).
 *   It was 1.0 % in 30 healthy runs of LAMMPS and LULESH, 1.2 to 2.4 % beside a rank that is late.
 * Of four ranks that are alike otherwise it takes 4.4 % to stand out, of eight 2.4. */

/* ---- hosts whose ranks want more processors than there are ---- */

/* Of a rank's own time in the steps, the share in which it was ready to run and had no processor,
 * where that is told apart from the time that it waits for others (core/ready.h: libpk_mpi does);
 * else of all the run. It is nobody's lateness, which leaves it out. */

typedef struct pki_job_crowd {
    uint32_t host;
    size_t ranks;       /* of it here */
    double least, most; /* shares, over these */
    size_t most_rank;   /* its place */
} pki_job_crowd;

/* The largest share of a rank. */
double pki_job_crowd_most(const pki_job *j);

/* One for each host on which a rank's share is PKI_JOB_CROWDED_FROM or more; to be freed. NULL
 * without memory. */
pki_job_crowd *pki_job_find_crowds(const pki_job *j, size_t *count);

/* ---- what a rank's time owes to the processor that it had ---- */

/* Processors are not alike: what runs on the other thread of a core, or beside a virtual machine,
 * takes a part of one and not of the next, for seconds on end. Where ranks share processors,
 * whoever sits on the slower one takes longer, and by no fault of his own. Ranks tell of each block
 * of their steps where they were (core/seats.h), so that can be taken off. With y a rank's value in
 * a block (lateness, see below), w what is the rank's own in all of them, s that of a processor in
 * this one, and p the share of the block that the rank was there,
 *
 *     y = w + p s + (1 - p) (the mean of s over the host's other processors) + noise
 *
 * s is the median over the ranks that were there, weighted by how much more of the block they were
 * there than elsewhere, w the median over the blocks, by turns, from the same w for all ranks of a
 * role on: so what all ranks on a processor have in common is the processor's. What is taken off a
 * rank is what the *others* there say (where there are up to three: all of them), less the mean of
 * that over the host's ranks; a block in which nobody else was there says nothing of it, and is
 * left out. A rank that has been alone like that in half of its blocks or more keeps all its
 * values: it and its processor are not told apart.
 *
 * Of two on a processor one may take longer by itself, so s is no more than both say. But in a
 * single block noise may be larger than what one is late by, and that would halve it. So it holds
 * for blocks around which they differ by more than noise, whether w is taken off or not; elsewhere
 * s is the mean of what makes them alike: who is late most of the run is not so before that. Of
 * three it is what the middle one says. Who is late on the faster one of two processors may take no
 * longer than those on the other: that is not told from a processor that is faster still.
 *
 * A slow processor is a finding of its own: of the blocks in which it and the host's others had two
 * ranks and more each, the stretch with the most of s - (mean of s of the others) - 10 %, if that
 * has SLOW_BLOCKS, and the lower quartile in it is SLOW_SURELY or more. */

/* A processor of a host that was slower than its others. */
typedef struct pki_job_slow_processor {
    uint32_t host, number;
    uint64_t first, last; /* steps */
    size_t ranks;         /* the most that were there at once */
    double by;            /* 0.27: 27 % longer for the same work */
} pki_job_slow_processor;

typedef struct pki_job_processors {
    size_t slow_count;
    pki_job_slow_processor *slow; /* slowest first */
    bool *determined;             /* by place of a rank: its processors' part has been taken off */
    uint32_t *alone; /* by place of a rank: the processor that it alone had, nearly all the
                        time; PKI_SEAT_UNKNOWN: none */
} pki_job_processors;

/* Takes it off both (lateness: at most, and at least). To be finished in any case, as are all that
 * follow. */
bool pki_job_find_processors(pki_job_processors *p, const pki_job *j, const uint32_t *roles,
                             size_t role_count, double *values, double *low);
void pki_job_processors_finish(pki_job_processors *p);

/* ---- who is late, by how much, where, and what it costs ---- */

/* A rank's own time of a step is its time without the stages that wait for others (comm, wait; if
 * there is none, without what is outside all regions). Its lateness in a block of steps is
 *
 *     log(own time / work) - the median of that over the ranks of its role
 *
 * with the time off in which it was ready to run and had no processor (pki_job_loop.ready), and of
 * what may have been so (maybe) all for the rank that is judged, none for the others; and with that
 * off which the processor did to it, where ranks share them (see above). Work is the steps'
 * items, if all ranks tell any, else the number of steps. Whether that is late, and surely, is
 * pki_job_field_judge's: at the level LATE_LEVEL, divided by the number of all comparisons (two
 * looks at each rank, one at each host). Time that all ranks take, a slow link or a large batch,
 * cancels: nobody is late then. A rank that is late has to be worth a word (see above), and where
 * ranks share processors, it has to stand out from them, too. What waiting for a slow link does to
 * its ends belongs to the link (see below).
 *
 * The ranks of a host are compared as one first: a host whose ranks are late together is one
 * finding, and its ranks are late only if they are so beyond it. A role is the ranks that have the
 * same stages: the ranks of a pipeline's ends are not compared with those of its middle. */

typedef struct pki_job_late {
    pki_job_when when;
    size_t begin, end;    /* blocks: of a part of the run, or all of it */
    uint64_t first, last; /* the same, steps */
    double share, worst;  /* now and then: of the blocks in which it is; by how much in these */
    size_t every;         /* ...each so many steps; 0: irregularly */
    double rest;          /* what it is late by in the rest of the run */
    double extra;         /* ns that it works longer than the others, in all */
    double lost;          /* ns that the job takes longer for it, in all */
    double ready;         /* once: ns without a processor while ready to run; -1: not known */
    double off;           /* ...and not on one for any reason; -1: not known */
    bool host;            /* all ranks of it; else... */
    size_t rank;          /* ...this one: its place in job.ranks, not its number */
    uint32_t host_at;     /* of job.hosts */
    size_t ranks;         /* how many that are */
    uint32_t processor;   /* that the rank alone has: it may be that; PKI_SEAT_UNKNOWN: none */
    double by, low, high; /* 0.05: 5 % longer for the same work, and the interval of that */
    size_t stage;         /* where most of it lies... */
    double stage_share;   /* ...and how much of it */
    double excess;        /* ns per step that it works longer than the others do */
    double cost;          /* ns per step that the job's steps would be shorter without it: less,
                             where others are as late in a step by chance */
} pki_job_late;

/* Ranks that may be late. */
typedef struct pki_job_undecided {
    size_t ranks, rank;   /* how many, and the latest of them: its place */
    double by, low, high; /* of unsure ones the interval, too; infinite: there is none */
} pki_job_undecided;

typedef struct pki_job_lateness {
    const char *why_not; /* why nobody could be judged; NULL: they were */
    bool by_work;        /* per item; else per step */
    size_t blocks, roles;
    double *by; /* by place of a rank: its median lateness, as a share; NAN: unknown */
    size_t count, room;
    pki_job_late *late; /* latest first */
    size_t stop_count, stop_room;
    pki_job_late *stops;         /* ranks that took very long once: dearest first */
    double time;                 /* ns of the job's steps, if anybody is late or was stopped */
    double least;                /* the limit, a share */
    double cost;                 /* of all of them together, ns per step */
    pki_job_undecided not_known; /* late, unless time without a processor explains it: of these
                               ranks nobody tells where in the run that was */
    pki_job_undecided not_alone; /* late as others on their host are, which share processors */
    pki_job_undecided at_link;   /* late by less than a tenth of what their slow link takes */
    pki_job_undecided unsure;    /* beyond the limit, and that may be chance */
    pki_job_undecided
        not_worth; /* beyond the limit, and so little of a step that it is not worth while */
    pki_job_processors processors;
} pki_job_lateness;

/* The number of the last step of a block, of the rank that has most. */
static inline uint64_t pki_job_last_step(const pki_job *j, size_t block)
{
    const pki_job_loop *loop = pki_job_usual(j);
    double steps = 1;
    for (size_t r = 0; r < j->rank_count; r++)
        steps = PKI_MAX(steps, loop->steps[pki_job_cell(j, block, r)]);
    return loop->first[block] + (uint64_t)steps - 1;
}

/* waits: NULL: nothing is known of links. */
bool pki_job_find_late(pki_job_lateness *l, const pki_job *j, const pki_job_waits *waits);
void pki_job_lateness_finish(pki_job_lateness *l);

/* Who is late, by how much, when, where, and what it costs: a sentence. */
void pki_job_describe_late(const pki_job *j, const pki_job_late *late, char *text, size_t size);

/* "stretch" */
const char *pki_job_when_name(pki_job_when when);

/* ---- a rank at the end of a slow link is not late for that ---- */

/* While it waits in each step, other ranks have its processor and its caches, and what it computes
 * behind that does take longer. Whoever mends the link mends that, so it belongs to the link where
 * it is little beside it: of a rank at either end, with by as lateness has it,
 *
 *     own time x by / (1 + by)  <  LINK_PART x (transfer - usual) x messages
 *
 * both over the run. On 8 ranks that shared 2 processors, and waited 20 ms a step, the left side
 * was 1 to 4 % of the link's. The share is chosen, not derived. */

/* ---- of those that are late: in which stage, and what it costs the job ---- */

bool pki_job_find_costs(const pki_job *j, const uint32_t *roles, pki_job_lateness *l);

/* ---- how much shorter a step were without what is wrong ---- */

/* Replayed (figures.h): a rank or a host that is late computes as long as the others for the same
 * work; a slow link takes what others do; a stage takes all ranks as long as their mean.
 * Where ranks lack processors, what one does not compute another one computes earlier: then nothing
 * is said. */

#define PKI_JOB_WHAT_IFS 16
#define PKI_JOB_IF_LEAST 0.005 /* of a step: what is less is not said */

typedef struct pki_job_what_if {
    enum { PKI_JOB_IF_RANK, PKI_JOB_IF_HOST, PKI_JOB_IF_LINK, PKI_JOB_IF_STAGE } sort;
    const pki_job_late *late; /* of a rank or host */
    const pki_job_link *link;
    size_t stage;
    double share, saved; /* of the job's steps; ns per step */
} pki_job_what_if;

/* ---- all that is found in a job, and said of it ---- */

/* From one rank to another, both included. */
typedef struct pki_job_gap {
    int32_t first, last;
} pki_job_gap;

typedef struct pki_job_findings {
    const pki_job *of;
    pki_job_lateness lateness;
    pki_job_pop pop;
    pki_job_frontier frontier; /* of the usual steps */
    pki_job_links links;
    pki_job_exchange exchange;
    pki_job_waits waits;
    pki_job_blames blames;
    size_t what_if_count;
    pki_job_what_if what_ifs[PKI_JOB_WHAT_IFS];
    size_t crowd_count;
    pki_job_crowd *crowds; /* by host */
    size_t missing_count;  /* ranks without a file, ... */
    size_t gap_count;      /* ...which are these, in order: a file may say 2,000,000,000 ranks */
    pki_job_gap *gaps;
    size_t cut_count; /* ranks whose run did not end, or whose file is cut off */
    int32_t *cut;
} pki_job_findings;

bool pki_job_find(pki_job_findings *f, const pki_job *j);
void pki_job_findings_finish(pki_job_findings *f);

/* what_if.c */
bool pki_job_find_what_ifs(pki_job_findings *f);

/* NULL: it was not asked. */
const pki_job_what_if *pki_job_what_if_of(const pki_job_findings *f, const pki_job_late *late);

/* "without rank 3's lateness" */
void pki_job_describe_what_if(const pki_job *j, const pki_job_what_if *w, char *text, size_t size);

/* What even the rank that waits least waits, as a share of the steps; 0 if it is not known. */
double pki_job_communication_share(const pki_job_findings *f);

/* A sentence. */
typedef struct pki_job_verdict {
    const char *name; /* "late-rank", "late-host", "slow-link", "slow-processor", "maybe-late",
                         "not-sure", "no-processor", "communication", "imbalance", "missing-ranks",
                         "cut-off", "waits-unknown", "not-judged", "long-step", "uneven",
                         "no-finding" */
    pki_severity severity;
    char *text;
    const pki_job_late *late;           /* of "late-rank" and "late-host" */
    const pki_job_undecided *unsure;    /* of "not-sure" */
    const pki_job_slow_processor *slow; /* of "slow-processor" */
} pki_job_verdict;

/* What is urgent first. */
typedef struct pki_job_verdicts {
    size_t count;
    pki_job_verdict *all;
} pki_job_verdicts;

bool pki_job_find_verdicts(pki_job_verdicts *v, const pki_job_findings *f);

/* The same for people: of more than so many that are late a few sentences, "late-ranks" by stage
 * and "late-hosts". */
#define PKI_JOB_LATE_SAID 6
bool pki_job_group_verdicts(pki_job_verdicts *v, const pki_job_findings *f);
void pki_job_verdicts_finish(pki_job_verdicts *v);

/* ---- events of calls of a job beside those of another one ---- */

/* What differs by more than the errors of both samples (measure/costs/events.h). What two runs
 * differ by anyway is not in these errors, so none of it makes a job slower. */

typedef struct pki_against_event {
    const char *region; /* a rank's */
    pki_event_figure figure;
    double before, before_error, now, now_error; /* of errors -1: not known */
    bool differs;
} pki_against_event;

typedef struct pki_against_events {
    size_t count;
    pki_against_event *rows; /* by region and figure; regions by their time now, most first */
} pki_against_events;

/* ---- a job beside another one, or a part of a run beside another part ---- */

/* What became slower, and whether that is beyond chance.
 *
 * Steps depend on their neighbours, so as many blocks of steps as belong together
 * (pki_samples_block) become one batch, and the means of batches are what is compared: Student's t
 * for two groups of logarithms, decided about all rows at once (Holm; bench/stats/evidence.h).
 * There are PKI_AGAINST_PARTS batches at most: what comes and goes within a run is in their spread
 * then.
 *
 * Two runs of one program differ by more than their steps tell: by where code and pages lie, by
 * hosts, caches, neighbours. So each interval is wider by PKI_AGAINST_RUNS of the step, which of a
 * part of the step is the more the smaller it is: a stage is slower if it makes the step longer by
 * that. And it is wider by the time in which either run was ready and had no processor, which may
 * all have been in what is compared. Where that is PKI_JOB_CROWDED_FROM or more nothing is called
 * slower or faster.
 *
 * A host may give one whole run a lower clock or a busy neighbour: nothing within two runs tells
 * that. Of PKI_AGAINST_RUNS_LEAST or more earlier runs it is known what runs differ by: each is one
 * sample then, and the new one is beside them as Student's t has it for one against several. */

#define PKI_AGAINST_MARGIN 1    /* %, unless another one is asked for */
#define PKI_AGAINST_RUNS 0.005  /* of a step: what two runs of one program differ by */
#define PKI_AGAINST_PLACES 0.02 /* of a rank: that it sits elsewhere */
#define PKI_AGAINST_PARTS 10
#define PKI_AGAINST_LEVEL 0.05 /* probability of one wrong verdict among all */
#define PKI_AGAINST_LEAST 0.01 /* stages with less of the step in both are not compared */
#define PKI_AGAINST_BATCHES_LEAST 4
#define PKI_AGAINST_RUNS_LEAST                                                                     \
    (PKI_MOMENTS_DF + 1) /* earlier ones, where there is more than one                             \
                          */

typedef enum pki_against_sort {
    PKI_AGAINST_STEP,  /* the job's step: the longest one of all ranks */
    PKI_AGAINST_STAGE, /* a stage, per step, the mean over ranks */
    PKI_AGAINST_RANK   /* a rank's own time, per step; of jobs of as many ranks */
} pki_against_sort;

typedef struct pki_against_row {
    pki_against_sort sort;
    const char *name, *step_kind, *kind; /* borrowed from the jobs */
    int32_t rank;
    double before, now; /* ns per step; of several earlier runs the geometric mean */
    size_t batches;     /* of the two, the fewer */
    double spread;      /* standard deviation between earlier runs (0.01); NAN: not known */
    pki_decision decision;
} pki_against_row;

/* Of two jobs with other numbers of ranks. */
typedef struct pki_against_scaling {
    bool known;
    bool strong;       /* the job's work per step is the same; else each rank's is */
    double efficiency; /* strong: T N before / T N now; weak: T before / T now */
    double speedup;    /* items per second now / before; without items: steps per second */
} pki_against_scaling;

typedef struct pki_against {
    const pki_job *now, *before; /* the latter: so many */
    size_t runs;
    double margin; /* 0.01 */
    size_t count, room;
    pki_against_row *rows;
    pki_against_scaling scaling;
    pki_against_events events; /* of sampled calls */
    double without[2];         /* shares of time without a processor, before and now */
    bool is_short;             /* of processors: nothing is decided */
    bool slower;               /* something is */
} pki_against;

/* before: one run, or PKI_AGAINST_RUNS_LEAST and more. False without memory. */
bool pki_job_against(pki_against *a, const pki_job *now, const pki_job *before, size_t runs,
                     double margin);
void pki_against_finish(pki_against *a);
