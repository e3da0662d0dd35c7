#include "capture/capture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"

/* ---- the median of the last like steps ---- */

/* The steps that are like it; all zero is none. */
static pki_like_steps *pki_like_of(pki_medians_by_kind *all, uint32_t kind)
{
    for (uint32_t i = 0; i < all->kinds; i++)
        if (all->of[i].kind == kind)
            return &all->of[i];
    if (all->kinds == PKI_LIKE_KINDS)
        return &all->of[PKI_LIKE_KINDS - 1];
    all->of[all->kinds].kind = kind;
    return &all->of[all->kinds++];
}

uint64_t pki_like_median(const pki_like_steps *like)
{
    return like->count < PKI_LIKE_LEAST ? 0 : like->sorted[like->count / 2];
}

/* Where the value stands, or belongs. */
static uint32_t lower_bound(const pki_like_steps *like, uint64_t ns)
{
    uint32_t low = 0, high = like->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (like->sorted[middle] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop_oldest(pki_like_steps *like)
{
    uint32_t at = lower_bound(like, like->in_order[like->oldest]);
    like->count--;
    memmove(&like->sorted[at], &like->sorted[at + 1], (like->count - at) * sizeof *like->sorted);
}

void pki_like_add(pki_like_steps *like, uint64_t ns)
{
    if (like->count == PKI_LIKE_STEPS)
        drop_oldest(like);
    uint32_t at = lower_bound(like, ns);
    memmove(&like->sorted[at + 1], &like->sorted[at], (like->count - at) * sizeof *like->sorted);
    like->sorted[at] = ns;
    like->count++;
    like->in_order[like->oldest] = ns;
    like->oldest = (like->oldest + 1) % PKI_LIKE_STEPS;
}

/* ---- which steps are worth a trace: pk_options.capture, taken apart ---- */

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

/* ---- from steps that have ended to those of which a trace is to be made ---- */

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

uint64_t pki_choose_late(pki_chooser *ch, uint32_t kind)
{
    const pki_clauses *c = &ch->clauses;
    double median = c->slow != 0 ? (double)pki_like_median(pki_like_of(&ch->medians, kind)) : 0;
    double late = c->slow * median, least = median + (double)c->floor_ns;
    return median > 0 ? (uint64_t)(late > least ? late : least) : 0;
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

/* Of a step that is missing the next one takes its place. */
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
static bool find_in_cycle(const pki_cycle *c, uint64_t number, uint64_t *pass, uint64_t *at)
{
    uint64_t length = c->wait + c->warmup + c->active;
    if (!c->active || number < c->skip)
        return false;
    *pass = (number - c->skip) / length;
    *at = (number - c->skip) % length;
    return c->repeat == 0 || *pass < c->repeat;
}

static uint64_t active_begin(const pki_cycle *c, uint64_t pass)
{
    return c->skip + pass * (c->wait + c->warmup + c->active) + c->wait + c->warmup;
}

static unsigned wish_for_pass(const pki_cycle *c, uint64_t pass, pki_wish *wish)
{
    uint64_t first = active_begin(c, pass);
    *wish = (pki_wish){.first = first,
                       .last = first + c->active - 1,
                       .reason = PKI_CAPTURE_CYCLE,
                       .worth = PKI_WORTH_TURN};
    return 1;
}

/* The last step of a pass, or the first one behind it if that is missing. */
static unsigned choose_cycle(const pki_chooser *ch, uint64_t number, pki_wish *wish)
{
    const pki_cycle *c = &ch->clauses.cycle;
    uint64_t length = c->wait + c->warmup + c->active;
    if (!c->active || number + 1 < c->skip + length)
        return 0;
    uint64_t over = (number + 1 - c->skip) / length; /* passes that are */
    uint64_t before = ch->next > c->skip ? (ch->next - c->skip) / length : 0;
    if (over == before || (c->repeat && before >= c->repeat))
        return 0;
    return wish_for_pass(c, c->repeat ? PKI_MIN(over, c->repeat) - 1 : over - 1, wish);
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
    uint64_t pass, at;
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
    if (find_in_cycle(c, ch->next, &pass, &at) && ch->next > active_begin(c, pass)) {
        wish_for_pass(c, pass, &wishes[n]);
        wishes[n].last = ch->next - 1;
        wishes[n++].cut = true;
    }
    return n;
}

/* ---- what is to come ---- */

/* Of the passes whose active steps begin no later than the last of these: the latest one. */
static bool is_active_within(const pki_cycle *c, uint64_t first, uint64_t last)
{
    if (!c->active || last < active_begin(c, 0))
        return false;
    uint64_t pass = (last - active_begin(c, 0)) / (c->wait + c->warmup + c->active);
    if (c->repeat)
        pass = PKI_MIN(pass, c->repeat - 1);
    return active_begin(c, pass) + c->active > first;
}

/* A slow step is foreseen by nobody. */
bool pki_choose_foresees(const pki_chooser *ch, uint64_t first, uint64_t last)
{
    const pki_clauses *c = &ch->clauses;
    uint64_t pass, at = 0;
    for (uint32_t i = 0; i < c->range_count; i++)
        if (last >= c->ranges[i].first && first <= c->ranges[i].last)
            return true;
    if (c->every && last / c->every > (first ? (first - 1) / c->every : 0))
        return true;
    bool warm = find_in_cycle(&c->cycle, first, &pass, &at) && at >= c->cycle.wait;
    return warm || is_active_within(&c->cycle, first, last);
}

/* ---- how many captures, and how many bytes of them, an hour may leave ---- */

static void drop(pki_budget *b, size_t i)
{
    free(b->kept[i].path);
    memmove(&b->kept[i], &b->kept[i + 1], (--b->count - i) * sizeof *b->kept);
}

void pki_budget_finish(pki_budget *b)
{
    while (b->count)
        drop(b, b->count - 1);
    free(b->kept);
    *b = (pki_budget){0};
}

static void forget_old(pki_budget *b, uint64_t now)
{
    while (b->count && now - b->kept[0].ns >= PKI_BUDGET_HOUR_NS)
        drop(b, 0);
}

uint64_t pki_budget_allows(pki_budget *b, uint64_t now, double worth)
{
    uint64_t taken = 0;
    size_t stay = 0;
    forget_old(b, now);
    for (size_t i = 0; i < b->count; i++)
        if (b->kept[i].worth >= worth || !b->kept[i].path) {
            taken += b->kept[i].bytes;
            stay++;
        }
    uint64_t left = taken < b->bytes ? b->bytes - taken : 0;
    return stay >= b->captures || left < PKI_BUDGET_LEAST ? 0 : left;
}

/* Only what is still the file that was made. */
static void remove_file(const pki_kept *k)
{
    struct stat file;
    if (lstat(k->path, &file) == 0 && file.st_dev == k->device && file.st_ino == k->inode)
        unlink(k->path);
}

/* The one of least worth, of those the latest; SIZE_MAX: none of less. */
static size_t find_least(const pki_budget *b, double worth)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < b->count; i++)
        if (b->kept[i].path && b->kept[i].worth < worth &&
            (least == SIZE_MAX || b->kept[i].worth <= b->kept[least].worth))
            least = i;
    return least;
}

static bool is_over(const pki_budget *b, uint64_t bytes)
{
    uint64_t sum = bytes;
    for (size_t i = 0; i < b->count; i++)
        sum += b->kept[i].bytes;
    return b->count >= b->captures || sum > b->bytes;
}

void pki_budget_make_room(pki_budget *b, uint64_t now, double worth, uint64_t bytes)
{
    forget_old(b, now);
    for (size_t i; is_over(b, bytes) && (i = find_least(b, worth)) != SIZE_MAX;) {
        remove_file(&b->kept[i]);
        drop(b, i);
        b->removed++;
    }
}

void pki_budget_enter(pki_budget *b, uint64_t now, double worth, uint64_t bytes, const char *path)
{
    struct stat file = {0};
    if (!pki_array_fit(&b->kept, &b->room, b->count + 1, sizeof *b->kept)) {
        b->captures -= b->captures > 0; /* as if it stood there for ever */
        b->bytes -= bytes < b->bytes ? bytes : b->bytes;
        return;
    }
    pki_kept k = {.ns = now, .bytes = bytes, .worth = worth};
    if (lstat(path, &file) == 0)
        k.path = strdup(path);
    k.device = file.st_dev;
    k.inode = file.st_ino;
    b->kept[b->count++] = k;
}

bool pki_budget_has(const pki_budget *b, const char *path)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->kept[i].path && strcmp(b->kept[i].path, path) == 0)
            return true;
    return false;
}
