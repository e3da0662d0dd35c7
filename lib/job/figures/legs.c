/* lib/job/figures/legs.c - whom ranks wait for in a stage: by the name of the call, and of
 * collectives by whose they are */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "comm/model/communicator.h"
#include "job/figures/figures_internal.h"

/* ---- whom a stage waits for ---- */

static const pki_job_way ways[] = {
    {"MPI_Send", FOR_RECEIVERS, SENDS},
    {"MPI_Ssend", FOR_RECEIVERS, SENDS},
    {"MPI_Rsend", FOR_RECEIVERS, SENDS},
    {"MPI_Bsend", FOR_NOBODY, SENDS},
    {"MPI_Isend", FOR_NOBODY, SENDS},
    {"MPI_Issend", FOR_NOBODY, SENDS},
    {"MPI_Irsend", FOR_NOBODY, SENDS},
    {"MPI_Ibsend", FOR_NOBODY, SENDS},
    {"MPI_Isendrecv", FOR_NOBODY, SENDS | RECEIVES},
    {"MPI_Isendrecv_replace", FOR_NOBODY, SENDS | RECEIVES},
    {"MPI_Sendrecv", FOR_EITHER, SENDS | RECEIVES},
    {"MPI_Sendrecv_replace", FOR_EITHER, SENDS | RECEIVES},
    {"MPI_Start", FOR_NOBODY, SENDS | RECEIVES},
    {"MPI_Startall", FOR_NOBODY, SENDS | RECEIVES},
    {"MPI_Recv", FOR_SENDERS, RECEIVES},
    {"MPI_Mrecv", FOR_SENDERS, RECEIVES},
    {"MPI_Irecv", FOR_NOBODY, RECEIVES},
    {"MPI_Imrecv", FOR_NOBODY, RECEIVES},
    {"MPI_Probe", FOR_SENDERS, 0},
    {"MPI_Mprobe", FOR_SENDERS, 0},
    {"MPI_Wait", FOR_EITHER, 0},
    {"MPI_Waitall", FOR_EITHER, 0},
    {"MPI_Waitany", FOR_EITHER, 0},
    {"MPI_Waitsome", FOR_EITHER, 0},
    {"MPI_Test", FOR_EITHER, 0},
    {"MPI_Testall", FOR_EITHER, 0},
    {"MPI_Testany", FOR_EITHER, 0},
    {"MPI_Testsome", FOR_EITHER, 0},
    {"MPI_Cancel", FOR_NOBODY, 0},
    {"MPI_Iallreduce", FOR_NOBODY, ENTERS},
    {"MPI_Iallgather", FOR_NOBODY, ENTERS},
    {"MPI_Iallgatherv", FOR_NOBODY, ENTERS},
    {"MPI_Ialltoall", FOR_NOBODY, ENTERS},
    {"MPI_Ialltoallv", FOR_NOBODY, ENTERS},
    {"MPI_Ialltoallw", FOR_NOBODY, ENTERS},
    {"MPI_Ibarrier", FOR_NOBODY, ENTERS},
    {"MPI_Ireduce_scatter", FOR_NOBODY, ENTERS},
    {"MPI_Ireduce_scatter_block", FOR_NOBODY, ENTERS},
};

static bool is_mpi(const char *name)
{
    return strncmp(name, "MPI_", 4) == 0;
}

/* By how their names begin, and as what their operations are told; PK_COMM_OP_OTHER: not at all. */
static const struct collective {
    const char *begins;
    uint32_t op;
} collectives[] = {
    {"MPI_Allreduce", PK_COMM_OP_ALL_REDUCE},
    {"MPI_Allgather", PK_COMM_OP_ALL_GATHER},
    {"MPI_Alltoall", PK_COMM_OP_ALL_TO_ALL},
    {"MPI_Barrier", PK_COMM_OP_BARRIER},
    {"MPI_Bcast", PK_COMM_OP_BROADCAST},
    {"MPI_Reduce_scatter", PK_COMM_OP_REDUCE_SCATTER},
    {"MPI_Reduce", PK_COMM_OP_REDUCE},
    {"MPI_Gather", PK_COMM_OP_GATHER},
    {"MPI_Scatter", PK_COMM_OP_SCATTER},
    {"ncclAllReduce", PK_COMM_OP_ALL_REDUCE},
    {"ncclAllGather", PK_COMM_OP_ALL_GATHER},
    {"ncclReduceScatter", PK_COMM_OP_REDUCE_SCATTER},
    {"ncclBroadcast", PK_COMM_OP_BROADCAST},
    {"ncclReduce", PK_COMM_OP_REDUCE},
    {"nccl", PK_COMM_OP_OTHER},
    {"MPI_Scan", PK_COMM_OP_OTHER},
    {"MPI_Exscan", PK_COMM_OP_OTHER},
    {"MPI_Win_fence", PK_COMM_OP_OTHER},
    {"MPI_Comm_", PK_COMM_OP_OTHER},
    {"MPI_Cart_", PK_COMM_OP_OTHER},
    {"MPI_Finalize", PK_COMM_OP_OTHER},
};

/* MPI_Allreduce, and MPI_Allreduce_c; NULL: it is none. */
static const struct collective *collective_of(const char *name)
{
    for (size_t i = 0; i < PKI_COUNT_OF(collectives); i++)
        if (strncmp(name, collectives[i].begins, strlen(collectives[i].begins)) == 0)
            return &collectives[i];
    return NULL;
}

/* With MPI a region of the program's around its calls has waited in these. */
static pki_job_way way_of(const pki_job_stage *stage, bool with_mpi)
{
    size_t length = strlen(stage->name);
    if (length > 2 && strcmp(stage->name + length - 2, "_c") == 0)
        length -= 2;
    for (size_t i = 0; stage->waits && i < PKI_COUNT_OF(ways); i++)
        if (strlen(ways[i].name) == length && strncmp(stage->name, ways[i].name, length) == 0)
            return ways[i];
    bool joins = stage->waits && (!with_mpi || collective_of(stage->name));
    return (pki_job_way){stage->name, joins ? FOR_ALL : FOR_NOBODY, 0};
}

/* ---- which ranks meet in a collective ---- */

/* Of a rank on a communicator. */
typedef struct calls {
    uint64_t id;
    size_t at; /* in the rank's list */
    size_t rank;
    double time, of; /* of all the rank's calls of this sort */
} calls;

static int by_comm(const void *x, const void *y)
{
    const calls *a = x, *b = y;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static double time_on(const pki_comm_summary *c, size_t comm, uint32_t op, uint64_t *times)
{
    double time = 0;
    for (size_t i = 0; i < c->collective_count; i++)
        if (c->collectives[i].op == op && c->collectives[i].comm == comm) {
            time += c->collectives[i].time.sum;
            *times += c->collectives[i].time.count;
        }
    return time;
}

typedef struct listing {
    calls *all;
    size_t count, room;
    bool some;   /* calls of some of the ranks */
    bool uneven; /* a rank has half as many on one communicator as on another, or fewer */
} listing;

static bool list_rank(listing *to, const pki_job *j, size_t rank, uint32_t op)
{
    const pki_comm_summary *c = &j->ranks[rank].comm;
    size_t first = to->count;
    double of = 0;
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < c->comm_count; i++) {
        uint64_t times = 0;
        calls one = {c->comms[i].id, i, rank, time_on(c, i, op, &times), 0};
        size_t same = first;
        if (!(one.time > 0 && one.time < 1e18) || c->comms[i].size < 2)
            continue;
        while (same < to->count && to->all[same].id != one.id)
            same++;
        if (!pki_array_fit(&to->all, &to->room, to->count + 1, sizeof one))
            return false;
        if (same == to->count)
            to->all[to->count++] = (calls){one.id, i, rank, 0, 0};
        to->some |= c->comms[i].size < j->world;
        to->all[same].time += one.time;
        of += one.time;
        least = PKI_MIN(least, times);
        most = PKI_MAX(most, times);
    }
    to->uneven |= most && least <= most / 2;
    for (size_t i = first; i < to->count; i++)
        to->all[i].of = of;
    return true;
}

#define LEGS 8 /* of a stage: ranks that have calls on more communicators are not replayed */

/* Calls of a rank in a step: 1 of those with calls in half of the steps, or of which it is not
 * known.
 */
static double rate_of(const pki_job *j, size_t stage)
{
    const pki_job_stage *of = &j->stages[stage];
    double steps = 0, times = 0;
    for (size_t l = 0; l < j->loop_count; l++)
        for (size_t i = 0; i < j->loops[l].selves[stage].count; i++)
            steps += j->loops[l].made[j->loops[l].selves[stage].ranks[i]];
    for (size_t i = 0; i < j->region_count; i++)
        if (strcmp(j->regions[i].name, of->name) == 0 && j->regions[i].kind == of->kind)
            times = (double)j->regions[i].time.count;
    return times > 0 && 2 * times < steps ? times / steps : 1;
}

static bool is_rooted(const pki_job_way *way)
{
    const struct collective *c = collective_of(way->name);
    return c && (c->op == PK_COMM_OP_BROADCAST || c->op == PK_COMM_OP_REDUCE ||
                 c->op == PK_COMM_OP_GATHER || c->op == PK_COMM_OP_SCATTER);
}

static pki_job_leg *add_leg(pki_job_legs *to, size_t stage, const pki_job_way *way)
{
    if (!pki_array_fit(&to->all, &to->room, to->count + 1, sizeof *to->all))
        return NULL;
    to->all[to->count] = (pki_job_leg){.stage = stage, .way = *way, .rooted = is_rooted(way)};
    return &to->all[to->count++];
}

static pki_job_leg *add_circled_leg(pki_job_legs *to, size_t stage, const pki_job_way *way,
                                    size_t ranks)
{
    pki_job_leg *l = add_leg(to, stage, way);
    if (!l)
        return NULL;
    l->circle = pki_array_zeroed(ranks, sizeof *l->circle);
    l->members = pki_array_zeroed(ranks, sizeof *l->members);
    l->begins = pki_array_zeroed(ranks + 1, sizeof *l->begins);
    l->share = pki_array_zeroed(ranks, sizeof *l->share);
    return l->circle && l->members && l->begins && l->share ? l : NULL;
}

/* Into the first leg in which none of them meets others. */
static bool add_circle(pki_job_legs *to, size_t first, const calls *all, size_t count, size_t ranks)
{
    size_t at = first, k = 0;
    while (at < to->count && k < count) {
        bool taken = to->all[at].circle[all[k].rank] != 0;
        at += taken;
        k = taken ? 0 : k + 1;
    }
    pki_job_way way = to->all[first].way;
    if (at == first + LEGS) {
        to->why_not = "ranks have collectives on more than 8 communicators";
        return true;
    }
    if (at == to->count && !add_circled_leg(to, to->all[first].stage, &way, ranks))
        return false;
    pki_job_leg *l = &to->all[at];
    size_t *end = &l->begins[++l->circle_count];
    *end = l->begins[l->circle_count - 1];
    for (size_t i = 0; i < count; i++) {
        l->circle[all[i].rank] = (uint32_t)l->circle_count;
        l->share[all[i].rank] = all[i].time / all[i].of;
        l->members[(*end)++] = all[i].rank;
    }
    return true;
}

/* Those that ranks have first come first. */
static bool add_circles(pki_job_legs *to, listing *l, size_t stage, const pki_job_way *way,
                        size_t ranks)
{
    size_t first = to->count, last = 0;
    qsort(l->all, l->count, sizeof *l->all, by_comm);
    for (size_t i = 0; i < l->count; i++)
        last = PKI_MAX(last, l->all[i].at);
    bool done = add_circled_leg(to, stage, way, ranks) != NULL;
    for (size_t at = 0; done && at <= last; at++)
        for (size_t i = 0, next; done && i < l->count; i = next) {
            for (next = i + 1; next < l->count && l->all[next].id == l->all[i].id; next++)
                ;
            if (!l->all[i].id)
                to->why_not = "there are collectives of some of the ranks, and which they are is"
                              " not known";
            else if (l->all[i].at == at)
                done = add_circle(to, first, &l->all[i], next - i, ranks);
        }
    for (size_t r = 0; done && r < ranks; r++) {
        bool in_none = true;
        for (size_t i = first; i < to->count; i++)
            in_none = in_none && !to->all[i].circle[r];
        to->all[first].share[r] = in_none ? 1 : to->all[first].share[r];
    }
    return done;
}

/* A collective of some of the ranks: which stage that is, its name has to say. */
static bool has_groups(const pki_job *j)
{
    for (size_t r = 0; r < j->rank_count; r++) {
        const pki_comm_summary *c = &j->ranks[r].comm;
        for (size_t i = 0; i < c->collective_count; i++) {
            const pki_operation_row *o = &c->collectives[i];
            int32_t size = o->comm < c->comm_count ? c->comms[o->comm].size : 0;
            if (!pki_comm_op_is_message(o->op) && size > 1 && size < j->world)
                return true;
        }
    }
    return false;
}

static bool add_stage(pki_job_legs *to, const pki_job *j, size_t stage, bool with_mpi, bool groups)
{
    pki_job_way way = way_of(&j->stages[stage], with_mpi);
    const struct collective *c = collective_of(way.name);
    listing l = {0};
    bool done = true, known = c && c->op != PK_COMM_OP_OTHER;
    way.posts &= groups ? ~(unsigned)ENTERS : ~0u; /* of whom is not known */
    for (size_t r = 0; groups && way.waits == FOR_ALL && known && done && r < j->rank_count; r++)
        done = list_rank(&l, j, r, c->op);
    if (groups && way.waits == FOR_ALL && !c)
        to->why_not = "there are collectives of some of the ranks, and which stage is whose is not"
                      " known";
    if (l.some && l.uneven) /* in which steps the rarer ones are, is not told */
        to->why_not = "collectives of some of the ranks have rarer ones of others beside them";
    done = done && (l.some ? add_circles(to, &l, stage, &way, j->rank_count)
                           : add_leg(to, stage, &way) != NULL);
    free(l.all);
    for (size_t i = 0; i < to->count; i++)
        if (to->all[i].stage == stage)
            to->all[i].rate = rate_of(j, stage);
    return done;
}

bool pki_job_find_legs(pki_job_legs *to, const pki_job *j)
{
    bool with_mpi = false, groups = has_groups(j), done = true;
    for (size_t k = 0; k < j->stage_count; k++)
        with_mpi = with_mpi || is_mpi(j->stages[k].name);
    for (size_t k = 0; done && k < j->stage_count; k++)
        done = add_stage(to, j, k, with_mpi, groups);
    return done;
}
