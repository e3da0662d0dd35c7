#include "session/job/goodput_account.h"

#include <string.h>
#include <time.h>

#include "measure/goodput/account.h"

static struct {
    bool there;
    pki_account account;
    uint64_t origin; /* session ns 0 on CLOCK_MONOTONIC */
    uint64_t seen_training, seen_hang;
    pki_phases seen; /* the last time that they were known */
} x;

static uint64_t hang_since; /* the watchdog's word */

void pki_goodput_hang(uint64_t since)
{
    pki_store_release(&hang_since, since);
}

static uint64_t in_session(uint64_t monotonic)
{
    return pki_saturating_sub(monotonic, x.origin);
}

/* Once for each hang, since a step that ends is its end, too. */
static void account_hang(void)
{
    uint64_t since = pki_load_acquire(&hang_since); /* pairs with the watchdog's store */
    if (since && since != x.seen_hang)
        pki_account_hang(&x.account, in_session(since));
    else if (!since && x.seen_hang)
        pki_account_hang_over(&x.account, in_session(pki_monotonic_ns()));
    x.seen_hang = since;
}

/* What has been announced since the last time. Under the fold lock. */
static pki_phases account_phases(void)
{
    pki_phase_part parts[32];
    pki_phases now = pki_phases_now(); /* first: what ends meanwhile is among the parts below */
    size_t n;
    account_hang();
    if (!now.known)
        return x.seen;
    pki_account_phase(&x.account, in_session(now.since),
                      now.open ? pki_part_of_phase(now.open) : 0);
    while ((n = pki_phases_drain(parts, PKI_COUNT_OF(parts))) > 0)
        for (size_t i = 0; i < n; i++)
            pki_account_span_add(&x.account, in_session(parts[i].begin), in_session(parts[i].end),
                                 pki_part_of_phase(parts[i].phase));
    if (now.training_calls != x.seen_training)
        pki_account_at(&x.account, now.training_at, now.training_index);
    x.seen_training = now.training_calls;
    return x.seen = now;
}

static void on_step(pki_fold *fold, const pki_step *step, uint64_t data)
{
    const pki_account_step s = {.index = step->index,
                                .start = step->start,
                                .duration = step->duration,
                                .data = data,
                                .kind = step->kind,
                                .between = step->between};
    (void)fold;
    account_phases();
    pki_account_add(&x.account, &s);
}

void pki_goodput_account_hang(void)
{
    pki_fold_lock();
    account_hang();
    pki_fold_unlock();
}

void pki_goodput_account_begin(const pki_session *s, uint64_t before)
{
    x.seen.saved = -1;
    pki_fold_lock();
    x.origin = s->arena->header->clock.origin_ns;
    pki_account_begin(&x.account, before, -1);
    x.there = true;
    pki_fold_now()->on_account[PKI_FOLD_GOODPUT] = on_step;
    pki_fold_unlock();
}

void pki_goodput_account_furthest(int64_t steps)
{
    pki_fold_lock();
    x.account.furthest_before = steps;
    pki_fold_unlock();
}

pki_phases pki_goodput_account_phases(void)
{
    return x.seen;
}

pki_phases pki_goodput_account_line(bool last, pki_life_line *l)
{
    pki_fold_lock();
    uint64_t now = PKI_MAX(in_session(pki_monotonic_ns()), x.account.covered);
    pki_phases seen = account_phases();
    pki_account_parts(&x.account, now, last, l->parts);
    l->unix_ns = pki_read_clock(CLOCK_REALTIME);
    l->boot_ns = pki_read_clock(CLOCK_BOOTTIME);
    l->up = x.account.before + now;
    l->steps = x.account.steps;
    l->recomputed = x.account.recomputed;
    l->at = x.account.at_told ? (int64_t)x.account.at_step : x.account.at;
    l->furthest = PKI_MAX(l->at, x.account.furthest_before);
    pki_fold_unlock();
    l->saves = seen.saves;
    l->save_ns = seen.time[PK_PHASE_CHECKPOINT];
    l->save_bytes = seen.save_bytes;
    l->saved = seen.saved;
    return seen;
}

void pki_goodput_fill(uint64_t now, bool last, pki_goodput_summary *out)
{
    if (!x.there)
        return;
    account_phases();
    now = PKI_MAX(now, x.account.covered);
    pki_account_parts(&x.account, now, last, out->parts);
    out->up = x.account.before + now;
    out->steps = x.account.steps;
    out->recomputed = x.account.recomputed;
}

void pki_goodput_account_stop(void)
{
    pki_fold_lock();
    pki_fold *fold = pki_fold_now();
    if (fold)
        fold->on_account[PKI_FOLD_GOODPUT] = NULL;
    pki_fold_unlock();
}

void pki_goodput_account_forget(void)
{
    pki_goodput_account_stop();
    x.there = false;
}

void pki_goodput_account_after_fork(void)
{
    memset(&x, 0, sizeof x);
    pki_store(&hang_since, (uint64_t)0);
}
