#include "capture/clauses.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define FLOOR_NS 100000u
#define SLOWEST 1000.0

/* A part of the text; its end is no NUL. */
typedef struct part {
    const char *at, *end;
} part;

/* Up to the separator, which is passed over; false, and an empty one: there are no more. */
static bool next_part(part *rest, char separator, part *out)
{
    *out = (part){rest->end, rest->end};
    if (!rest->at)
        return false;
    const char *end = memchr(rest->at, separator, (size_t)(rest->end - rest->at));
    *out = (part){rest->at, end ? end : rest->end};
    rest->at = end ? end + 1 : NULL;
    return true;
}

static bool is_named(part p, const char *name)
{
    size_t n = strlen(name);
    return (size_t)(p.end - p.at) == n && memcmp(p.at, name, n) == 0;
}

/* Digits, and nothing else. */
static bool read_whole(part p, uint64_t *value)
{
    *value = 0;
    if (p.at == p.end)
        return false;
    for (; p.at < p.end; p.at++) {
        unsigned digit = (unsigned)(*p.at - '0');
        if (digit > 9 || *value > (UINT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return true;
}

/* A plain decimal number, whatever the locale: digits, perhaps a point and more digits. */
static bool read_ratio(part p, double *value)
{
    uint64_t whole, fraction = 0;
    part rest = p, left, right = {NULL, NULL};
    next_part(&rest, '.', &left);
    bool has_point = next_part(&rest, '.', &right);
    if (rest.at || !read_whole(left, &whole) || whole > (uint64_t)SLOWEST)
        return false;
    if (has_point && (right.end - right.at > 9 || !read_whole(right, &fraction)))
        return false;
    *value = (double)(uint32_t)whole; /* neither has more than nine digits */
    if (has_point)
        *value += (double)(uint32_t)fraction / pow(10, (double)(right.end - right.at));
    return true;
}

typedef struct reading {
    pki_clauses *to;
    const char *wrong; /* what is; NULL: nothing */
} reading;

static bool wrong(reading *r, const char *what)
{
    r->wrong = what;
    return false;
}

static bool read_slow(reading *r, part value)
{
    part ratio, floor, key;
    if (r->to->slow != 0)
        return wrong(r, "is given twice");
    next_part(&value, ',', &ratio);
    r->to->floor_ns = FLOOR_NS;
    if (!read_ratio(ratio, &r->to->slow) || r->to->slow <= 1 || r->to->slow > SLOWEST)
        return wrong(r, "takes a ratio above 1, such as 1.2");
    if (!next_part(&value, ',', &floor))
        return true;
    uint64_t us;
    next_part(&floor, ':', &key);
    if (value.at || !is_named(key, "floor") || !floor.at ||
        !read_whole((part){floor.at, floor.end}, &us) || us > UINT32_MAX)
        return wrong(r, "takes floor:MICROSECONDS behind the ratio, and nothing else");
    r->to->floor_ns = us * 1000;
    return true;
}

static bool read_steps(reading *r, part value)
{
    part first, last;
    pki_step_range range;
    if (r->to->range_count == PKI_CAPTURE_RANGES)
        return wrong(r, "is given more than 8 times");
    next_part(&value, '-', &first);
    bool two = next_part(&value, '-', &last);
    if (value.at || !read_whole(first, &range.first) ||
        !read_whole(two ? last : first, &range.last) || range.last < range.first)
        return wrong(r, "takes a step or a range of steps, such as 100-104");
    if (range.last - range.first >= PKI_CAPTURE_STEPS_MOST)
        return wrong(r, "is of more than 10000 steps");
    r->to->ranges[r->to->range_count++] = range;
    return true;
}

static bool read_every(reading *r, part value)
{
    if (r->to->every)
        return wrong(r, "is given twice");
    if (!read_whole(value, &r->to->every) || r->to->every == 0)
        return wrong(r, "takes a number of steps, 1 or more");
    return true;
}

static bool read_cycle_part(pki_cycle *c, unsigned *seen, part one)
{
    static const char *const names[] = {"skip", "wait", "warmup", "active", "repeat"};
    uint64_t *const fields[] = {&c->skip, &c->wait, &c->warmup, &c->active, &c->repeat};
    part key;
    next_part(&one, ':', &key);
    for (unsigned i = 0; i < PKI_COUNT_OF(names); i++)
        if (is_named(key, names[i]) && !(*seen & 1u << i)) {
            *seen |= 1u << i;
            return one.at && read_whole((part){one.at, one.end}, fields[i]) &&
                   *fields[i] <= UINT32_MAX;
        }
    return false;
}

static bool read_cycle(reading *r, part value)
{
    unsigned seen = 0;
    if (r->to->cycle.active)
        return wrong(r, "is given twice");
    for (part one; next_part(&value, ',', &one);)
        if (!read_cycle_part(&r->to->cycle, &seen, one))
            return wrong(r, "takes skip, wait, warmup, active and repeat, each once, such as "
                            "skip:10,wait:5,warmup:1,active:3,repeat:2");
    if (r->to->cycle.active == 0 || r->to->cycle.active > PKI_CAPTURE_STEPS_MOST)
        return wrong(r, "needs active: 1 to 10000 steps");
    return true;
}

/* The steps behind a slow one: only where it is armed. */
static bool read_behind(reading *r, part value)
{
    part key;
    next_part(&value, ':', &key);
    return is_named(key, "steps") && value.at &&
           read_whole((part){value.at, value.end}, &r->to->behind) && r->to->behind > 0 &&
           r->to->behind <= PKI_CAPTURE_BEHIND_MOST;
}

static bool read_kernels(reading *r, part value)
{
    part which, behind;
    if (r->to->kernels != PKI_KERNELS_UNSAID)
        return wrong(r, "is given twice");
    next_part(&value, ',', &which);
    bool more = next_part(&value, ',', &behind);
    if (is_named(which, "always") && !more)
        r->to->kernels = PKI_KERNELS_ALWAYS;
    else if (is_named(which, "armed") && !value.at && (!more || read_behind(r, behind)))
        r->to->kernels = PKI_KERNELS_ARMED;
    else
        return wrong(r, "is neither always nor armed, behind which steps:NUMBER may stand, 1 to "
                        "1000");
    return true;
}

static bool read_request(reading *r, part value)
{
    if (value.at)
        return wrong(r, "takes nothing");
    r->to->request = true;
    return true;
}

static bool read_straggler(reading *r, part value)
{
    if (value.at)
        return wrong(r, "takes nothing");
    r->to->straggler = true;
    return true;
}

static bool read_clause(reading *r, part clause)
{
    static const struct {
        const char *name;
        bool (*read)(reading *, part);
    } kinds[] = {{"slow", read_slow},      {"steps", read_steps},     {"every", read_every},
                 {"cycle", read_cycle},    {"request", read_request}, {"straggler", read_straggler},
                 {"kernels", read_kernels}};
    part key;
    next_part(&clause, '=', &key);
    for (size_t i = 0; i < PKI_COUNT_OF(kinds); i++) {
        if (!is_named(key, kinds[i].name))
            continue;
        if (!clause.at && kinds[i].read != read_request && kinds[i].read != read_straggler)
            return wrong(r, "takes a value");
        return kinds[i].read(r, clause);
    }
    return wrong(r, "is none of slow, steps, every, cycle, request, straggler and kernels");
}

bool pki_clauses_parse(const char *text, pki_clauses *clauses, char *why, size_t size)
{
    part rest = {text, text + strlen(text)}, clause;
    reading r = {clauses, NULL};
    memset(clauses, 0, sizeof *clauses);
    clauses->behind = PKI_CAPTURE_BEHIND;
    if (!*text)
        return true;
    while (next_part(&rest, ';', &clause))
        if (!read_clause(&r, clause)) {
            int shown = (int)PKI_MIN(clause.end - clause.at, 60);
            snprintf(why, size, "'%.*s' %s", shown, clause.at, r.wrong);
            return false;
        }
    return true;
}

bool pki_clauses_await_steps(const pki_clauses *c)
{
    return c->slow != 0 || c->range_count || c->every || c->cycle.active || c->straggler;
}

uint64_t pki_clauses_longest(const pki_clauses *c)
{
    uint64_t behind = c->kernels == PKI_KERNELS_ARMED ? c->behind : 0;
    uint64_t longest = c->slow != 0 ? PKI_CAPTURE_BEFORE + 1 + behind : 1;
    for (uint32_t i = 0; i < c->range_count; i++)
        longest = PKI_MAX(longest, c->ranges[i].last - c->ranges[i].first + 1);
    longest = PKI_MAX(longest, c->straggler ? PKI_CAPTURE_STRAGGLER_STEPS : 1);
    return PKI_MAX(longest, c->cycle.active);
}
