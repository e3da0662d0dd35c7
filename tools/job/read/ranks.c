/* tools/job/read/ranks.c - the ranks of a job, one of each, in order. */
#include "job/figures/counted.h"
#include "job/figures/life.h"
#include "job/figures/devices.h"
#include "job/figures/spent.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "memory.h"

/* ---- which of two is the rank ---- */

static bool is_one_run(const job_rank *a, const job_rank *b)
{
    return a->run.pid == b->run.pid && a->run.start_unix == b->run.start_unix &&
           strcmp(a->run.host, b->run.host) == 0;
}

static int by_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Later ones are preferred: whole before cut off, a report before what was made from events (it
 * knows of calls without a record), then the longer, then the one with more in it. */
static int preference(const job_rank *a, const job_rank *b)
{
    bool report_a = strcmp(a->run.source, "session") == 0;
    bool report_b = strcmp(b->run.source, "session") == 0;
    int order = by_number(a->run.start_unix, b->run.start_unix);
    order = order ? order : by_number(a->run.complete, b->run.complete);
    order = order ? order : by_number(report_a, report_b);
    order = order ? order : by_number(a->run.wall, b->run.wall);
    order = order ? order : by_number(a->self_count, b->self_count);
    order = order ? order : strcmp(b->path, a->path);
    return order ? order : by_number(b->part, a->part);
}

static int by_rank(const void *x, const void *y)
{
    const job_rank *a = x, *b = y;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static void finish_rank(job_rank *r)
{
    pki_summary parts = {.run = r->run, .stages = r->stages, .comm = r->comm};
    pki_summary_finish(&parts);
    free(r->selves);
    free(r->devices);
    job_spent_finish(&r->spent);
    job_counted_forget(r);
    free(r->path);
}

/* ---- reading ---- */

struct job_reading {
    job *into;
    size_t room;
    table processes; /* by rank, or by host, process and start: its place among the ranks */
    job_regions *regions;
    bool again; /* what has been added up has one in it that is left out */
};

typedef job_reading reading;

static uint32_t index_of(reading *all, const job_rank *r)
{
    char key[160];
    if (r->rank != JOB_NO_RANK)
        snprintf(key, sizeof key, "%d", r->rank);
    else
        snprintf(key, sizeof key, "%.64s %u %llu", r->run.host, r->run.pid,
                 (unsigned long long)r->run.start_unix);
    return table_add(&all->processes, key);
}

/* A report may have no member `run`. */
static void fill_in(pki_run *run)
{
    char **const texts[] = {&run->program, &run->host, &run->source};
    for (size_t i = 0; i < PKI_COUNT_OF(texts); i++)
        if (!*texts[i])
            *texts[i] = memory_copy("");
}

static job_rank rank_of(const char *path, size_t part, pki_summary *s)
{
    fill_in(&s->run);
    job_rank r = {.rank = s->run.world_size ? s->run.rank : JOB_NO_RANK,
                  .path = memory_copy(path),
                  .part = part,
                  .run = s->run,
                  .stages = s->stages,
                  .processor = s->steps.processor,
                  .comm = s->comm,
                  .self_count = s->region_count};
    job_devices_copy(&r, s);
    r.spent = job_spent_of(s);
    job_counted_move(&r, s);
    s->run = (pki_run){0};
    s->stages = (pki_stage_summary){0};
    s->comm = (pki_comm_summary){0};
    return r;
}

/* Another file of the same run is nothing to speak of. */
static void drop_file(job *j, const job_rank *taken, job_rank *r)
{
    char what[PATH_MAX + 80];
    snprintf(what, sizeof what, "is of another run of rank %d than %s: left out", r->rank,
             taken->path);
    if (!is_one_run(taken, r))
        job_note(&j->notes, r->path, what);
    finish_rank(r);
}

static void add_run(reading *all, const char *path, size_t part, pki_summary *s)
{
    job *j = all->into;
    job_rank next = rank_of(path, part, s);
    uint32_t place = index_of(all, &next);
    if (place == j->rank_count) {
        memory_fit(&j->ranks, &all->room, j->rank_count + 1, sizeof *j->ranks);
        job_regions_add(all->regions, &next, s);
        j->ranks[j->rank_count++] = next;
    } else if (preference(&next, &j->ranks[place]) > 0) {
        drop_file(j, &next, &j->ranks[place]);
        j->ranks[place] = next;
        all->again = true;
    } else {
        drop_file(j, &j->ranks[place], &next);
    }
    pki_summary_finish(s);
}

static bool add_life(job *j, const char *path)
{
    job_life life;
    if (!job_life_read(path, &life))
        return false;
    j->lives = memory_resized(j->lives, (j->life_count + 1) * sizeof *j->lives);
    j->lives[j->life_count++] = life;
    return true;
}

typedef struct file {
    reading *of;
    const char *path;
} file;

static void take_run(void *user, size_t part, pki_summary *s)
{
    const file *f = user;
    add_run(f->of, f->path, part, s);
}

static void read_files(reading *all, const table *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        complaint why = {""};
        file f = {all, files->texts[i]};
        if (!job_load(f.path, take_run, &f, &why) && !add_life(all->into, f.path))
            job_note(&all->into->notes, f.path, why.text);
    }
    all->into->file_count = files->count;
}

/* ---- ranks that nobody has numbered ---- */

static int by_process(const void *x, const void *y)
{
    const job_rank *a = x, *b = y;
    int order = (a->rank != JOB_NO_RANK) - (b->rank != JOB_NO_RANK);
    order = order ? order : strcmp(a->run.host, b->run.host);
    order = order ? order : by_number(a->run.start_unix, b->run.start_unix);
    order = order ? order : by_number(a->run.pid, b->run.pid);
    return order ? order : -preference(a, b);
}

/* Processes of a job that no launcher has told their ranks: numbered by host, start and pid. Among
 * ranks with numbers they are no ranks. */
static void number_ranks(reading *all)
{
    job *j = all->into;
    if (j->rank_count)
        qsort(j->ranks, j->rank_count, sizeof *j->ranks, by_process);
    bool numbered = j->rank_count && j->ranks[j->rank_count - 1].rank != JOB_NO_RANK;
    size_t kept = 0;
    for (size_t i = 0; i < j->rank_count; i++) {
        job_rank *r = &j->ranks[i];
        if (r->rank == JOB_NO_RANK && numbered) {
            job_note(&j->notes, r->path, "is of a process without a rank: left out");
            finish_rank(r);
            all->again = true;
            continue;
        }
        r->rank = numbered ? r->rank : (int32_t)kept;
        j->ranks[kept++] = *r;
    }
    j->rank_count = kept;
    if (kept)
        qsort(j->ranks, kept, sizeof *j->ranks, by_rank);
}

/* The ranks of one file, in its order. */
typedef struct again {
    job_regions *regions;
    job_rank **ranks;
    size_t count;
} again;

static int by_file(const void *x, const void *y)
{
    const job_rank *a = *(job_rank *const *)x, *b = *(job_rank *const *)y;
    int order = strcmp(a->path, b->path);
    return order ? order : (a->part > b->part) - (a->part < b->part);
}

static void take_again(void *user, size_t part, pki_summary *s)
{
    again *a = user;
    if (a->count && a->ranks[0]->part == part) {
        job_regions_add(a->regions, a->ranks[0], s);
        a->ranks++;
        a->count--;
    }
    pki_summary_finish(s);
}

/* One of a run that had been read before has taken its place: what is added up is begun anew. */
static void add_again(reading *all)
{
    const job *j = all->into;
    job_rank **order = memory_zeroed(j->rank_count, sizeof *order);
    job_regions_end(all->regions, NULL);
    all->regions = job_regions_begin();
    for (size_t i = 0; i < j->rank_count; i++)
        order[i] = &j->ranks[i];
    if (j->rank_count)
        qsort(order, j->rank_count, sizeof *order, by_file);
    for (size_t i = 0, n; i < j->rank_count; i += n) {
        complaint ignored = {""};
        for (n = 1; i + n < j->rank_count && strcmp(order[i + n]->path, order[i]->path) == 0;)
            n++;
        job_load(order[i]->path, take_again, &(again){all->regions, order + i, n}, &ignored);
    }
    free(order);
}

static void number_hosts(job *j)
{
    for (size_t i = 0; i < j->rank_count; i++) {
        job_rank *r = &j->ranks[i];
        r->host = table_add(&j->hosts, r->run.host);
        if (r->run.world_size > j->world)
            j->world = r->run.world_size;
        if (r->rank >= j->world && r->rank < INT32_MAX)
            j->world = r->rank + 1;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What has been read becomes ranks in order. */
static bool arrange(reading *all, const job_steps *steps, complaint *why)
{
    job *j = all->into;
    number_ranks(all);
    if (all->again)
        add_again(all);
    table_finish(&all->processes);
    number_hosts(j);
    job_regions_end(all->regions, j);
    if (j->notes.count)
        qsort(j->notes.texts, j->notes.count, sizeof *j->notes.texts, by_text);
    if (!j->rank_count)
        return complaint_set(why, "%s",
                             j->notes.count ? j->notes.texts[0]
                                            : "there is no file of a run in what was named");
    return job_make_loops(j, steps, why);
}

bool job_read(job *j, char **paths, size_t count, const job_steps *steps, complaint *why)
{
    table files = {0};
    reading all = {.into = j, .regions = job_regions_begin()};
    *j = (job){0};
    job_files(paths, count, &files, &j->notes);
    read_files(&all, &files);
    table_finish(&files);
    return arrange(&all, steps, why);
}

job_reading *job_reading_begin(job *j)
{
    reading *all = memory_zeroed(1, sizeof *all);
    *j = (job){0};
    *all = (reading){.into = j, .regions = job_regions_begin()};
    return all;
}

void job_reading_add(job_reading *all, pki_summary *rank)
{
    add_run(all, "", 0, rank);
}

bool job_reading_end(job_reading *all, const job_steps *steps, complaint *why)
{
    bool any = arrange(all, steps, why);
    free(all);
    return any;
}

bool job_of(job *j, pki_summary *ranks, size_t count, const job_steps *steps, complaint *why)
{
    job_reading *all = job_reading_begin(j);
    for (size_t r = 0; r < count; r++)
        job_reading_add(all, &ranks[r]);
    return job_reading_end(all, steps, why);
}

void job_finish(job *j)
{
    for (size_t i = 0; i < j->rank_count; i++)
        finish_rank(&j->ranks[i]);
    for (size_t i = 0; i < j->region_count; i++)
        free(j->regions[i].name);
    for (size_t i = 0; i < j->loop_count; i++)
        job_loop_finish(&j->loops[i], j->stage_count);
    for (size_t i = 0; i < j->stage_count; i++)
        free(j->stages[i].name);
    for (size_t i = 0; i < j->life_count; i++)
        free(j->lives[i].path);
    free(j->lives);
    free(j->ranks);
    free(j->regions);
    free(j->loops);
    free(j->stages);
    table_finish(&j->hosts);
    table_finish(&j->notes);
    *j = (job){0};
}
