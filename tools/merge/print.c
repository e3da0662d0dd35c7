#include "merge/print.h"

#include "out/columns.h"

#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long number;

static const char *ending(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- ranks ---- */

/* "0-3, 7" of sorted ranks; `present`: those that are there, else those that are not. */
static void print_ranks(const merge_sources *s, int32_t size, bool present)
{
    const char *between = "";
    size_t i = 0;
    while (i < s->count && s->all[i].rank < 0)
        i++;
    for (int32_t rank = 0, first = -1; rank <= size; rank++) {
        while (i < s->count && s->all[i].rank < rank)
            i++;
        bool there = i < s->count && s->all[i].rank == rank;
        bool counts = rank < size && there == present;
        if (counts && first < 0)
            first = rank;
        if (counts || first < 0)
            continue;
        printf(rank - first > 1 ? "%s%d-%d" : "%s%d", between, first, rank - 1);
        between = ", ";
        first = -1;
    }
}

static void print_rank_counts(const merge_sources *s)
{
    int32_t size = 0, there = 0, before = -1;
    for (size_t i = 0; i < s->count; i++) {
        const merge_source *it = &s->all[i];
        int32_t least = it->rank + 1 > it->ranks ? it->rank + 1 : it->ranks;
        size = least > size ? least : size;
        there += it->rank >= 0 && it->rank != before;
        before = it->rank;
    }
    if (there == 0)
        return;
    printf("  ranks: ");
    print_ranks(s, size, true);
    printf(" (%d of %d)", there, size);
    if (there < size) {
        printf("; missing: ");
        print_ranks(s, size, false);
    }
    printf("\n");
}

/* ---- clocks ---- */

/* So that it can be read: 12.3 us. */
static void print_time(double ns)
{
    double size = ns < 0 ? -ns : ns;
    if (size >= 1e9)
        printf("%.3f s", ns / 1e9);
    else if (size >= 1e6)
        printf("%.3f ms", ns / 1e6);
    else if (size >= 1e3)
        printf("%.3f us", ns / 1e3);
    else
        printf("%.0f ns", ns);
}

static void print_clock(const pki_clock *c)
{
    printf("  clock of ");
    pki_put_text(stdout, *c->host ? c->host : c->name);
    printf(": ");
    if (c->method == PKI_CLOCK_SAME) {
        printf("that of the time axis\n");
        return;
    }
    if (c->broken)
        printf("broken: what ranks did together contradicts itself; ");
    if (c->method == PKI_CLOCK_REAL_TIME) {
        printf("by the nodes' real times, which nothing here bounds\n");
        return;
    }
    printf("within ");
    print_time((double)pki_clock_doubt(c));
    printf(", by %llu messages and collectives; it drifts %.3f ppm\n", (number)c->bounds,
           pki_clock_drift(c));
}

static void print_clocks(const pki_clocks *c)
{
    for (size_t i = 0; c->count > 1 && i < c->count; i++)
        print_clock(&c->all[i]);
}

/* ---- the whole ---- */

static void print_arrows(const arrows *a)
{
    printf("  arrows: %llu, of %llu message%s and %llu collective%s between ranks\n",
           (number)a->drawn, (number)a->messages, ending(a->messages), (number)a->collectives,
           ending(a->collectives));
    if (a->backwards) {
        printf("  backwards: %llu end%s before what it has to follow, by up to ",
               (number)a->backwards, a->backwards == 1 ? " is" : "s are");
        print_time((double)a->worst_ns);
        printf("; without arrows\n");
    }
    if (a->alone)
        printf("  alone: %llu message%s and collective%s, whose other side is in none of the"
               " traces or is ambiguous\n",
               (number)a->alone, ending(a->alone), ending(a->alone));
    if (a->ambiguous)
        printf("  ambiguous: %llu collective%s of communicators with the same name\n",
               (number)a->ambiguous, ending(a->ambiguous));
}

static void print_file(const merge_source *s)
{
    printf("  ");
    pki_put_text(stdout, s->path);
    if (s->arena) {
        printf(": the run was killed; `pk recover ");
        pki_put_text(stdout, s->path);
        printf(".arena` has the rest of it\n");
    } else {
        printf(": it is cut off\n");
    }
}

static void print_files(const merge_copy *c)
{
    for (size_t i = 0; i < c->sources->count; i++)
        if (c->sources->all[i].arena || c->sources->all[i].cut)
            print_file(&c->sources->all[i]);
    if (c->sources->unreadable)
        printf("  passed over: %zu file%s that could not be read as JSON\n", c->sources->unreadable,
               ending(c->sources->unreadable));
    if (c->without_time)
        printf("  left out: %llu event%s without a time\n", (number)c->without_time,
               ending(c->without_time));
}

void print_merged(const merge_outcome *t)
{
    const merge_copy *c = t->copy;
    printf("%s: %zu trace%s, %llu events", t->out, c->sources->count, ending(c->sources->count),
           (number)c->events);
    if (c->window.limited)
        printf("; %llu outside the window", (number)c->left_out);
    printf("\n");
    print_rank_counts(c->sources);
    print_clocks(c->clocks);
    print_arrows(&t->arrows);
    print_files(c);
}

bool print_manifest(const char *out, const merge_sources *s, const pki_clocks *c)
{
    printf("%s: %zu trace%s\n", out, s->count, ending(s->count));
    print_rank_counts(s);
    print_clocks(c);
    return true;
}
