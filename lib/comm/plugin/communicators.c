/* lib/comm/plugin/communicators.c - communicators on the collector's side: perfkit's own, and tracks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/plugin/nodes.h"

static pki_nccl_told *told[PKI_NCCL_COMMS];
static bool used[PKI_NCCL_COMMS];
static bool gone[PKI_NCCL_COMMS]; /* before this round looked into the pool */

/* One that was never named is called by its id. */
static pk_comm *make_comm(const pki_nccl_comm *c)
{
    char name[PKI_NCCL_NAME + 8];
    if (c->name[0])
        snprintf(name, sizeof name, "%s", c->name);
    else
        snprintf(name, sizeof name, "nccl %016llx", (unsigned long long)c->id);
    return pk_comm_create("NCCL", name, c->id, c->rank, c->ranks);
}

static pki_nccl_told *make(pki_nccl_told *t, const pki_nccl_comm *c)
{
    t = t ? t : malloc(sizeof *t);
    if (!t)
        return NULL;
    memset(t, 0, sizeof *t);
    t->context = c->context;
    t->comm = make_comm(c);
    return t;
}

pki_nccl_told *pki_nccl_told_of(uint32_t context)
{
    uint32_t i = pki_nccl_comm_index(context);
    const pki_nccl_comm *c = pki_nccl_comm_at(i);
    if (!c || c->context != context || pki_load_acquire(&c->told) != 2) /* pairs with its telling */
        return NULL;
    if (!told[i] || told[i]->context != context) {
        pk_comm_destroy(told[i] ? told[i]->comm : NULL);
        told[i] = make(told[i], c);
    }
    return told[i];
}

void pki_nccl_told_use(uint32_t context)
{
    used[pki_nccl_comm_index(context)] = true;
}

void pki_nccl_told_look(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_COMMS; i++) {
        const pki_nccl_comm *c = pki_nccl_comm_at(i);
        gone[i] = c && pki_load(&c->state) == PKI_NCCL_COMM_GONE;
    }
}

bool pki_nccl_told_is_gone(uint32_t context)
{
    uint32_t i = pki_nccl_comm_index(context);
    const pki_nccl_comm *c = pki_nccl_comm_at(i);
    return !c || c->context != context || gone[i];
}

bool pki_nccl_told_spans_nodes(uint32_t context)
{
    const pki_nccl_comm *c = pki_nccl_comm_at(pki_nccl_comm_index(context));
    return c && c->nodes > 1;
}

static void drop(uint32_t i)
{
    pk_comm_destroy(told[i] ? told[i]->comm : NULL);
    free(told[i]);
    told[i] = NULL;
}

void pki_nccl_told_clean(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_COMMS; i++) {
        if (gone[i] && !used[i]) {
            drop(i);
            pki_nccl_comm_free(i);
        }
        used[i] = false;
    }
}

void pki_nccl_told_start(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_COMMS; i++)
        if (told[i]) {
            pk_comm *comm = told[i]->comm;
            uint32_t context = told[i]->context;
            *told[i] = (pki_nccl_told){.context = context, .comm = comm};
        }
}

void pki_nccl_told_after_fork(void)
{
    memset(told, 0, sizeof told);
    memset(used, 0, sizeof used);
    memset(gone, 0, sizeof gone);
}
