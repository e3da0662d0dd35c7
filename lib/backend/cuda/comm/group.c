#include "backend/cuda/comm/group.h"

#include "base/compiler.h"

#define PEERS_TOLD_APART 4096

static pki_cuda_operation make(const pki_cuda_member *m, pk_comm_op op, uint64_t count,
                               uint32_t type, uint32_t calls)
{
    pki_comm_fields f = {.comm = m->comm->name,
                         .parent = m->parent,
                         .op = (uint32_t)op,
                         .type = type,
                         .peer = m->peer};
    pki_comm_payload payload = pki_comm_pack(&f);
    return (pki_cuda_operation){payload.what, payload.extra, count, calls, 0};
}

pki_cuda_operation pki_cuda_operation_of(const pki_cuda_member *m)
{
    return make(m, (pk_comm_op)m->op, m->count, m->type, 1);
}

/* ---- the members of a stream ---- */

static const pki_cuda_member *after(const pki_cuda_member *list, const pki_cuda_member *m)
{
    do
        m = m->next == PKI_CUDA_ALONE ? NULL : &list[m->next];
    while (m && !m->comm);
    return m;
}

static void link_lane(pki_cuda_member *list, uint32_t count, uint32_t first)
{
    uint32_t last = first;
    for (uint32_t i = first + 1; i < count; i++) {
        if (list[i].lane != list[first].lane)
            continue;
        list[last].next = i;
        list[i].follows = true;
        last = i;
    }
    list[last].next = PKI_CUDA_ALONE;
}

void pki_cuda_group_link(pki_cuda_member *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!list[i].follows)
            link_lane(list, count, i);
}

/* ---- patterns ---- */

/* Of which there are how many; 0: they are not alike. */
static uint32_t count_alike(const pki_cuda_member *list, const pki_cuda_member *first)
{
    uint32_t n = 0;
    for (const pki_cuda_member *m = first; m; m = after(list, m), n++)
        if (m->comm != first->comm || m->op != first->op || m->type != first->type ||
            m->count != first->count)
            return 0;
    return n;
}

/* Pairs of a send and a receive, all of the same size on one communicator; 0: something else. */
static uint32_t count_pairs(const pki_cuda_member *list, const pki_cuda_member *first)
{
    uint32_t sends = 0, receives = 0;
    uint64_t bytes = first->count * pki_comm_type_bytes(first->type);
    for (const pki_cuda_member *m = first; m; m = after(list, m)) {
        sends += m->op == PK_OP_SEND;
        receives += m->op == PK_OP_RECV;
        if (m->comm != first->comm || (m->op != PK_OP_SEND && m->op != PK_OP_RECV) ||
            m->count * pki_comm_type_bytes(m->type) != bytes)
            return 0;
    }
    return sends == receives ? sends : 0;
}

/* Do the members of this operation go to different ranks? */
static bool are_apart(const pki_cuda_member *list, const pki_cuda_member *first, pk_comm_op op)
{
    uint64_t seen[PEERS_TOLD_APART / 64] = {0};
    for (const pki_cuda_member *m = first; m; m = after(list, m)) {
        if (m->op != (uint32_t)op)
            continue;
        if (m->peer < 0 || m->peer >= PEERS_TOLD_APART)
            return false;
        uint64_t bit = (uint64_t)1 << (m->peer % 64);
        if (seen[m->peer / 64] & bit)
            return false;
        seen[m->peer / 64] |= bit;
    }
    return true;
}

static bool is_all_to_all(const pki_cuda_member *list, const pki_cuda_member *first, uint32_t pairs)
{
    int32_t ranks = first->comm->size;
    return pairs > 1 && (pairs == (uint32_t)ranks || pairs + 1 == (uint32_t)ranks) &&
           are_apart(list, first, PK_OP_SEND) && are_apart(list, first, PK_OP_RECV);
}

static pki_cuda_operation fold_pairs(const pki_cuda_member *list, const pki_cuda_member *first,
                                     uint32_t pairs)
{
    bool all = is_all_to_all(list, first, pairs);
    pki_cuda_member pair = *first;
    pair.peer = -1; /* they have several */
    return make(&pair, all ? PK_OP_ALL_TO_ALL : PK_OP_SEND_RECV, first->count, first->type,
                all ? 1 : pairs);
}

/* ---- anything else ---- */

static bool is_first_of_comm(const pki_cuda_member *list, const pki_cuda_member *first,
                             const pki_cuda_member *m)
{
    const pki_cuda_member *other = first;
    while (other->comm != m->comm)
        other = after(list, other);
    return other == m;
}

static uint64_t sum_bytes(const pki_cuda_member *list, const pki_cuda_member *first)
{
    uint64_t bytes = 0;
    for (const pki_cuda_member *m = first; m; m = after(list, m))
        if (m->comm == first->comm)
            bytes += m->count * pki_comm_type_bytes(m->type);
    return bytes;
}

/* Behind the part at the end; where the end is then. */
static pki_cuda_operation *append(pki_cuda_operation *end, pki_cuda_operation part)
{
    uint32_t index = pki_cuda_part_allocate();
    if (!index)
        return NULL;
    *pki_cuda_part_at(index) = part;
    end->more = index;
    return pki_cuda_part_at(index);
}

/* Without memory for them some members are not listed, and communicators not counted. */
static pki_cuda_operation *append_members(const pki_cuda_member *list, const pki_cuda_member *first,
                                          pki_cuda_operation *end)
{
    for (const pki_cuda_member *m = first; m && end; m = after(list, m))
        if (m->comm == first->comm)
            end = append(end, make(m, (pk_comm_op)m->op, m->count, m->type, 0));
    return end;
}

static pki_cuda_operation part_of(const pki_cuda_member *list, const pki_cuda_member *first)
{
    return make(first, PK_OP_GROUP, sum_bytes(list, first), PK_TYPE_BYTE, 1);
}

static pki_cuda_operation fold_unlike(const pki_cuda_member *list, const pki_cuda_member *first)
{
    pki_cuda_operation whole = part_of(list, first);
    pki_cuda_operation *end = append_members(list, first, &whole);
    for (const pki_cuda_member *m = after(list, first); m && end; m = after(list, m)) {
        if (!is_first_of_comm(list, first, m))
            continue;
        end = append(end, part_of(list, m));
        end = end ? append_members(list, m, end) : NULL;
    }
    return whole;
}

pki_cuda_operation pki_cuda_group_fold(const pki_cuda_member *list, uint32_t index)
{
    const pki_cuda_member *first = &list[index];
    first = first->comm ? first : after(list, first);
    if (!first)
        return (pki_cuda_operation){0};
    uint32_t alike = count_alike(list, first), pairs = alike ? 0 : count_pairs(list, first);
    if (alike)
        return make(first, (pk_comm_op)first->op, first->count, first->type, alike);
    return pairs ? fold_pairs(list, first, pairs) : fold_unlike(list, first);
}
