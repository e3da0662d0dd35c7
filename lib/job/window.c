#include "job/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/job.h"
#include "job/verdicts/verdicts.h"

typedef struct portion {
    uint64_t first, steps, time, items, no_processor, told;
    uint32_t processor, on_it;
    uint64_t selves[PK_JOB_STAGES_];
} portion;

typedef struct member {
    char host[PKI_WINDOW_HOST];
    pki_processor processor;
    pk_job_stage_ stages[PK_JOB_STAGES_]; /* without their times */
    size_t count;                         /* the oldest is at `begin` */
    size_t begin;
    portion kept[PKI_WINDOW_BLOCKS];
} member;

/* Who is late, or has been until lately. */
typedef struct suspect {
    pk_job_late_ late;
    unsigned seen, unseen; /* verdicts on end */
    bool named;
    uint64_t order; /* in which they were named */
} suspect;

struct pki_job_window {
    int32_t ranks;
    member *members;
    uint64_t named;
    size_t suspect_count, suspect_room;
    suspect *suspects;
};

pki_job_window *pki_job_window_create(int32_t ranks, const char *hosts)
{
    pki_job_window *w = calloc(1, sizeof *w);
    member *members = pki_array_zeroed((size_t)ranks, sizeof *members);
    if (!w || !members) {
        free(w);
        free(members);
        return NULL;
    }
    *w = (pki_job_window){.ranks = ranks, .members = members};
    for (int32_t r = 0; r < ranks; r++)
        snprintf(members[r].host, sizeof members[r].host, "%s",
                 hosts + (size_t)r * PKI_WINDOW_HOST);
    return w;
}

/* What the verdict had got by then stays, once: there are no more. */
static void end(pki_job_window *w)
{
    free(w->members);
    free(w->suspects);
    *w = (pki_job_window){.ranks = w->ranks};
}

void pki_job_window_destroy(pki_job_window *w)
{
    if (w)
        end(w);
    free(w);
}

/* ---- what ranks tell ---- */

static bool is_named_alike(const pk_job_stage_ *a, const pk_job_stage_ *b)
{
    return a->kind == b->kind && strncmp(a->name, b->name, sizeof a->name) == 0;
}

/* A place whose stage is another one than before: what is kept would be told under its name. */
static void set_stages(member *m, const pk_job_steps_ *from)
{
    for (size_t i = 0; i < PK_JOB_STAGES_; i++) {
        const pk_job_stage_ *next = &from->stages[i];
        if (!next->name[0] || is_named_alike(&m->stages[i], next))
            continue;
        if (m->stages[i].name[0])
            m->count = 0;
        m->stages[i] = *next;
        m->stages[i].name[sizeof next->name - 1] = 0;
    }
}

static const portion *portion_at(const member *m, size_t i)
{
    return &m->kept[(m->begin + i) % PKI_WINDOW_BLOCKS];
}

static portion *next_portion(member *m)
{
    if (m->count == PKI_WINDOW_BLOCKS) {
        m->begin = (m->begin + 1) % PKI_WINDOW_BLOCKS;
        m->count--;
    }
    return &m->kept[(m->begin + m->count++) % PKI_WINDOW_BLOCKS];
}

static void add(member *m, const pk_job_steps_ *from)
{
    if (!from->steps)
        return;
    if (m->count && from->first <= portion_at(m, m->count - 1)->first)
        m->count = 0;
    set_stages(m, from);
    portion *to = next_portion(m);
    *to = (portion){.first = from->first,
                    .steps = from->steps,
                    .time = from->time,
                    .items = from->items,
                    .no_processor = from->no_processor,
                    .told = from->told,
                    .processor = from->processor,
                    .on_it = from->on_it};
    for (size_t i = 0; i < PK_JOB_STAGES_; i++)
        to->selves[i] = from->stages[i].self;
    m->processor =
        (pki_processor){.observed = from->observed, .running = from->running, .ready = from->ready};
}

void pki_job_window_add(pki_job_window *w, const pk_job_steps_ *of_ranks)
{
    for (int32_t r = 0; w->members && r < w->ranks; r++)
        add(&w->members[r], &of_ranks[r]);
}

/* ---- as if it were of the ranks' files ---- */

/* What a rank's report would say of the window, with room for all of it. */
typedef struct report {
    pki_stage_row stages[PK_JOB_STAGES_];
    pki_loop_row steps;
    uint64_t numbers[PKI_WINDOW_BLOCKS * (PKI_BLOCK_HEAD + PK_JOB_STAGES_)];
    uint64_t no_processor[PKI_WINDOW_BLOCKS], seats[2 * PKI_WINDOW_BLOCKS];
} report;

/* Names are the member's. */
static size_t fill_stages(member *m, pki_stage_row *rows, size_t *places)
{
    size_t count = 0;
    for (size_t i = 0; i < PK_JOB_STAGES_; i++) {
        if (!m->stages[i].name[0])
            continue;
        places[count] = i;
        rows[count++] = (pki_stage_row){m->stages[i].name, m->stages[i].kind};
    }
    return count;
}

static void fill_row(const portion *p, const size_t *places, size_t stages, uint64_t *row)
{
    row[PKI_BLOCK_INDEX] = p->first;
    row[PKI_BLOCK_STEPS] = p->steps;
    row[PKI_BLOCK_TIME] = p->time;
    row[PKI_BLOCK_ITEMS] = p->items;
    for (size_t k = 0; k < stages; k++)
        row[PKI_BLOCK_HEAD + k] = p->selves[places[k]];
}

/* No processor is not there where nobody told it of any step: 0 is something else. Of whom it is
 * not known where it was that is told, too. */
static void fill_steps(const member *m, report *r, const size_t *places, size_t stages)
{
    static char usual[] = "";
    uint64_t told = 0;
    for (size_t i = 0; i < m->count; i++) {
        const portion *p = portion_at(m, i);
        fill_row(p, places, stages, r->numbers + i * (PKI_BLOCK_HEAD + stages));
        told += p->told;
        r->no_processor[i] = p->no_processor;
        r->seats[2 * i] = p->processor;
        r->seats[2 * i + 1] = p->on_it;
    }
    r->steps = (pki_loop_row){.name = usual,
                              .number_count = m->count * (PKI_BLOCK_HEAD + stages),
                              .numbers = r->numbers,
                              .no_processor_count = told ? m->count : 0,
                              .no_processor = told ? r->no_processor : NULL,
                              .seat_count = 2 * m->count,
                              .seats = r->seats};
}

static void fill(member *m, int32_t rank, report *r, pki_job_rank *to)
{
    size_t places[PK_JOB_STAGES_], stages = fill_stages(m, r->stages, places);
    fill_steps(m, r, places, stages);
    *to = (pki_job_rank){.rank = rank,
                         .processor = m->processor,
                         .stages = {.width = PKI_BLOCK_HEAD + stages,
                                    .stage_count = stages,
                                    .stages = r->stages,
                                    .loop_count = 1,
                                    .loops = &r->steps}};
}

/* To be given to free_job in any case. */
static bool make_job(pki_job_window *w, report *reports, pki_job *j)
{
    *j = (pki_job){.world = w->ranks,
                   .live = true,
                   .ranks = pki_array_zeroed((size_t)w->ranks, sizeof *j->ranks)};
    for (int32_t r = 0; j->ranks && r < w->ranks; r++) {
        pki_job_rank *to = &j->ranks[j->rank_count++];
        fill(&w->members[r], r, &reports[r], to);
        to->host = pki_texts_add(&j->hosts, w->members[r].host);
        if (to->host == PKI_TEXTS_NONE)
            return false;
    }
    return j->ranks && pki_job_make_loops(j, &(pki_job_steps){.given = false}) == PKI_JOB_MADE;
}

static void free_job(pki_job *j)
{
    pki_job_free_loops(j);
    pki_texts_finish(&j->hosts);
    free(j->ranks);
}

/* ---- who is named ---- */

static bool is_same(const pk_job_late_ *a, const pk_job_late_ *b)
{
    return a->rank == b->rank && (a->rank >= 0 || strcmp(a->host, b->host) == 0);
}

static pk_job_late_ late_of(const pki_job *j, const pki_job_late *found)
{
    pk_job_late_ out = {.rank = found->host ? -1 : j->ranks[found->rank].rank,
                        .ranks = (uint32_t)found->ranks,
                        .by = found->by};
    snprintf(out.host, sizeof out.host, "%s", j->hosts.texts[found->host_at]);
    pki_job_describe_late(j, found, out.text, sizeof out.text);
    return out;
}

/* NULL without memory. */
static suspect *suspect_of(pki_job_window *w, const pk_job_late_ *late)
{
    for (size_t i = 0; i < w->suspect_count; i++)
        if (is_same(&w->suspects[i].late, late))
            return &w->suspects[i];
    if (!pki_array_fit(&w->suspects, &w->suspect_room, w->suspect_count + 1, sizeof *w->suspects))
        return NULL;
    w->suspects[w->suspect_count] = (suspect){.seen = 0};
    return &w->suspects[w->suspect_count++];
}

static bool is_gone(const suspect *s)
{
    return s->unseen && (!s->named || s->unseen >= PKI_WINDOW_CLEARED);
}

static void see(pki_job_window *w, suspect *s, const pk_job_late_ *late, unsigned needed)
{
    s->late = *late;
    s->seen = s->unseen > 1 ? 1 : s->seen + 1;
    s->unseen = 0;
    if (!s->named && s->seen >= needed) {
        s->named = true;
        s->order = w->named++;
    }
}

/* Who was late for some of the steps that are kept is not so any more. */
static bool is_over(const pki_job *j, const pki_job_late *late)
{
    return late->when != PKI_JOB_ALL_ALONG && late->end + 1 < pki_job_usual(j)->block_count;
}

/* Those that are found now, one verdict more; the others, one less. */
static bool note(pki_job_window *w, const pki_job *j, const pki_job_lateness *l)
{
    for (size_t i = 0; i < w->suspect_count; i++)
        w->suspects[i].unseen++;
    for (size_t i = 0; i < l->count; i++) {
        if (is_over(j, &l->late[i]))
            continue;
        pk_job_late_ late = late_of(j, &l->late[i]);
        suspect *s = suspect_of(w, &late);
        if (!s)
            return false;
        see(w, s, &late, l->late[i].when == PKI_JOB_STRETCH ? 1 : PKI_WINDOW_NAMED);
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->suspect_count; i++)
        if (!is_gone(&w->suspects[i]))
            w->suspects[kept++] = w->suspects[i];
    w->suspect_count = kept;
    return true;
}

/* By how much they are late changes with each verdict: a word that has no room for all would name
 * now these and now those. */
static int first_named_first(const void *x, const void *y)
{
    const suspect *a = x, *b = y;
    return (a->order > b->order) - (a->order < b->order);
}

static void publish(pki_job_window *w, const pki_job *j, pk_job_word_ *word)
{
    const pki_job_loop *loop = pki_job_usual(j);
    if (w->suspect_count)
        qsort(w->suspects, w->suspect_count, sizeof *w->suspects, first_named_first);
    word->count = 0;
    for (size_t i = 0; i < w->suspect_count; i++) {
        if (!w->suspects[i].named)
            continue;
        if (word->count < PK_JOB_LATE_)
            word->late[word->count] = w->suspects[i].late;
        word->count++;
    }
    double steps = 0; /* of the last block, of the rank that has most */
    for (size_t r = 0; r < j->rank_count; r++) {
        double of_rank = loop->steps[pki_job_cell(j, loop->block_count - 1, r)];
        steps = of_rank > steps ? of_rank : steps;
    }
    word->first = loop->first[0];
    word->last = loop->first[loop->block_count - 1] + (uint64_t)steps - 1;
}

static bool judge_job(pki_job_window *w, const pki_job *j, pk_job_word_ *word)
{
    pki_job_lateness l;
    bool done = pki_job_find_late(&l, j, NULL);
    /* Else nothing is known of anybody: neither that they are late any more. */
    if (done && !l.why_not) {
        done = note(w, j, &l);
        if (done)
            publish(w, j, word);
    }
    pki_job_lateness_finish(&l);
    return done;
}

static bool judge(pki_job_window *w, pk_job_word_ *word)
{
    pki_job j;
    report *reports = pki_array_zeroed((size_t)w->ranks, sizeof *reports);
    bool done = reports != NULL;
    if (done) {
        done = make_job(w, reports, &j) && (!pki_job_usual(&j) || judge_job(w, &j, word));
        free_job(&j);
    }
    free(reports);
    return done;
}

bool pki_job_window_judge(pki_job_window *w, pk_job_word_ *word)
{
    if (!w->members)
        return false;
    if (judge(w, word))
        return true;
    end(w);
    return false;
}
