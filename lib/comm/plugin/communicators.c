/* lib/comm/plugin/communicators.c - communicators on the collector's side: perfkit's own, and
 * tracks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/plugin/nodes.h"

static pki_nccl_communicator *known[PKI_NCCL_CONTEXTS];
static bool used[PKI_NCCL_CONTEXTS];
static bool gone[PKI_NCCL_CONTEXTS]; /* before this round looked into the pool */

/* One that was never named is called by its id. */
static pk_comm *make_comm(const pki_nccl_context *c)
{
    char name[PKI_NCCL_NAME + 8];
    if (c->name[0])
        snprintf(name, sizeof name, "%s", c->name);
    else
        snprintf(name, sizeof name, "nccl %016llx", (unsigned long long)c->id);
    return pk_comm_create("NCCL", name, c->id, c->rank, c->ranks);
}

static void destroy(pki_nccl_communicator *t)
{
    if (t && !t->destroyed)
        pk_comm_destroy(t->comm);
    if (t)
        t->destroyed = true;
}

/* An event of a new communicator is seen after the ends of those that were finalized before it was
 * made, so whether one of them is the same one made anew does not depend on where rounds fall. What
 * is still to be emitted of the old one goes under the name that both have. */
static void destroy_finalized(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) {
        const pki_nccl_context *c = known[i] ? pki_nccl_context_at(i) : NULL;
        if (c && c->handle == known[i]->context && pki_load(&c->state) == PKI_NCCL_CONTEXT_GONE)
            destroy(known[i]);
    }
}

static pki_nccl_communicator *make(pki_nccl_communicator *t, const pki_nccl_context *c)
{
    t = t ? t : malloc(sizeof *t);
    if (!t)
        return NULL;
    memset(t, 0, sizeof *t);
    t->context = c->handle;
    t->comm = make_comm(c);
    return t;
}

pki_nccl_communicator *pki_nccl_communicator_of(uint32_t context)
{
    uint32_t i = pki_nccl_context_index(context);
    const pki_nccl_context *c = pki_nccl_context_at(i);
    if (!c || c->handle != context ||
        pki_load_acquire(&c->described) != 2) /* pairs with its description */
        return NULL;
    if (!known[i] || known[i]->context != context) {
        destroy(known[i]);
        destroy_finalized();
        known[i] = make(known[i], c);
    }
    return known[i];
}

void pki_nccl_communicator_use(uint32_t context)
{
    used[pki_nccl_context_index(context)] = true;
}

void pki_nccl_communicators_check(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) {
        const pki_nccl_context *c = pki_nccl_context_at(i);
        gone[i] = c && pki_load(&c->state) == PKI_NCCL_CONTEXT_GONE;
    }
}

bool pki_nccl_communicator_is_gone(uint32_t context)
{
    uint32_t i = pki_nccl_context_index(context);
    const pki_nccl_context *c = pki_nccl_context_at(i);
    return !c || c->handle != context || gone[i];
}

bool pki_nccl_communicator_spans_nodes(uint32_t context)
{
    const pki_nccl_context *c = pki_nccl_context_at(pki_nccl_context_index(context));
    return c && c->nodes > 1;
}

static void drop(uint32_t i)
{
    destroy(known[i]);
    free(known[i]);
    known[i] = NULL;
}

void pki_nccl_communicators_clean(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) {
        if (gone[i] && !used[i]) {
            drop(i);
            pki_nccl_context_free(i);
        }
        used[i] = false;
    }
}

void pki_nccl_communicators_start(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++)
        if (known[i])
            *known[i] = (pki_nccl_communicator){.context = known[i]->context,
                                                .comm = known[i]->comm,
                                                .destroyed = known[i]->destroyed};
}

void pki_nccl_communicators_after_fork(void)
{
    memset(known, 0, sizeof known);
    memset(used, 0, sizeof used);
    memset(gone, 0, sizeof gone);
}
