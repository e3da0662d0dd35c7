/* tools/job/verdicts/late_groups.c - verdicts for people: of many that are late a few sentences, by
 * stage.
 */
#include "job/verdicts/findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/figure.h"
#include "memory.h"

#define SHARE(x) (pki_figure_percent(x).text)
#define TIME(ns) (pki_figure_time(ns).text)

#define STAGES_SAID 4
#define RANGES_SAID 120 /* characters */

/* Those that are late mostly in one stage, or all hosts that are. */
typedef struct group {
    bool hosts;
    size_t stage; /* stage_count: it is not known, or there are several */
    size_t stages, count, host_count;
    const job_late **all; /* the latest first */
} group;

static void add(group *to, const job_late *late)
{
    to->all = memory_resized(to->all, (to->count + 1) * sizeof(const job_late *));
    to->all[to->count++] = late;
}

/* Most members first, the latest first among equal ones. */
static int larger_first(const void *x, const void *y)
{
    const group *a = x, *b = y;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    if (!a->count || a->all[0]->by == b->all[0]->by)
        return (a->stage > b->stage) - (a->stage < b->stage);
    return a->all[0]->by < b->all[0]->by ? 1 : -1;
}

static void count_hosts(const job *j, group *g)
{
    bool *seen = memory_zeroed(j->hosts.count, sizeof *seen);
    for (size_t i = 0; i < g->count; i++) {
        bool *of = &seen[g->all[i]->host_at];
        g->host_count += !*of;
        *of = true;
    }
    free(seen);
}

static int by_number(const void *x, const void *y)
{
    const int32_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* "3, 7-9 ... (--json has all)"; to be freed. */
static char *members_of(const job *j, const group *g)
{
    int32_t *numbers = memory_zeroed(g->count, sizeof *numbers);
    for (size_t i = 0; i < g->count; i++)
        numbers[i] = j->ranks[g->all[i]->rank].rank;
    qsort(numbers, g->count, sizeof *numbers, by_number);
    char *text = job_ranges(numbers, g->count);
    free(numbers);
    if (strlen(text) <= RANGES_SAID)
        return text;
    size_t end = RANGES_SAID;
    while (end && text[end] != ',')
        end--;
    text[end] = '\0';
    char *cut = memory_zeroed(end + 40, 1);
    snprintf(cut, end + 40, "%s ... (--json has all)", text);
    free(text);
    return cut;
}

static void describe_stage(const job *j, const group *g, char *text, size_t size)
{
    if (g->stages > 1)
        snprintf(text, size, "most of it in %zu other stages", g->stages);
    else if (g->stage < j->stage_count)
        snprintf(text, size, "most of it in %.100s", j->stages[g->stage].name);
    else
        snprintf(text, size, "where is not known");
}

static void describe_ranks(const job *j, const group *g, char *text, size_t size)
{
    const char *host = j->hosts.texts[g->all[0]->host_at];
    if (g->hosts)
        snprintf(text, size, "%zu hosts, all ranks of each,", g->count);
    else if (g->host_count == 1)
        snprintf(text, size, "%zu ranks of host %.64s", g->count, host);
    else
        snprintf(text, size, "%zu ranks of %zu hosts", g->count, g->host_count);
}

static void describe_one(const job_findings *f, const job_late *late, job_verdict *to)
{
    char text[1000];
    job_describe_late(f->of, late, text, sizeof text);
    *to = (job_verdict){late->host ? "late-host" : "late-rank", PKI_WARN, memory_copy(text), late,
                        NULL};
}

static void describe_group(const job_findings *f, const group *g, job_verdict *to)
{
    const job *j = f->of;
    if (g->count == 1) {
        describe_one(f, g->all[0], to);
        return;
    }
    const job_late *most = g->all[0], *least = g->all[g->count - 1];
    char who[120], where[140], worst[120], text[1000];
    describe_ranks(j, g, who, sizeof who);
    describe_stage(j, g, where, sizeof where);
    snprintf(worst, sizeof worst, g->hosts ? "host %.64s" : "host %.64s, rank %d",
             j->hosts.texts[most->host_at], g->hosts ? 0 : j->ranks[most->rank].rank);
    char *members = g->hosts ? memory_copy("") : members_of(j, g);
    snprintf(text, sizeof text,
             "%s take %s to %s longer than the others for the same work, %s. Most of all %s: %s per"
             " step.%s%s%s",
             who, SHARE(least->by), SHARE(most->by), where, worst, TIME(most->excess),
             *members ? " Ranks " : "", members, *members ? "." : "");
    free(members);
    *to = (job_verdict){g->hosts ? "late-hosts" : "late-ranks", PKI_WARN, memory_copy(text), NULL,
                        NULL};
}

/* Beyond the first ones all are one: a few late ranks of each of many stages. */
static size_t join_small(const job *j, group *groups, size_t count)
{
    if (count <= STAGES_SAID)
        return count;
    group *rest = &groups[STAGES_SAID - 1];
    rest->stages = count - (STAGES_SAID - 1);
    rest->stage = j->stage_count;
    for (size_t i = STAGES_SAID; i < count; i++)
        for (size_t k = 0; k < groups[i].count; k++)
            add(rest, groups[i].all[k]);
    return STAGES_SAID;
}

static int latest_first(const void *x, const void *y)
{
    const job_late *const *a = x, *const *b = y;
    if ((*a)->by != (*b)->by)
        return (*a)->by < (*b)->by ? 1 : -1;
    return ((*a)->rank > (*b)->rank) - ((*a)->rank < (*b)->rank);
}

/* groups: by stage, and behind these the hosts. */
static void fill(const job_findings *f, group *groups)
{
    size_t stages = f->of->stage_count;
    for (size_t i = 0; i < f->lateness.count; i++) {
        const job_late *late = &f->lateness.late[i];
        size_t stage = late->stage_share > 0 ? late->stage : stages;
        add(&groups[late->host ? stages + 1 : stage], late);
    }
}

size_t job_add_late_groups(const job_findings *f, job_verdict *to)
{
    size_t stages = f->of->stage_count, count = 0, said = 0;
    group *groups = memory_zeroed(stages + 2, sizeof *groups);
    for (size_t k = 0; k <= stages; k++)
        groups[k] = (group){.stage = k, .stages = 1};
    groups[stages + 1] = (group){.hosts = true, .stage = stages, .stages = 1};
    fill(f, groups);
    if (groups[stages + 1].count)
        describe_group(f, &groups[stages + 1], &to[said++]);
    qsort(groups, stages + 1, sizeof *groups, larger_first);
    while (count <= stages && groups[count].count)
        count++;
    size_t shown = join_small(f->of, groups, count);
    for (size_t i = 0; i < shown; i++) {
        qsort(groups[i].all, groups[i].count, sizeof(const job_late *), latest_first);
        count_hosts(f->of, &groups[i]);
        describe_group(f, &groups[i], &to[said++]);
    }
    for (size_t i = 0; i < stages + 2; i++)
        free(groups[i].all);
    free(groups);
    return said;
}
