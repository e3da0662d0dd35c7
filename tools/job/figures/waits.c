#include "job/figures/waits.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "comm/figures/figures.h"
#include "comm/model/operation.h"
#include "job/read/axis.h"
#include "job/figures/waits_exchanges.h"
#include "job/figures/waits_links.h"
#include "memory.h"

const char *const job_wait_names[JOB_WAITS] = {
    [JOB_LATE_SENDER] = "late sender",       [JOB_LATE_RECEIVER] = "late receiver",
    [JOB_WAIT_NXN] = "wait at N x N",        [JOB_WAIT_BARRIER] = "wait at barrier",
    [JOB_LATE_BROADCAST] = "late broadcast", [JOB_EARLY_REDUCE] = "early reduce"};
const char *const job_wait_keys[JOB_WAITS] = {[JOB_LATE_SENDER] = "late_sender",
                                              [JOB_LATE_RECEIVER] = "late_receiver",
                                              [JOB_WAIT_NXN] = "wait_nxn",
                                              [JOB_WAIT_BARRIER] = "wait_barrier",
                                              [JOB_LATE_BROADCAST] = "late_broadcast",
                                              [JOB_EARLY_REDUCE] = "early_reduce"};

/* An operation as one rank saw it; moments are the axis'. */
typedef struct seen {
    uint64_t key;
    const pki_sequence_row *row;
    size_t rank;
} seen;

typedef struct moments {
    int64_t starts, waits, ends; /* waits: from when on */
} moments;

typedef struct analysis {
    const job *of;
    job_axis axis;
    job_waits *to;
    job_transfers transfers;
    job_waiting waiting;
    job_exchanges exchanges;
    bool *exchange; /* by rank: does it send and receive in one call? */
} analysis;

static moments moments_of(const analysis *a, const seen *s)
{
    const pki_sequence_row *r = s->row;
    return (moments){job_axis_at(&a->axis, s->rank, r->start),
                     job_axis_at(&a->axis, s->rank, r->start + r->duration - r->waited),
                     job_axis_at(&a->axis, s->rank, r->start + r->duration)};
}

static uint64_t one_in(const analysis *a, const seen *s)
{
    return a->of->ranks[s->rank].comm.sequences.one_in;
}

/* Of all that were not chosen this stands for so many: who chose fewest decides. */
static double scale_of(const analysis *a, const seen *all, size_t count)
{
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++)
        most = PKI_MAX(most, one_in(a, &all[i]));
    return (double)most;
}

/* `who` waited from m.waits to m.ends, and until `until` for what `other` (NULL: nobody) did then.
 */
static void add_wait(analysis *a, job_wait sort, const seen *who, const moments *m,
                     const seen *other, int64_t until, double scale)
{
    int64_t doubt = other ? job_axis_doubt(&a->axis, who->rank, other->rank) : -1;
    until = PKI_MIN(until, m->ends);
    bool is_late = doubt >= 0 && until - m->waits > doubt;
    job_waiting_add(&a->waiting, &(job_waited){.rank = who->rank,
                                               .other = other ? other->rank : who->rank,
                                               .sort = sort,
                                               .waits = m->waits,
                                               .ends = m->ends,
                                               .from = m->waits,
                                               .until = is_late ? until : m->waits,
                                               .scale = scale,
                                               .doubt = doubt,
                                               .share = 1});
}

/* ---- messages ---- */

#define CALL_BEGINS 10000 /* ns after its operation, at most */

/* May it have ended with a send that took longer? Such a receive begins just before its call. */
static bool may_be_half(const analysis *a, const seen *receive)
{
    uint64_t before = receive->row->duration - receive->row->waited;
    return a->exchange[receive->rank] && before > 0 && before < CALL_BEGINS;
}

/* Of one that had come before it was wanted nobody knows how long it took. */
static void add_transfer(analysis *a, const seen *send, const seen *receive, int64_t doubt)
{
    moments s = moments_of(a, send), r = moments_of(a, receive);
    if (doubt < 0 || r.waits > s.starts || may_be_half(a, receive))
        return;
    job_transfers_add(
        &a->transfers,
        &(job_transfer){send->rank, receive->rank,
                        a->of->ranks[send->rank].host != a->of->ranks[receive->rank].host,
                        pki_comm_class(send->row->bytes), r.ends,
                        (double)PKI_MAX(r.ends - PKI_MAX(s.starts, r.waits), 0), (double)doubt});
}

static void add_late_receiver(analysis *a, const seen *send, const seen *receive, double scale)
{
    moments s = moments_of(a, send), r = moments_of(a, receive);
    int64_t doubt = job_axis_doubt(&a->axis, send->rank, receive->rank);
    bool waited = r.starts <= s.ends; /* else not for that */
    if (waited && send->row->op == PK_OP_SEND_RECV && doubt >= 0 && r.starts - s.waits > doubt)
        job_exchanges_sent(&a->exchanges,
                           &(job_half_sent){send->rank, receive->rank, send->row->start, s.waits,
                                            s.ends, r.starts, doubt, scale});
    else
        add_wait(a, JOB_LATE_RECEIVER, send, &s, waited ? receive : NULL, r.starts, scale);
}

static void classify_message(analysis *a, const seen *send, const seen *receive)
{
    moments s = moments_of(a, send), r = moments_of(a, receive);
    const seen both[2] = {*send, *receive};
    double scale = scale_of(a, both, 2);
    int64_t doubt = job_axis_doubt(&a->axis, send->rank, receive->rank);
    if (send->row->bytes != receive->row->bytes || (doubt >= 0 && s.starts > r.ends + doubt)) {
        a->to->alone += 2; /* two messages: one side has not numbered all */
        return;
    }
    a->to->messages++;
    add_wait(a, JOB_LATE_SENDER, receive, &r, send, s.starts, scale);
    add_late_receiver(a, send, receive, scale);
    add_transfer(a, send, receive, doubt);
    if (a->exchange[receive->rank])
        job_exchanges_received(&a->exchanges,
                               &(job_half_received){receive->rank, receive->row->start,
                                                    receive->row->start + receive->row->duration,
                                                    s.starts});
}

/* ---- collectives ---- */

static size_t last_of(const analysis *a, const seen *all, size_t count)
{
    size_t last = 0;
    for (size_t i = 1; i < count; i++)
        if (moments_of(a, &all[i]).starts > moments_of(a, &all[last]).starts)
            last = i;
    return last;
}

static void add_all_to_all_waits(analysis *a, const seen *all, size_t count, double scale)
{
    size_t last = last_of(a, all, count);
    int64_t until = moments_of(a, &all[last]).starts;
    job_wait sort = all[0].row->op == PK_OP_BARRIER ? JOB_WAIT_BARRIER : JOB_WAIT_NXN;
    for (size_t i = 0; i < count; i++) {
        moments m = moments_of(a, &all[i]);
        add_wait(a, sort, &all[i], &m, i != last ? &all[last] : NULL, until, scale);
    }
}

static const seen *root_of(const analysis *a, const seen *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a->of->ranks[all[i].rank].rank == all[i].row->partner)
            return &all[i];
    return NULL;
}

static void add_late_broadcast(analysis *a, const seen *all, size_t count, double scale)
{
    const seen *root = root_of(a, all, count);
    for (size_t i = 0; root && i < count; i++) {
        moments m = moments_of(a, &all[i]);
        bool is_root = &all[i] == root;
        add_wait(a, JOB_LATE_BROADCAST, &all[i], &m, is_root ? NULL : root,
                 moments_of(a, root).starts, scale);
    }
}

static void add_early_reduce(analysis *a, const seen *all, size_t count, double scale)
{
    const seen *root = root_of(a, all, count), *first = NULL;
    for (size_t i = 0; i < count; i++)
        if (&all[i] != root &&
            (!first || moments_of(a, &all[i]).starts < moments_of(a, first).starts))
            first = &all[i];
    for (size_t i = 0; root && first && i < count; i++) {
        moments m = moments_of(a, &all[i]);
        bool is_root = &all[i] == root;
        add_wait(a, JOB_EARLY_REDUCE, &all[i], &m, is_root ? first : NULL,
                 moments_of(a, first).starts, scale);
    }
}

static void classify_collective(analysis *a, const seen *all, size_t count)
{
    double scale = scale_of(a, all, count);
    uint32_t op = all[0].row->op;
    a->to->collectives++;
    if (op == PK_OP_BROADCAST || op == PK_OP_SCATTER)
        add_late_broadcast(a, all, count, scale);
    else if (op == PK_OP_REDUCE || op == PK_OP_GATHER)
        add_early_reduce(a, all, count, scale);
    else
        add_all_to_all_waits(a, all, count, scale);
}

/* ---- which belong together ---- */

static int in_order(const void *x, const void *y)
{
    const seen *a = x, *b = y;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    int received = (a->row->op == PK_OP_RECV) - (b->row->op == PK_OP_RECV);
    return received ? received : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Once at each of its ranks, and the same thing there? */
static bool is_whole(const seen *all, size_t count)
{
    if (pki_comm_op_is_message(all[0].row->op))
        return count == 2 && all[0].row->op != PK_OP_RECV && all[1].row->op == PK_OP_RECV;
    for (size_t i = 1; i < count; i++)
        if (all[i].rank == all[i - 1].rank || all[i].row->op != all[0].row->op)
            return false;
    return count > 1 && count == all[0].row->ranks;
}

static void classify_group(analysis *a, const seen *all, size_t count)
{
    if (!is_whole(all, count))
        a->to->alone += count;
    else if (pki_comm_op_is_message(all[0].row->op))
        classify_message(a, &all[0], &all[1]);
    else
        classify_collective(a, all, count);
}

static void find_exchanges(analysis *a)
{
    a->exchange = memory_zeroed(a->of->rank_count + 1, sizeof *a->exchange);
    for (size_t r = 0; r < a->of->rank_count; r++) {
        const pki_sequences *q = &a->of->ranks[r].comm.sequences;
        for (size_t i = 0; i < q->row_count; i++)
            a->exchange[r] |= q->rows[i].op == PK_OP_SEND_RECV;
    }
}

static seen *collect_operations(const job *j, size_t *count)
{
    size_t n = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        n += j->ranks[r].comm.sequences.row_count;
    seen *all = memory_zeroed(n + 1, sizeof *all);
    *count = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        const pki_sequences *q = &j->ranks[r].comm.sequences;
        for (size_t i = 0; i < q->row_count; i++)
            if (job_axis_believes(&q->rows[i]))
                all[(*count)++] = (seen){q->rows[i].key, &q->rows[i], r};
    }
    if (*count)
        qsort(all, *count, sizeof *all, in_order);
    return all;
}

static void classify_all(analysis *a)
{
    size_t count;
    seen *all = collect_operations(a->of, &count);
    find_exchanges(a);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && all[next].key == all[i].key; next++)
            ;
        classify_group(a, &all[i], next - i);
    }
    job_exchanges_end(&a->exchanges, &a->waiting, a->of->rank_count);
    job_waiting_end(&a->waiting, a->of, a->to);
    free(a->exchange);
    free(all);
}

job_waits job_find_waits(const job *j)
{
    job_waits w = {0};
    analysis a = {.of = j, .to = &w};
    if (!job_axis_make(&a.axis, j)) {
        job_axis_finish(&a.axis);
        w.why_not = "the files have no single operations of ranks that share communicators";
        return w;
    }
    for (int i = 0; i < JOB_WAITS; i++)
        w.by[i] = memory_zeroed(j->rank_count + 1, sizeof *w.by[i]);
    w.caused = memory_zeroed(j->rank_count + 1, sizeof *w.caused);
    classify_all(&a);
    job_axis_finish(&a.axis);
    w.links = job_links_of_transfers(&a.transfers, j, &w.link_count);
    free(a.transfers.all);
    if (!w.messages && !w.collectives) {
        job_waits_finish(&w);
        w.why_not = "no operation was found at all of its ranks";
    }
    return w;
}

void job_waits_finish(job_waits *w)
{
    for (int i = 0; i < JOB_WAITS; i++)
        free(w->by[i]);
    free(w->caused);
    free(w->links);
    *w = (job_waits){0};
}

double job_wait_sum(const job *j, const double *by_rank, int32_t *most)
{
    double sum = 0;
    size_t at = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        sum += by_rank[r];
        at = by_rank[r] > by_rank[at] ? r : at;
    }
    *most = sum > 0 ? j->ranks[at].rank : JOB_NO_RANK;
    return sum;
}
