#include "backend/cupti/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/atomic.h"
#include "base/compiler.h"

#define BUCKETS 1024u
#define MOST (1u << 20)
#define CONTEXTS 64u

/* A recording; those of one bucket in a chain, the newest first. */
typedef struct node {
    uint32_t context, event;
    pki_cupti_recorded recorded;
    uint32_t next; /* index + 1; 0: the last */
    uint32_t age;
} node;

static bool wanted;
static node *nodes;
static size_t count, room;
static uint32_t buckets[BUCKETS]; /* index + 1 */
static uint32_t devices[CONTEXTS];

void pki_cupti_events_want(bool on)
{
    pki_store(&wanted, on);
}

bool pki_cupti_events_wanted(void)
{
    return pki_load(&wanted);
}

static uint32_t *bucket_of(uint32_t context, uint32_t event)
{
    return &buckets[(context * 2654435761u ^ event * 40503u) % BUCKETS];
}

static bool is_of(const node *n, uint32_t context, uint32_t event)
{
    return n->context == context && n->event == event;
}

/* Threads' buffers come in any order: behind the newer ones. */
static void link_in(size_t i)
{
    node *n = &nodes[i];
    uint32_t *at = bucket_of(n->context, n->event);
    while (*at && nodes[*at - 1].recorded.correlation > n->recorded.correlation)
        at = &nodes[*at - 1].next;
    n->next = *at;
    *at = (uint32_t)i + 1;
}

bool pki_cupti_event_note(uint32_t context, uint32_t event, pki_cupti_recorded recorded)
{
    if (count == MOST || !pki_array_fit(&nodes, &room, count + 1, sizeof *nodes))
        return false;
    nodes[count] = (node){.context = context, .event = event, .recorded = recorded};
    link_in(count++);
    return true;
}

pki_cupti_recorded pki_cupti_event_before(uint32_t context, uint32_t event, uint32_t correlation)
{
    for (uint32_t i = *bucket_of(context, event); i; i = nodes[i - 1].next)
        if (is_of(&nodes[i - 1], context, event) && nodes[i - 1].recorded.correlation < correlation)
            return nodes[i - 1].recorded;
    return (pki_cupti_recorded){0, 0};
}

static bool is_newest(const node *n)
{
    uint32_t i = *bucket_of(n->context, n->event);
    while (i && !is_of(&nodes[i - 1], n->context, n->event))
        i = nodes[i - 1].next;
    return &nodes[i - 1] == n;
}

void pki_cupti_events_age(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        nodes[i].age = is_newest(&nodes[i]) ? 0 : nodes[i].age + 1;
    for (size_t i = 0; i < count; i++)
        if (nodes[i].age < 2)
            nodes[kept++] = nodes[i];
    count = kept;
    memset(buckets, 0, sizeof buckets);
    for (size_t i = 0; i < count; i++)
        link_in(i);
}

void pki_cupti_events_forget(void)
{
    free(nodes);
    pki_cupti_events_after_fork();
}

void pki_cupti_events_after_fork(void)
{
    nodes = NULL;
    count = room = 0;
    memset(buckets, 0, sizeof buckets);
    memset(devices, 0, sizeof devices);
}

/* CUPTI counts contexts from 1. */
void pki_cupti_context_note(uint32_t context, uint32_t device)
{
    if (context < CONTEXTS)
        devices[context] = device;
}

uint32_t pki_cupti_context_device(uint32_t context)
{
    return context < CONTEXTS ? devices[context] : 0;
}
