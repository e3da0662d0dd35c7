#include "comm/live/operation.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "session/session.h"

static bool has_peer(pk_comm_op op)
{
    return op == PK_OP_BROADCAST || op == PK_OP_REDUCE || op == PK_OP_GATHER ||
           op == PK_OP_SCATTER || op == PK_OP_SEND || op == PK_OP_RECV;
}

static const char *peer_key(pk_comm_op op)
{
    return op == PK_OP_SEND ? "Dst Rank" : op == PK_OP_RECV ? "Src Rank" : "Root";
}

static int64_t most(uint64_t n)
{
    return (int64_t)PKI_MIN(n, (uint64_t)INT64_MAX);
}

/* Who they are is known if it is all of the job. A list that is cut would be wrong. */
static bool put_ranks(const pk_comm *c, char text[PKI_OPERATION_RANKS])
{
    size_t n = 0;
    bool all = c->size > 1 && c->size == pki_the_session.config.world.size;
    for (int32_t i = 0; all && i < c->size && n < PKI_OPERATION_RANKS; i++)
        n += (size_t)snprintf(text + n, PKI_OPERATION_RANKS - n, "%s%d%s", i ? ", " : "[", i,
                              i == c->size - 1 ? "]" : "");
    return all && n < PKI_OPERATION_RANKS;
}

size_t pki_operation_args(const pki_operation *o, pki_operation_text *words,
                          pki_activity_arg args[PKI_OPERATION_ARGS])
{
    const pk_comm *c = o->comm;
    uint64_t ranks = (uint64_t)PKI_MAX(c->size, 1);
    size_t n = 0;
    snprintf(words->hash, sizeof words->hash, "%016" PRIx64, c->id);
    args[n++] = (pki_activity_arg){"Collective name", pki_comm_op_name((uint32_t)o->op), 0};
    args[n++] = (pki_activity_arg){"dtype", pki_comm_type_name((uint32_t)o->type), 0};
    args[n++] = (pki_activity_arg){
        "In msg nelems", NULL, most(pki_comm_elements_in((uint32_t)o->op, o->count, ranks))};
    args[n++] = (pki_activity_arg){
        "Out msg nelems", NULL, most(pki_comm_elements_out((uint32_t)o->op, o->count, ranks))};
    args[n++] = (pki_activity_arg){"Group size", NULL, (int64_t)ranks};
    args[n++] = (pki_activity_arg){"Process Group Name", c->title, 0};
    args[n++] = (pki_activity_arg){"Process Group Description", c->library, 0};
    if (put_ranks(c, words->ranks))
        args[n++] = (pki_activity_arg){"Process Group Ranks", words->ranks, 0};
    args[n++] = (pki_activity_arg){"Rank", NULL, c->rank};
    args[n++] = (pki_activity_arg){"Seq", NULL, most(o->sequence)};
    if (o->peer >= 0 && has_peer(o->op)) /* NCCL has a root of 0 for all others */
        args[n++] = (pki_activity_arg){peer_key(o->op), NULL, o->peer};
    args[n++] = (pki_activity_arg){"Comms Id", words->hash, 0};
    return n;
}
