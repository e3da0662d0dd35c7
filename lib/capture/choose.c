#include "capture/choose.h"

#include <string.h>

#include "base/compiler.h"

const char *pki_capture_reason_name(pki_capture_reason reason)
{
    static const char *const names[] = {"slow", "steps",   "every", "cycle",
                                        "call", "request", "hang",  "straggler"};
    return names[reason];
}

/* ---- slow ---- */

static bool is_slow(const pki_clauses *c, uint64_t ns, uint64_t median)
{
    return c->slow != 0 && median && (double)ns > c->slow * (double)median &&
           ns - median >= c->floor_ns;
}

static unsigned choose_slow(pki_chooser *ch, uint64_t number, uint32_t kind, uint64_t ns,
                            pki_wish *wish)
{
    if (ch->clauses.slow == 0)
        return 0;
    pki_like_steps *like = pki_like_of(&ch->medians, kind);
    uint64_t median = pki_like_median(like);
    bool slow = is_slow(&ch->clauses, ns, median);
    pki_like_add(like, ns);
    if (!slow)
        return 0;
    *wish = (pki_wish){.first = number - PKI_MIN(number, PKI_CAPTURE_BEFORE),
                       .last = number,
                       .reason = PKI_CAPTURE_SLOW,
                       .worth = (double)ns / (double)median,
                       .slow_step = number,
                       .slow_ns = ns,
                       .median_ns = median};
    return 1;
}

bool pki_wish_merge(pki_wish *w, const pki_wish *next)
{
    if (next->reason != PKI_CAPTURE_SLOW || w->reason != PKI_CAPTURE_SLOW ||
        next->first > w->last + 1 || next->last - w->first >= PKI_WISH_MERGED_STEPS)
        return false;
    uint64_t first = PKI_MIN(w->first, next->first);
    if (next->worth > w->worth)
        *w = *next;
    w->first = first;
    w->last = next->last;
    return true;
}

/* ---- by number ---- */

static unsigned choose_ranges(pki_chooser *ch, uint64_t number, pki_wish *wishes)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < ch->clauses.range_count; i++) {
        const pki_step_range *r = &ch->clauses.ranges[i];
        if (number < r->last || ch->ranges_met & 1u << i)
            continue;
        ch->ranges_met |= 1u << i;
        wishes[n++] = (pki_wish){.first = r->first,
                                 .last = r->last,
                                 .reason = PKI_CAPTURE_STEPS,
                                 .worth = PKI_WORTH_ASKED};
    }
    return n;
}

/* Of a step that is missing the next one takes the turn. */
static unsigned choose_every(const pki_chooser *ch, uint64_t number, pki_wish *wish)
{
    uint64_t every = ch->clauses.every;
    if (!every || number < every || number / every == (ch->next ? ch->next - 1 : 0) / every)
        return 0;
    *wish = (pki_wish){
        .first = number, .last = number, .reason = PKI_CAPTURE_EVERY, .worth = PKI_WORTH_TURN};
    return 1;
}

/* Where a step lies in its cycle; false: in none. */
static bool find_in_cycle(const pki_cycle *c, uint64_t number, uint64_t *turn, uint64_t *at)
{
    uint64_t length = c->wait + c->warmup + c->active;
    if (!c->active || number < c->skip)
        return false;
    *turn = (number - c->skip) / length;
    *at = (number - c->skip) % length;
    return c->repeat == 0 || *turn < c->repeat;
}

static uint64_t active_begin(const pki_cycle *c, uint64_t turn)
{
    return c->skip + turn * (c->wait + c->warmup + c->active) + c->wait + c->warmup;
}

static unsigned wish_for_turn(const pki_cycle *c, uint64_t turn, pki_wish *wish)
{
    uint64_t first = active_begin(c, turn);
    *wish = (pki_wish){.first = first,
                       .last = first + c->active - 1,
                       .reason = PKI_CAPTURE_CYCLE,
                       .worth = PKI_WORTH_TURN};
    return 1;
}

/* The last step of a turn, or the first one behind it if that is missing. */
static unsigned choose_cycle(const pki_chooser *ch, uint64_t number, pki_wish *wish)
{
    const pki_cycle *c = &ch->clauses.cycle;
    uint64_t length = c->wait + c->warmup + c->active;
    if (!c->active || number + 1 < c->skip + length)
        return 0;
    uint64_t over = (number + 1 - c->skip) / length; /* turns that are */
    uint64_t before = ch->next > c->skip ? (ch->next - c->skip) / length : 0;
    if (over == before || (c->repeat && before >= c->repeat))
        return 0;
    return wish_for_turn(c, c->repeat ? PKI_MIN(over, c->repeat) - 1 : over - 1, wish);
}

unsigned pki_choose(pki_chooser *ch, uint64_t number, uint32_t kind, uint64_t ns,
                    pki_wish wishes[PKI_WISHES_MOST])
{
    unsigned n = choose_slow(ch, number, kind, ns, wishes);
    n += choose_ranges(ch, number, wishes + n);
    n += choose_every(ch, number, wishes + n);
    n += choose_cycle(ch, number, wishes + n);
    ch->next = number + 1;
    return n;
}

unsigned pki_choose_at_end(pki_chooser *ch, pki_wish wishes[PKI_WISHES_MOST])
{
    uint64_t turn, at;
    unsigned n = 0;
    const pki_cycle *c = &ch->clauses.cycle;
    for (uint32_t i = 0; i < ch->clauses.range_count; i++) {
        const pki_step_range *r = &ch->clauses.ranges[i];
        if (ch->next <= r->first || ch->next > r->last)
            continue;
        wishes[n++] = (pki_wish){.first = r->first,
                                 .last = ch->next - 1,
                                 .reason = PKI_CAPTURE_STEPS,
                                 .worth = PKI_WORTH_ASKED,
                                 .cut = true};
    }
    if (find_in_cycle(c, ch->next, &turn, &at) && ch->next > active_begin(c, turn)) {
        wish_for_turn(c, turn, &wishes[n]);
        wishes[n].last = ch->next - 1;
        wishes[n++].cut = true;
    }
    return n;
}

/* ---- what is to come ---- */

/* Of the turns whose active steps begin no later than the last of these: the latest one. */
static bool is_active_within(const pki_cycle *c, uint64_t first, uint64_t last)
{
    if (!c->active || last < active_begin(c, 0))
        return false;
    uint64_t turn = (last - active_begin(c, 0)) / (c->wait + c->warmup + c->active);
    if (c->repeat)
        turn = PKI_MIN(turn, c->repeat - 1);
    return active_begin(c, turn) + c->active > first;
}

/* A slow step is foreseen by nobody. */
bool pki_choose_foresees(const pki_chooser *ch, uint64_t first, uint64_t last)
{
    const pki_clauses *c = &ch->clauses;
    uint64_t turn, at = 0;
    for (uint32_t i = 0; i < c->range_count; i++)
        if (last >= c->ranges[i].first && first <= c->ranges[i].last)
            return true;
    if (c->every && last / c->every > (first ? (first - 1) / c->every : 0))
        return true;
    bool warm = find_in_cycle(&c->cycle, first, &turn, &at) && at >= c->cycle.wait;
    return warm || is_active_within(&c->cycle, first, last);
}
