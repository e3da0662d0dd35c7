/* A job's life: the runs of its state file, added up. A file of its own since no program that is
 * measured has a use for it: the linker takes it from the archive for who reads such files. */
#include "measure/goodput/goodput.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/memory.h"

#define GAP_MOST (366 * UINT64_C(86400000000000)) /* ns; a clock was set rather */

typedef struct run {
    pki_life_line first, last;
} run;

struct pki_life {
    size_t count, room;
    run *runs; /* in the order of their first lines */
    uint64_t lines, damaged;
};

pki_life *pki_life_begin(void)
{
    return calloc(1, sizeof(pki_life));
}

static run *find(const pki_life *life, uint64_t id)
{
    for (size_t i = life->count; i-- > 0;)
        if (life->runs[i].first.run == id)
            return &life->runs[i];
    return NULL;
}

void pki_life_add(pki_life *life, const char *text, size_t length)
{
    pki_life_line line;
    if (!life || !length)
        return;
    if (!pki_life_read(text, length, &line)) {
        life->damaged++;
        return;
    }
    life->lines++;
    run *r = find(life, line.run);
    if (r && line.n > r->last.n)
        r->last = line;
    if (!r && pki_array_fit(&life->runs, &life->room, life->count + 1, sizeof *life->runs))
        life->runs[life->count++] = (run){line, line};
}

static uint64_t sum_of(const uint64_t parts[PKI_PARTS])
{
    uint64_t sum = 0;
    for (size_t i = 0; i < PKI_PARTS; i++)
        sum += parts[i];
    return sum;
}

/* The machine slept meanwhile: the run was down, though it lives. */
static uint64_t slept(const run *r)
{
    uint64_t passed = pki_saturating_sub(r->last.boot_ns, r->first.boot_ns);
    uint64_t ns =
        r->first.boot ? pki_saturating_sub(passed, pki_saturating_sub(r->last.up, r->first.up)) : 0;
    return ns > 10000000 ? ns : 0; /* two clocks, read one after the other */
}

static void add_run(pki_life_sum *s, const run *r)
{
    const pki_life_line *l = &r->last;
    uint64_t known = 0;
    for (size_t i = 0; i < PKI_PARTS; i++) {
        uint64_t ns = PKI_MIN(l->parts[i], pki_saturating_sub(l->up, known));
        s->parts[i] += ns;
        known += ns;
    }
    s->parts[PKI_PART_OTHER] += pki_saturating_sub(l->up, known);
    s->down += slept(r);
    s->runs++;
    s->ended += l->why == PKI_LIFE_END;
    s->steps += l->steps;
    s->recomputed += l->recomputed;
    s->at_known = s->at_known && (l->at >= 0 || !l->steps);
    s->furthest = PKI_MAX(s->furthest, PKI_MAX(l->at, l->furthest));
    s->saved = l->saved >= 0 ? l->saved : s->saved;
    s->saves += l->saves;
    s->save_ns += l->save_ns;
    s->save_bytes += l->save_bytes;
}

static uint64_t time_in_steps(const uint64_t parts[PKI_PARTS])
{
    return parts[PKI_PART_PRODUCTIVE] + parts[PKI_PART_RECOMPUTED] + parts[PKI_PART_DATA];
}

/* So many steps, as long as all that are known, may be in that time. */
static uint64_t steps_in(const pki_life_sum *s, uint64_t ns)
{
    uint64_t time = time_in_steps(s->parts);
    return time ? (uint64_t)((double)ns * (double)s->steps / (double)time + 0.5) : 0;
}

/* From the last word of those before to the beginning of the next. False: unknown. */
static bool add_gap(pki_life_sum *s, const pki_life_line *last, const run *r)
{
    const pki_life_line *next = &r->first;
    bool same = last->boot && last->boot == next->boot;
    uint64_t end = same ? last->boot_ns : last->unix_ns;
    uint64_t now = same ? next->boot_ns : next->unix_ns;
    uint64_t begin = pki_saturating_sub(now, next->up);
    if (begin >= end && begin - end <= GAP_MOST) {
        s->down += begin - end;
        s->doubt += last->why == PKI_LIFE_END ? 0 : PKI_MIN(last->beat, begin - end);
    } else if (begin < end && (same || end - begin <= next->up)) {
        uint64_t both = PKI_MIN(end - begin, same ? r->last.boot_ns - begin : r->last.up);
        s->overlaps += both > 10000000; /* a process's start is known to 10 ms */
        s->overlap += both;
    } else {
        s->clock_set++;
        return false;
    }
    return true;
}

/* One that began later may have ended earlier. */
static bool ends_later(const pki_life_line *a, const pki_life_line *than)
{
    bool same = a->boot && a->boot == than->boot;
    return same ? a->boot_ns > than->boot_ns : a->unix_ns > than->unix_ns;
}

pki_life_sum pki_life_end(pki_life *life)
{
    pki_life_sum s = {.furthest = -1, .saved = -1, .at_known = true};
    size_t n = life ? life->count : 0, latest = 0;
    for (size_t i = 0; i < n; i++) {
        bool known = i == 0 || add_gap(&s, &life->runs[latest].last, &life->runs[i]);
        if (!known || ends_later(&life->runs[i].last, &life->runs[latest].last))
            latest = i; /* what comes behind it goes by its clock */
        add_run(&s, &life->runs[i]);
    }
    if (n) {
        const pki_life_line *first = &life->runs[0].first, *last = &life->runs[latest].last;
        s.rank = first->rank;
        s.first_unix = pki_saturating_sub(first->unix_ns, first->up);
        s.last_unix = last->unix_ns;
        s.doubt_steps = steps_in(&s, s.doubt);
        s.last_doubt_steps = last->why == PKI_LIFE_END ? 0 : steps_in(&s, last->beat);
    }
    s.lines = life ? life->lines : 0;
    s.damaged = life ? life->damaged : 0;
    free(life ? life->runs : NULL);
    free(life);
    s.wall = s.down + sum_of(s.parts);
    s.goodput = s.wall ? (double)s.parts[PKI_PART_PRODUCTIVE] / (double)s.wall : 0;
    s.ettr = s.wall
                 ? (double)(s.parts[PKI_PART_PRODUCTIVE] + s.parts[PKI_PART_DATA]) / (double)s.wall
                 : 0;
    return s;
}
