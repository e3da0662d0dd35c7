/* lib/measure/memory/gpu_sums.c - the account of device memory as parts of a run that can be added
 * up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/memory/gpu.h"

static bool add_place(pki_gpu_memory_sums *out, pki_gpu_memory_sum row, const char *place)
{
    row.place = strdup(place);
    out->places[out->place_count++] = row;
    return row.place;
}

static bool copy_place(const pki_gpu_account *a, size_t place, pki_gpu_memory_sums *out)
{
    const pki_gpu_place *p = &a->places[place];
    char name[16] = "host";
    if (place != PKI_GPU_HOST)
        snprintf(name, sizeof name, "gpu%u", (unsigned)place);
    return add_place(out,
                     (pki_gpu_memory_sum){.allocations = p->all.allocations,
                                          .bytes = p->all.bytes,
                                          .frees = p->all.frees,
                                          .freed = p->all.freed,
                                          .live = p->all.live,
                                          .held = p->held,
                                          .pool_reserved = p->reserved,
                                          .pool_used = p->used,
                                          .peak = p->part.peak,
                                          .peak_ns = p->part.peak_ns,
                                          .most_held = p->part.most_held,
                                          .most_reserved = p->part.most_reserved,
                                          .used_then = p->part.used_then,
                                          .peak_so_far = p->all.peak},
                     name);
}

bool pki_gpu_account_sums(const pki_gpu_account *a, pki_gpu_memory_sums *out)
{
    bool done = true;
    out->operations = a->operations;
    out->lost = a->lost;
    out->places = calloc(PKI_GPU_PLACES, sizeof *out->places);
    for (size_t i = 0; out->places && i < PKI_GPU_PLACES; i++)
        if (a->places[i].all.allocations || a->places[i].most_reserved)
            done = copy_place(a, i, out) && done;
    return out->places && done;
}

void pki_gpu_account_cut(pki_gpu_account *a)
{
    for (size_t i = 0; i < PKI_GPU_PLACES; i++) {
        pki_gpu_place *p = &a->places[i];
        p->part.peak = p->all.live;
        p->part.most_held = p->held;
        p->part.most_reserved = p->reserved;
        p->part.used_then = p->used;
    }
}

/* ---- parts, and their sum ---- */

static pki_gpu_memory_sum *find(const pki_gpu_memory_sums *in, const char *place)
{
    for (size_t i = 0; i < in->place_count; i++)
        if (strcmp(in->places[i].place, place) == 0)
            return &in->places[i];
    return NULL;
}

bool pki_gpu_sums_more(const pki_gpu_memory_sums *now, const pki_gpu_memory_sums *before,
                       pki_gpu_memory_sums *out)
{
    bool done = true;
    *out = (pki_gpu_memory_sums){.asked = now->asked,
                                 .why_not = strdup(now->why_not),
                                 .operations = now->operations - before->operations,
                                 .dropped = now->dropped - before->dropped,
                                 .lost = now->lost - before->lost,
                                 .places = calloc(now->place_count + 1, sizeof *out->places)};
    for (size_t i = 0; out->places && i < now->place_count; i++) {
        pki_gpu_memory_sum row = now->places[i];
        const pki_gpu_memory_sum *was = find(before, row.place);
        if (was) {
            row.allocations -= was->allocations;
            row.bytes -= was->bytes;
            row.frees -= was->frees;
            row.freed -= was->freed;
        }
        done = add_place(out, row, row.place) && done;
    }
    return out->why_not && out->places && done;
}

static void add_to(pki_gpu_memory_sum *into, const pki_gpu_memory_sum *more)
{
    pki_gpu_memory_sum sum = *more;
    sum.place = into->place;
    sum.allocations += into->allocations;
    sum.bytes += into->bytes;
    sum.frees += into->frees;
    sum.freed += into->freed;
    if (into->peak > sum.peak) {
        sum.peak = into->peak;
        sum.peak_ns = into->peak_ns;
    }
    if (into->most_reserved > sum.most_reserved)
        sum.used_then = into->used_then;
    else if (into->most_reserved == sum.most_reserved)
        sum.used_then = PKI_MAX(sum.used_then, into->used_then);
    sum.most_reserved = PKI_MAX(sum.most_reserved, into->most_reserved);
    sum.most_held = PKI_MAX(sum.most_held, into->most_held);
    *into = sum;
}

/* Of a damaged file there may be any number. */
static bool append(pki_gpu_memory_sums *into, const pki_gpu_memory_sum *more)
{
    if (into->place_count == PKI_GPU_PLACES)
        return true;
    pki_gpu_memory_sum *places = realloc(into->places, (into->place_count + 1) * sizeof *places);
    if (!places)
        return false;
    into->places = places;
    return add_place(into, *more, more->place);
}

bool pki_gpu_sums_add(pki_gpu_memory_sums *into, const pki_gpu_memory_sums *more)
{
    bool done = true;
    if (!more->asked)
        return true;
    char *why = strdup(more->why_not ? more->why_not : "");
    free(into->why_not);
    into->why_not = why;
    into->asked = 1;
    into->operations += more->operations;
    into->dropped += more->dropped;
    into->lost += more->lost;
    for (size_t i = 0; i < more->place_count && done; i++) {
        pki_gpu_memory_sum *row = find(into, more->places[i].place);
        if (row)
            add_to(row, &more->places[i]);
        else
            done = append(into, &more->places[i]);
    }
    return why && done;
}

/* ---- as a report says it ---- */

static pki_gpu_memory_place summary_row(const pki_gpu_memory_sum *s)
{
    return (pki_gpu_memory_place){
        .place = strdup(s->place),
        .allocations = s->allocations,
        .bytes = s->bytes,
        .frees = s->frees,
        .freed = s->freed,
        .live = s->live,
        .peak = s->peak,
        .peak_ns = s->peak_ns,
        .held = s->held,
        .most_held = s->most_held,
        .pool_reserved = s->pool_reserved,
        .pool_used = s->pool_used,
        .most_reserved = s->most_reserved,
        .used_then = s->used_then,
        .unused = s->most_reserved ? 1 - (double)s->used_then / (double)s->most_reserved : 0};
}

bool pki_gpu_sums_summarise(const pki_gpu_memory_sums *sums, pki_gpu_memory_summary *out)
{
    bool done = true;
    if (!sums->asked)
        return true;
    *out = (pki_gpu_memory_summary){.asked = 1,
                                    .why_not = strdup(sums->why_not ? sums->why_not : ""),
                                    .operations = sums->operations,
                                    .dropped = sums->dropped,
                                    .lost = sums->lost,
                                    .places = calloc(sums->place_count + 1, sizeof *out->places)};
    for (size_t i = 0; out->places && i < sums->place_count; i++) {
        out->places[out->place_count] = summary_row(&sums->places[i]);
        done = out->places[out->place_count++].place && done;
    }
    return out->why_not && out->places && done;
}

void pki_gpu_sums_finish(pki_gpu_memory_sums *sums)
{
    for (size_t i = 0; i < sums->place_count; i++)
        free(sums->places[i].place);
    free(sums->places);
    free(sums->why_not);
    *sums = (pki_gpu_memory_sums){0};
}
