#include "merge/arrows.h"

#include "base/compiler.h"
#include "comm/model/operation.h"
#include "out/emit.h"

#include <stdlib.h>

/* Times of the axis instead of the file's. */
static void move_to_axis(const arrows *a, pki_joint *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const merge_source *s = &a->to->sources->all[all[i].source];
        all[i].start = pki_clocks_axis(a->to->clocks, &s->when, all[i].start);
        all[i].end = pki_clocks_axis(a->to->clocks, &s->when, all[i].end);
    }
}

/* Viewers find the two ends by category, name and id. */
static const char *name_of(const pki_joint *o)
{
    return o->kind >= PKI_JOINT_SEND ? "message" : pki_comm_op_name(o->op);
}

static bool put_end(arrows *a, const pki_joint *o, const char *phase, uint64_t at, uint64_t id)
{
    char text[256], *p = pki_put_text(text, phase);
    p = pki_put_text(PKI_PUT(p, ",\"cat\":\"ranks\",\"name\":\""), name_of(o));
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), o->pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), o->tid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), at);
    p = pki_put_u64(PKI_PUT(p, ",\"id\":"), id);
    *p++ = '}';
    return copy_put(a->to, text, (size_t)(p - text));
}

static bool is_backwards(arrows *a, const pki_joint *from, const pki_joint *to)
{
    if (to->end >= from->start)
        return false;
    a->backwards++;
    a->worst_ns = PKI_MAX(from->start - to->end, a->worst_ns);
    return true;
}

/* From the beginning of the one to just before the end of the other: both lie in their slices. */
static void draw(arrows *a, const pki_joint *from, const pki_joint *to)
{
    if (is_backwards(a, from, to) || !from->written || !to->written || a->failed)
        return;
    uint64_t id = a->next_id++, end = to->end - (to->end > from->start);
    a->failed = !put_end(a, from, "{\"ph\":\"s\"", from->start, id) ||
                !put_end(a, to, "{\"ph\":\"f\",\"bp\":\"e\"", end, id);
    a->drawn++;
}

/* ---- messages ---- */

/* If one side has more, it is not known where the other begins, but in a run that was cut. */
static bool can_be_paired(const arrows *a, const pki_joint *all, size_t sends, size_t count)
{
    const merge_source *s = a->to->sources->all;
    return 2 * sends == count ||
           (sends && sends < count && (s[all[0].source].cut || s[all[sends].source].cut));
}

static void draw_messages(arrows *a, const pki_joint *all, size_t count)
{
    size_t sends = pki_joints_receives(all, count), receives = count - sends;
    size_t pairs = can_be_paired(a, all, sends, count) ? sends < receives ? sends : receives : 0;
    for (size_t i = 0; i < pairs; i++)
        draw(a, &all[i], &all[sends + i]);
    a->messages += pairs;
    a->alone += count - 2 * pairs;
}

/* ---- collectives ---- */

static int by_start(const void *x, const void *y)
{
    const pki_joint *one = x, *other = y;
    return one->start < other->start ? -1 : one->start > other->start;
}

static pki_joint last_of(const pki_joint *all, size_t count)
{
    const pki_joint *last = all;
    for (size_t i = 1; i < count; i++)
        last = all[i].start > last->start ? &all[i] : last;
    return *last;
}

/* All arrows of thousands of ranks would be too much for viewers. */
static void draw_or_check(arrows *a, const pki_joint *from, const pki_joint *to, size_t *drawn)
{
    if (from->rank == to->rank)
        return;
    if ((*drawn)++ < ARROWS_MOST)
        draw(a, from, to);
    else
        is_backwards(a, from, to);
}

/* Nobody could go on before the last one came. */
static void draw_all_to_all(arrows *a, pki_joint *all, size_t count)
{
    size_t drawn = 0;
    if (count > ARROWS_MOST)
        qsort(all, count, sizeof *all, by_start);
    const pki_joint last = last_of(all, count);
    for (size_t i = 0; i < count; i++)
        draw_or_check(a, &last, &all[i], &drawn);
}

static void draw_rooted(arrows *a, const pki_joint *all, size_t count)
{
    size_t drawn = 0;
    const pki_joint *root = NULL;
    for (size_t i = 0; i < count; i++)
        root = all[i].rank == all[i].peer ? &all[i] : root;
    for (size_t i = 0; root && i < count; i++) {
        bool gives = root->kind == PKI_JOINT_FROM;
        draw_or_check(a, gives ? root : &all[i], gives ? &all[i] : root, &drawn);
    }
}

static void draw_collective(arrows *a, pki_joint *all, size_t count)
{
    if (!pki_joints_are_one(all, count)) {
        a->ambiguous++;
        return;
    }
    if (count < 2) {
        a->alone++;
        return;
    }
    a->collectives++;
    if (all[0].kind == PKI_JOINT_ALL)
        draw_all_to_all(a, all, count);
    else if (all[0].kind != PKI_JOINT_LOOSE)
        draw_rooted(a, all, count);
}

static void draw_group(void *user, pki_joint *all, size_t count)
{
    arrows *a = user;
    move_to_axis(a, all, count);
    if (all[0].kind >= PKI_JOINT_SEND)
        draw_messages(a, all, count);
    else
        draw_collective(a, all, count);
}

bool arrows_put(arrows *a, pki_joints *o, complaint *why)
{
    a->next_id = copy_free_ids(a->to->sources);
    return pki_joints_each(o, draw_group, a, why) && !a->failed;
}
