#include "merge/collect.h"

#include "comm/model/operation.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define OPERATION "\"Collective name\""

void collector_open(collector *c, pki_joints *into)
{
    *c = (collector){.into = into};
    event_reader_open(&c->reader);
}

void collector_close(collector *c)
{
    event_reader_close(&c->reader);
    alike_free(&c->known);
    free(c->copy);
}

void collector_new_file(collector *c)
{
    memset(c->recent, 0, sizeof c->recent);
    c->is_open = false;
}

void collector_note(collector *c, const fields *f)
{
    c->recent[c->next++ % COLLECTOR_RECENT] = (recent){.tid = f->thread, .start = f->start};
}

bool collector_wants(const collector *c, line l, const fields *f)
{
    if (f->phase == 'e')
        return c->is_open;
    return (f->phase == 'X' || f->phase == 'b') && f->args.length > sizeof OPERATION &&
           memmem(l.text + f->args.at, f->args.length, OPERATION, sizeof OPERATION - 1) != NULL;
}

static uint64_t mixed(uint64_t key, uint64_t more)
{
    key = (key ^ more) * UINT64_C(0x9E3779B97F4A7C15);
    return key ^ key >> 29;
}

static uint64_t mixed_text(uint64_t key, const char *text)
{
    for (const char *s = text; *s; s++)
        key = (key ^ (unsigned char)*s) * UINT64_C(0x100000001B3);
    return mixed(key, 0);
}

/* The same on all ranks of a communicator. By its number, where there is one: of several that have
 * one name each rank calls the second one "name #2" that it has used second. */
static uint64_t communicator_of(const event *e)
{
    const char *id = object_text(e->args, "Comms Id");
    uint64_t key = mixed_text(UINT64_C(0xCBF29CE484222325), e->comm.library);
    key = mixed_text(key, *id ? id : e->comm.name);
    return mixed(key, e->comm.ranks);
}

/* Messages of one sender, receiver and tag do not overtake each other, so the n-th that was sent is
 * the n-th that was received: all of a channel have one key. */
static uint64_t channel_of(const event *e, const pki_joint *o)
{
    bool is_send = o->kind == PKI_JOINT_SEND;
    uint64_t key = mixed(communicator_of(e), 1);
    key = mixed(key, (uint64_t)(is_send ? o->rank : o->peer));
    key = mixed(key, (uint64_t)(is_send ? o->peer : o->rank));
    return mixed(key, (uint64_t)(uint32_t)e->comm.tag);
}

static bool is_message(const pki_joint *o)
{
    return o->kind == PKI_JOINT_SEND || o->kind == PKI_JOINT_RECEIVE;
}

static void set_key(pki_joint *o, uint64_t channel, uint64_t sequence)
{
    o->key = is_message(o) ? channel : mixed(channel, sequence);
}

/* False: it says too little to find the other ranks' by. Several that were timed as one are none.
 */
static bool fill(pki_joint *o, const event *e, uint64_t *channel)
{
    const event_comm *c = &e->comm;
    if (!c->op || c->rank < 0 || c->ranks < 2 || c->sequence == 0 || c->calls > 1 ||
        c->sharers > 1 || c->unfinished)
        return false;
    *o = (pki_joint){.start = e->start, .end = e->end, .tid = e->tid, .rank = c->rank};
    o->op = (uint8_t)pki_comm_op_named(c->op);
    o->kind = (uint8_t)pki_joint_kind_of(o->op);
    o->peer = c->peer;
    o->ranks = c->ranks;
    *channel = is_message(o) ? channel_of(e, o) : mixed(communicator_of(e), 2);
    set_key(o, *channel, c->sequence);
    return !is_message(o) || o->peer >= 0;
}

static const event *read_event(collector *c, line l)
{
    const event *e;
    if (c->room < l.length) {
        c->room = 2 * l.length;
        c->copy = memory_resized(c->copy, c->room);
    }
    memcpy(c->copy, l.text, l.length);
    return event_reader_read(&c->reader, (line){c->copy, l.length}, &e) == READ_EVENT ? e : NULL;
}

#define CALL_BEGINS 10000 /* ns after its operation, at most */

/* Arrows begin at slices, and a pair of events is none. That of the call has ended before the pair
 * was written, and is the first one on its thread that begins after the operation. */
static bool move_to_call(const collector *c, pki_joint *o)
{
    uint64_t first = o->start + CALL_BEGINS;
    bool found = false;
    for (size_t i = 0; i < COLLECTOR_RECENT; i++) {
        const recent *r = &c->recent[i];
        if (r->tid != o->tid || r->start < o->start || r->start >= first)
            continue;
        first = r->start;
        found = true;
    }
    if (found)
        o->start = first;
    return found;
}

static void open_pair(collector *c, const event *e, const pki_joint *o)
{
    c->open = *o;
    bool at_call = move_to_call(c, &c->open);
    c->open.written &= at_call || o->kind == PKI_JOINT_RECEIVE; /* arrows go to its end */
    c->open_id = e->comm.id;
    c->is_open = true;
}

static bool close_pair(collector *c, const event *e, complaint *why)
{
    if (!c->is_open || e->comm.id != c->open_id)
        return true;
    c->is_open = false;
    c->open.end = e->start;
    return pki_joints_add(c->into, &c->open, why);
}

static bool add_operation(collector *c, pki_joint o, const pki_joint *where, complaint *why)
{
    o.source = where->source;
    o.pid = where->pid;
    o.written = where->written;
    return pki_joints_add(c->into, &o, why);
}

/* Not like an earlier one, or a pair. */
static bool add_event(collector *c, line l, const fields *f, const pki_joint *where, complaint *why)
{
    const event *e = read_event(c, l);
    pki_joint o;
    uint64_t channel = 0;
    if (!e)
        return true;
    if (e->type == EVENT_COMM_END)
        return close_pair(c, e, why);
    if (!fill(&o, e, &channel))
        return true;
    if (e->type == EVENT_COMM_BEGIN) {
        o.source = where->source;
        o.pid = where->pid;
        o.written = where->written;
        open_pair(c, e, &o);
    } else if (e->type == EVENT_REGION || e->type == EVENT_COMM) {
        alike_add(&c->known, l, f, &o, channel, e->comm.sequence);
        return add_operation(c, o, where, why);
    }
    return true;
}

bool collector_add(collector *c, uint32_t of, line l, const fields *f, uint32_t pid, bool written,
                   complaint *why)
{
    const pki_joint where = {.source = of, .pid = pid, .written = written};
    pki_joint o;
    uint64_t channel, sequence;
    if (!alike_find(&c->known, l, f, &o, &channel, &sequence))
        return add_event(c, l, f, &where, why);
    set_key(&o, channel, sequence);
    return add_operation(c, o, &where, why);
}
