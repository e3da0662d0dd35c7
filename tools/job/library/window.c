#include "comm/mpi/stragglers_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/verdicts/verdicts.h"
#include "job/library/way_out.h"
#include "memory.h"

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

struct pki_straggler_window {
    int32_t ranks;
    member *members;
    uint64_t named;
    size_t suspect_count;
    suspect *suspects;
};

pki_straggler_window *pki_mpi_window_create(int32_t ranks, const char *hosts)
{
    pki_straggler_window *w = calloc(1, sizeof *w);
    member *members = calloc((size_t)ranks, sizeof *members);
    if (!w || !members) {
        free(w);
        free(members);
        return NULL;
    }
    *w = (pki_straggler_window){.ranks = ranks, .members = members};
    for (int32_t r = 0; r < ranks; r++)
        snprintf(members[r].host, sizeof members[r].host, "%s",
                 hosts + (size_t)r * PKI_WINDOW_HOST);
    return w;
}

void pki_mpi_window_destroy(pki_straggler_window *w)
{
    if (!w)
        return;
    free(w->members);
    free(w->suspects);
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

void pki_mpi_window_add(pki_straggler_window *w, const pk_job_steps_ *of_ranks)
{
    for (int32_t r = 0; w->members && r < w->ranks; r++)
        add(&w->members[r], &of_ranks[r]);
}

/* ---- as if it were of the ranks' files ---- */

static size_t fill_stages(const member *m, pki_stage_summary *s, size_t *places)
{
    s->stages = memory_zeroed(PK_JOB_STAGES_, sizeof *s->stages);
    for (size_t i = 0; i < PK_JOB_STAGES_; i++) {
        if (!m->stages[i].name[0])
            continue;
        places[s->stage_count] = i;
        s->stages[s->stage_count] =
            (pki_stage_row){memory_copy(m->stages[i].name), m->stages[i].kind};
        s->stage_count++;
    }
    return s->stage_count;
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

/* Not there where nobody told it of any step: 0 is something else. */
static void fill_no_processor(const member *m, pki_loop_row *row)
{
    uint64_t told = 0;
    for (size_t i = 0; i < m->count; i++)
        told += portion_at(m, i)->told;
    if (!told)
        return;
    row->no_processor = memory_zeroed(m->count, sizeof *row->no_processor);
    row->no_processor_count = m->count;
    for (size_t i = 0; i < m->count; i++)
        row->no_processor[i] = portion_at(m, i)->no_processor;
}

/* Of whom it is not known that is told, too. */
static void fill_seats(const member *m, pki_loop_row *row)
{
    row->seats = memory_zeroed(2 * m->count, sizeof *row->seats);
    row->seat_count = 2 * m->count;
    for (size_t i = 0; i < m->count; i++) {
        row->seats[2 * i] = portion_at(m, i)->processor;
        row->seats[2 * i + 1] = portion_at(m, i)->on_it;
    }
}

static void fill_steps(const member *m, pki_stage_summary *s)
{
    size_t places[PK_JOB_STAGES_], stages = fill_stages(m, s, places);
    s->width = PKI_BLOCK_HEAD + stages;
    s->loops = memory_zeroed(1, sizeof *s->loops);
    s->loop_count = 1;
    pki_loop_row *row = &s->loops[0];
    *row = (pki_loop_row){.name = memory_copy(""),
                          .numbers = memory_zeroed(m->count * s->width, sizeof(uint64_t))};
    row->number_count = m->count * s->width;
    for (size_t i = 0; i < m->count; i++)
        fill_row(portion_at(m, i), places, stages, row->numbers + i * s->width);
    fill_no_processor(m, row);
    fill_seats(m, row);
}

static void fill(const pki_straggler_window *w, int32_t rank, pki_summary *s)
{
    const member *m = &w->members[rank];
    pki_summary_init(s);
    s->run = (pki_run){.program = memory_copy(""),
                       .host = memory_copy(m->host),
                       .version = memory_copy(""),
                       .clock = memory_copy(""),
                       .trace_path = memory_copy(""),
                       .source = memory_copy("session"),
                       .rank = rank,
                       .world_size = w->ranks,
                       .pid = (uint32_t)rank,
                       .complete = true};
    s->steps.processor = m->processor;
    fill_steps(m, &s->stages);
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

static suspect *suspect_of(pki_straggler_window *w, const pk_job_late_ *late)
{
    for (size_t i = 0; i < w->suspect_count; i++)
        if (is_same(&w->suspects[i].late, late))
            return &w->suspects[i];
    w->suspects = memory_resized(w->suspects, (w->suspect_count + 1) * sizeof *w->suspects);
    w->suspects[w->suspect_count] = (suspect){.seen = 0};
    return &w->suspects[w->suspect_count++];
}

static bool is_gone(const suspect *s)
{
    return s->unseen && (!s->named || s->unseen >= PKI_WINDOW_CLEARED);
}

/* Those that are found now, one verdict more; the others, one less. */
static void note(pki_straggler_window *w, const pki_job *j, const pki_job_lateness *l)
{
    for (size_t i = 0; i < w->suspect_count; i++)
        w->suspects[i].unseen++;
    for (size_t i = 0; i < l->count; i++) {
        pk_job_late_ late = late_of(j, &l->late[i]);
        suspect *s = suspect_of(w, &late);
        s->late = late;
        s->seen = s->unseen > 1 ? 1 : s->seen + 1;
        s->unseen = 0;
        if (!s->named && s->seen >= PKI_WINDOW_NAMED) {
            s->named = true;
            s->order = w->named++;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->suspect_count; i++)
        if (!is_gone(&w->suspects[i]))
            w->suspects[kept++] = w->suspects[i];
    w->suspect_count = kept;
}

/* By how much they are late changes with each verdict: a word that has no room for all would name
 * now these and now those. */
static int first_named_first(const void *x, const void *y)
{
    const suspect *a = x, *b = y;
    return (a->order > b->order) - (a->order < b->order);
}

static void publish(pki_straggler_window *w, const pki_job *j, pk_job_word_ *word)
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

static void judge(pki_straggler_window *w, pk_job_word_ *word)
{
    pki_summary *all = memory_zeroed((size_t)w->ranks, sizeof *all);
    complaint why = {""};
    pki_job j;
    for (int32_t r = 0; r < w->ranks; r++)
        fill(w, r, &all[r]);
    if (pki_job_of(&j, all, (size_t)w->ranks, &(pki_job_steps){.given = false}, &why) &&
        pki_job_usual(&j)) {
        pki_job_lateness l = pki_job_find_late(&j, NULL);
        if (!l.why_not) { /* else nothing is known of anybody: neither that they are late any more
                           */
            note(w, &j, &l);
            publish(w, &j, word);
        }
        pki_job_lateness_finish(&l);
    }
    pki_job_finish(&j);
    free(all);
}

/* What the verdict had got by then stays, once: there are no more. */
static void end_window(pki_straggler_window *w)
{
    free(w->members);
    free(w->suspects);
    *w = (pki_straggler_window){.ranks = w->ranks};
}

bool pki_mpi_window_judge(pki_straggler_window *w, pk_job_word_ *word)
{
    jmp_buf no_memory;
    if (!w->members)
        return false;
    if (setjmp(no_memory) != 0) {
        end_window(w);
        return false;
    }
    memory_way_out(&no_memory);
    judge(w, word);
    return true;
}
