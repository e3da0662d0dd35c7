/* lib/session/job/stragglers.c - ranks that are late, while they run: this rank's steps for
 * libpk_mpi, which compares them with the others', and what comes of it (pk/private.h).
 *
 *     fold -> portions of steps -> box -> libpk_mpi, in a call of MPI's
 *     libpk_mpi -> word -> a round later: log, arena, a capture of this rank
 *
 * The program's threads take from the box and leave the word without a lock.
 */
#include <stdio.h>
#include <string.h>

#include <pk/private.h>

#include "base/log.h"
#include "core/names.h"
#include "measure/steps/steps.h"
#include "session/captures/captures.h"
#include "session/session.h"

#define BOX 16u

static uint32_t every;
static void (*judge_ranks)(void);

/* One puts in, one takes out. */
static struct {
    uint32_t put, taken;
    pk_job_steps_ steps[BOX];
} box;

/* The last word that came; held for a copy. */
static struct {
    pthread_mutex_t lock;
    bool fresh;
    int32_t rank;
    pk_job_word_ word;
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pk_job_word_ before; /* the last one that was applied; under the drain lock */

/* ---- this rank's steps ---- */

static void name_stage(pk_job_stage_ *out, const char *name, uint32_t kind)
{
    snprintf(out->name, sizeof out->name, "%s", name);
    out->kind = (uint8_t)kind;
}

static void fill_stages(const pki_steps *steps, const pki_portion *from, pk_job_stage_ *out)
{
    for (size_t i = 0; i < PKI_PORTION_STAGES; i++) {
        uint32_t id = 0, kind = PK_OTHER;
        const pki_name *name =
            pki_steps_portion_stage(steps, i, &id, &kind) ? pki_name_at(id) : NULL;
        out[i].self = from->selves[i];
        if (name)
            name_stage(&out[i], name->name, kind);
    }
    if (from->selves[PKI_PORTION_OWN])
        name_stage(&out[PKI_PORTION_OWN], "(others)", PK_OTHER);
    if (from->selves[PKI_PORTION_WAITS])
        name_stage(&out[PKI_PORTION_WAITS], "(other waits)", PK_WAIT);
}

static void put(const pki_session *s, const pki_steps *steps, uint64_t length, const pki_portion *p)
{
    pk_job_steps_ *out = &box.steps[box.put % BOX];
    pki_seat seat = pki_seats_most(&p->seats);
    *out = (pk_job_steps_){.first = p->number * length,
                           .steps = p->steps,
                           .time = p->time,
                           .items = p->items,
                           .no_processor = p->no_processor,
                           .told = (uint32_t)p->told,
                           .processor = seat ? pki_seat_processor(seat) : 0,
                           .on_it = pki_seat_share(seat),
                           .observed = s->toll.stepper.observed,
                           .running = s->toll.stepper.running,
                           .ready = s->toll.stepper.ready};
    fill_stages(steps, p, out->stages);
    pki_store_release(&box.put, box.put + 1);
}

/* As in the report, where the program has said how many of them there are. */
static bool is_warmup(const pki_session *s, uint64_t length, const pki_portion *p)
{
    return p->number * length < s->config.warmup_steps;
}

static void publish_steps(const pki_session *s)
{
    uint64_t length = pki_load(&every);
    pki_portion portion;
    pki_fold_lock();
    pki_steps *steps = pki_fold_now()->steps;
    pki_steps_expect_portions(steps, length);
    /* pairs with the release of who takes: its copy is made */
    while (box.put - pki_load_acquire(&box.taken) < BOX && pki_steps_pop_portion(steps, &portion))
        if (!is_warmup(s, length, &portion))
            put(s, steps, length, &portion);
    pki_fold_unlock();
}

void pk_job_steps_expect_(uint32_t steps)
{
    pki_store(&every, steps);
}

uint32_t pk_job_steps_take_(pk_job_steps_ *steps)
{
    if (box.taken == pki_load_acquire(&box.put)) /* pairs with the release in put() */
        return 0;
    *steps = box.steps[box.taken % BOX];
    pki_store_release(&box.taken, box.taken + 1);
    return 1;
}

/* ---- what is said of all ranks ---- */

static bool is_same(const pk_job_late_ *a, const pk_job_late_ *b)
{
    return a->rank == b->rank && (a->rank >= 0 || strcmp(a->host, b->host) == 0);
}

static bool has(const pk_job_word_ *word, const pk_job_late_ *late)
{
    for (uint32_t i = 0; i < word->count && i < PK_JOB_LATE_; i++)
        if (is_same(&word->late[i], late))
            return true;
    return false;
}

static bool is_here(const pki_session *s, const pk_job_late_ *late, int32_t rank)
{
    return late->rank >= 0 ? late->rank == rank : strcmp(late->host, s->config.world.host) == 0;
}

static void log_end(const pk_job_word_ *word, const pk_job_late_ *late)
{
    char who[80];
    if (late->rank >= 0)
        snprintf(who, sizeof who, "rank %d", late->rank);
    else
        snprintf(who, sizeof who, "host %.64s", late->host);
    pki_log(PK_LOG_WARNING, "%s is not late any more (steps %llu to %llu)", who,
            (unsigned long long)word->first, (unsigned long long)word->last);
}

static void log_changes(const pk_job_word_ *word)
{
    for (uint32_t i = 0; i < before.count && i < PK_JOB_LATE_; i++)
        if (word->count <= PK_JOB_LATE_ && !has(word, &before.late[i]))
            log_end(word, &before.late[i]);
    for (uint32_t i = 0; i < word->count && i < PK_JOB_LATE_; i++)
        if (!has(&before, &word->late[i]))
            pki_log(PK_LOG_WARNING, "%s (steps %llu to %llu)", word->late[i].text,
                    (unsigned long long)word->first, (unsigned long long)word->last);
}

static void show(pki_session *s, const pk_job_word_ *word)
{
    pki_stragglers *to = &s->arena->header->stragglers;
    size_t used = 0;
    to->words[0] = 0;
    for (uint32_t i = 0; i < word->count && i < PK_JOB_LATE_ && used < sizeof to->words; i++)
        used += (size_t)snprintf(to->words + used, sizeof to->words - used, "%s%s",
                                 used ? "\n" : "", word->late[i].text);
    pki_store(&to->first, word->first);
    pki_store(&to->last, word->last);
    pki_store_release(&to->count, word->count); /* the words are whole before it */
}

/* Refused where there is no history. */
static void capture(const pki_session *s, const pk_job_word_ *word, int32_t rank)
{
    for (uint32_t i = 0; i < word->count && i < PK_JOB_LATE_; i++)
        if (is_here(s, &word->late[i], rank) && !has(&before, &word->late[i]))
            (void)pki_requests_call(PKI_CAPTURE_STRAGGLER, word->late[i].text,
                                    PKI_CAPTURE_STRAGGLER_STEPS);
}

static void apply_word(pki_session *s, const pk_job_word_ *word, int32_t rank)
{
    show(s, word);
    if (rank == 0)
        log_changes(word);
    if (s->config.capture.straggler)
        capture(s, word, rank);
    before = *word;
}

/* In each round, behind folding; under the drain lock. */
static void tell_steps(pki_session *s)
{
    static pk_job_word_ word; /* large; under the drain lock */
    if (pki_load(&every))
        publish_steps(s);
    pthread_mutex_lock(&said.lock);
    bool fresh = said.fresh;
    int32_t rank = said.rank;
    if (fresh)
        word = said.word;
    said.fresh = false;
    pthread_mutex_unlock(&said.lock);
    if (fresh)
        apply_word(s, &word, rank);
}

/* Nobody waits here: the next word says what one that is lost has said. */
void pk_job_say_(const pk_job_word_ *word, int32_t rank)
{
    if (pthread_mutex_trylock(&said.lock) != 0)
        return;
    said.word = *word;
    said.rank = rank;
    said.fresh = true;
    pthread_mutex_unlock(&said.lock);
}

void pk_job_each_round_(void (*judge)(void))
{
    pki_store_release(&judge_ranks, judge);
}

/* In each round of perfkit's own thread, without a lock. */
static void judge_now(void)
{
    void (*judge)(void) = pki_load_acquire(&judge_ranks);
    if (judge)
        judge();
}

/* The parent's MPI is not the child's. */
static void after_fork(void)
{
    every = 0;
    judge_ranks = NULL;
    box.put = box.taken = 0;
    pthread_mutex_init(&said.lock, NULL);
    said.fresh = false;
    before.count = 0;
}

const pki_service pki_service_stragglers = {
    .name = "stragglers",
    .folded = tell_steps,
    .unlocked = judge_now,
    .after_fork = after_fork,
};
