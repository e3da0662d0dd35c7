#include "merge/wish.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* "7" or "4-7", up to the end or a comma. NULL: it is neither. */
static const char *read_range(const char *s, uint64_t *first, uint64_t *last)
{
    char *end;
    if (*s < '0' || *s > '9')
        return NULL;
    *first = *last = strtoull(s, &end, 10);
    if (*end == '-') {
        s = end + 1;
        if (*s < '0' || *s > '9')
            return NULL;
        *last = strtoull(s, &end, 10);
    }
    return *last >= *first && (*end == '\0' || *end == ',') ? end : NULL;
}

bool parse_ranks(void *wish, const option_given *given)
{
    merge_wish *w = wish;
    const char *s = given->text;
    if (!option_has_value(given))
        return false;
    for (bool more = true; more; s++) {
        rank_range range;
        s = read_range(s, &range.first, &range.last);
        if (!s)
            return option_refuse(given, "ranks, such as 0,4,8-15");
        memory_fit(&w->ranks, &w->rank_room, w->rank_count + 1, sizeof *w->ranks);
        w->ranks[w->rank_count++] = range;
        more = *s == ',';
    }
    return true;
}

bool parse_steps(void *wish, const option_given *given)
{
    merge_wish *w = wish;
    if (!option_has_value(given))
        return false;
    const char *end = read_range(given->text, &w->steps.first, &w->steps.last);
    w->steps.limited = true;
    return (end && *end == '\0') || option_refuse(given, "a step or a range of them: 100-120");
}

/* Seconds, with a point in any locale. */
static bool parse_seconds(merge_wish *w, const option_given *given, uint64_t *ns)
{
    if (!option_has_value(given))
        return false;
    const char *s = given->text;
    uint64_t whole = 0, part = 0, unit = 1000000000;
    bool any = false;
    for (; *s >= '0' && *s <= '9' && whole < 1000000000; s++, any = true)
        whole = 10 * whole + (uint64_t)(*s - '0');
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++, any = true)
            if (unit > 1)
                part += (uint64_t)(*s - '0') * (unit /= 10);
    if (!any || *s)
        return option_refuse(given, "seconds since the beginning: 1.5");
    *ns = whole * 1000000000 + part;
    w->window.limited = true;
    return true;
}

bool parse_from(void *wish, const option_given *given)
{
    merge_wish *w = wish;
    return parse_seconds(w, given, &w->window.from);
}

bool parse_to(void *wish, const option_given *given)
{
    merge_wish *w = wish;
    return parse_seconds(w, given, &w->window.to);
}

static bool is_wanted(const merge_wish *w, int32_t rank)
{
    for (size_t i = 0; i < w->rank_count; i++)
        if (rank >= 0 && (uint64_t)rank >= w->ranks[i].first && (uint64_t)rank <= w->ranks[i].last)
            return true;
    return w->rank_count == 0;
}

void wish_select_ranks(const merge_wish *w, merge_sources *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (is_wanted(w, s->all[i].rank)) {
            merge_source swapped = s->all[kept];
            s->all[kept++] = s->all[i];
            s->all[i] = swapped;
        }
    }
    for (size_t i = kept; i < s->count; i++)
        source_free(&s->all[i]);
    s->count = kept;
}

void wish_free(merge_wish *w)
{
    free(w->ranks);
}
