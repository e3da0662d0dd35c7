#include "job/forms/page.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "job/forms/json.h"
#include "memory.h"

/* ---- the latest ranks ---- */

typedef struct ordered {
    double by;
    size_t at;
} ordered;

static int most_first(const void *x, const void *y)
{
    const ordered *a = x, *b = y;
    if (a->by != b->by)
        return a->by < b->by ? 1 : -1;
    return (a->at > b->at) - (a->at < b->at);
}

static int by_place(const void *x, const void *y)
{
    const size_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* The places of the `most` largest values, in order of their places if asked for. */
static size_t *largest(ordered *all, size_t count, size_t most, bool in_order)
{
    size_t *out = memory_zeroed(most, sizeof *out);
    qsort(all, count, sizeof *all, most_first);
    for (size_t i = 0; i < most; i++)
        out[i] = all[i].at;
    if (in_order)
        qsort(out, most, sizeof *out, by_place);
    return out;
}

static size_t *latest_ranks(const job_findings *f, size_t most)
{
    size_t count = f->of->rank_count;
    ordered *all = memory_zeroed(count, sizeof *all);
    for (size_t r = 0; r < count; r++)
        all[r] = (ordered){isnan(f->lateness.by[r]) ? -1 : f->lateness.by[r], r};
    size_t *out = largest(all, count, most, true);
    free(all);
    return out;
}

/* ---- where files are, seen from the page ---- */

static bool folder_of(const char *path, char *folder)
{
    char name[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 1;
    if (length >= sizeof name)
        return false;
    memcpy(name, slash ? path : ".", length);
    name[length] = '\0';
    return realpath(name, folder) != NULL;
}

static void end_with_slash(char *folder)
{
    size_t length = strlen(folder);
    if (length && folder[length - 1] != '/')
        memcpy(folder + length, "/", 2);
}

/* "", "../", "../../runs/": what stands before a relative path of a file. */
static char *base_of(const char *path)
{
    char page[PATH_MAX + 1], here[PATH_MAX + 1];
    if (strcmp(path, "-") == 0 || !getcwd(here, PATH_MAX) || !folder_of(path, page))
        return memory_copy("");
    end_with_slash(page);
    end_with_slash(here);
    size_t common = 0;
    for (size_t i = 0; page[i] && page[i] == here[i]; i++)
        common = page[i] == '/' ? i + 1 : common;
    char *out = memory_zeroed(3 * strlen(page) + strlen(here) + 1, 1), *to = out;
    for (const char *p = page + common; *p; p++)
        if (*p == '/') {
            memcpy(to, "../", 3);
            to += 3;
        }
    memcpy(to, here + common, strlen(here + common) + 1);
    return out;
}

job_page job_page_of(const job_findings *f, const char *path)
{
    job_page p = {.found = f, .base = base_of(path)};
    p.rank_count = PKI_MIN(f->of->rank_count, (size_t)JOB_PAGE_RANKS);
    p.ranks = latest_ranks(f, p.rank_count);
    return p;
}

void job_page_finish(job_page *p)
{
    free(p->base);
    free(p->ranks);
}

/* ---- what a rank did, for each that is listed ---- */

/* ns; null: it does not have that. */
static void put_ns(pki_json *to, double ns)
{
    if (ns < 0)
        pki_json_real(to, NULL, NAN);
    else
        pki_json_uint(to, NULL, (uint64_t)(ns + 0.5));
}

static size_t most_of(const job_page *p, size_t count)
{
    size_t most = JOB_PAGE_CELLS / PKI_MAX(p->rank_count, 1);
    return PKI_MIN(count, PKI_MIN(most, (size_t)JOB_PAGE_ROWS));
}

/* The stages with the most time, as places. */
static size_t *longest_stages(const job *j, const job_loop *loop, size_t most)
{
    ordered *all = memory_zeroed(j->stage_count, sizeof *all);
    for (size_t k = 0; k < j->stage_count; k++)
        all[k] = (ordered){job_spread_of_stage(j, loop, k).mean_all, k};
    size_t *out = largest(all, j->stage_count, most, true);
    free(all);
    return out;
}

static void put_stages(const job_page *p, pki_json *to)
{
    const job *j = p->found->of;
    const job_loop *loop = job_usual(j);
    size_t most = loop ? most_of(p, j->stage_count) : 0;
    size_t *stages = most ? longest_stages(j, loop, most) : NULL;
    pki_json_open(to, "stages", '[');
    for (size_t k = 0; k < most; k++)
        pki_json_uint(to, NULL, stages[k]);
    pki_json_close(to, ']');
    pki_json_open(to, "rank_stages", '[');
    for (size_t i = 0; i < p->rank_count; i++) {
        pki_json_open(to, NULL, '[');
        for (size_t k = 0; k < most; k++)
            put_ns(to, job_stage_of_rank(loop, stages[k], p->ranks[i]));
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
    free(stages);
}

/* Of the first regions of the list. */
static void put_regions(const job_page *p, pki_json *to)
{
    const job *j = p->found->of;
    size_t most = most_of(p, j->region_count);
    pki_json_open(to, "rank_regions", '[');
    for (size_t i = 0; i < p->rank_count; i++) {
        pki_json_open(to, NULL, '[');
        for (size_t k = 0; k < most; k++)
            put_ns(to, job_self_of_rank(&j->ranks[p->ranks[i]], &j->regions[k]));
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
}

/* How many there are of what may be listed in part. */
static void put_totals(const job_findings *f, pki_json *to)
{
    size_t late = 0;
    for (size_t i = 0; i < f->lateness.count; i++)
        late += !f->lateness.late[i].host;
    pki_json_open(to, "totals", '{');
    pki_json_bool(to, "judged", !f->lateness.why_not);
    pki_json_uint(to, "late", late);
    pki_json_uint(to, "stages", f->of->stage_count);
    pki_json_uint(to, "loops", f->of->loop_count);
    pki_json_uint(to, "regions", f->of->region_count);
    pki_json_uint(to, "communicators", f->links.comm_count);
    pki_json_uint(to, "operations", f->links.operation_count);
    pki_json_uint(to, "missing", f->missing_count);
    pki_json_uint(to, "cut_off", f->cut_count);
    pki_json_uint(to, "notes", f->of->notes.count);
    pki_json_close(to, '}');
}

int job_page_job(const void *page, FILE *file)
{
    const job_page *p = page;
    const job_json_most most = {JOB_PAGE_ROWS, JOB_PAGE_LOOPS, JOB_PAGE_RANKS, p->ranks,
                                p->rank_count};
    pki_json to = {.file = file};
    pki_json_open(&to, NULL, '{');
    pki_json_text(&to, "format", JOB_FORMAT);
    pki_json_uint(&to, "schema", JOB_SCHEMA);
    job_json_members(&to, p->found, &most);
    if (p->against)
        against_json(p->against, p->other, JOB_PAGE_ROWS, &to);
    pki_json_close(&to, '}');
    return 0;
}

int job_page_drawn(const void *page, FILE *file)
{
    const job_page *p = page;
    pki_json to = {.file = file};
    pki_json_open(&to, NULL, '{');
    pki_json_text(&to, "base", p->base);
    job_json_grouped_verdicts(&to, p->found);
    put_totals(p->found, &to);
    job_page_heat(p->found, "heat", &to);
    job_page_matrix(p->found, "matrix", &to);
    put_stages(p, &to);
    put_regions(p, &to);
    pki_json_close(&to, '}');
    return 0;
}
