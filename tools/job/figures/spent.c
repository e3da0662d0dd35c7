#include "job/figures/spent.h"

#include <stdlib.h>
#include <string.h>

#include "job/forms/json.h"
#include "job/forms/text.h"
#include "measure/figure.h"
#include "memory.h"

typedef struct job_joules {
    char name[48];
    double joules;
} job_joules;

static const char *const keys[JOB_COSTS] = {
    "mfu",    "hfu",      "read",          "written",     "device_read", "device_written",
    "joules", "resident", "device_memory", "device_taken"};

/* ---- a rank ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), n = strlen(end);
    return length >= n && strcmp(text + length - n, end) == 0;
}

static bool is_gpu(const char *counter)
{
    return strncmp(counter, "gpu", 3) == 0;
}

/* Of which nothing else is a part, or that is part of nothing else. */
static bool counts(const char *counter)
{
    return strcmp(counter, "psys") != 0 && (!strchr(counter, ' ') || ends_with(counter, " dram"));
}

static void fill_energy(const pki_energy_summary *e, job_spent *out)
{
    out->counters = memory_zeroed(e->row_count, sizeof *out->counters);
    for (size_t i = 0; i < e->row_count; i++) {
        const pki_energy_row *r = &e->rows[i];
        if (strcmp(r->step_kind, PKI_ENERGY_RUN) != 0 || r->refused || !counts(r->counter))
            continue;
        out->of[JOB_JOULES] = (out->of[JOB_JOULES] < 0 ? 0 : out->of[JOB_JOULES]) + r->joules;
        if (is_gpu(r->counter)) {
            out->gpu_joules += r->joules;
            continue;
        }
        job_joules *to = &out->counters[out->counter_count++];
        snprintf(to->name, sizeof to->name, "%s", r->counter);
        to->joules = r->joules;
    }
}

static void fill_files(const pki_io_summary *io, job_spent *out)
{
    if (!io->asked || (io->why_not && *io->why_not))
        return;
    out->of[JOB_READ] = (double)io->read_chars;
    out->of[JOB_WRITTEN] = (double)io->write_chars;
    out->of[JOB_DEVICE_READ] = (double)io->read_device;
    out->of[JOB_DEVICE_WRITTEN] = (double)io->write_device;
}

static void fill_operations(const pki_utilisation *u, job_spent *out)
{
    double possible = u->peak * (double)u->time / 1e9;
    if (!u->steps || !(possible > 0))
        return;
    out->model = u->model;
    out->hardware = u->hardware;
    out->possible = possible;
    out->of[JOB_MFU] = u->model / possible;
    out->of[JOB_HFU] = u->hardware / possible;
}

/* Of all its devices; what is pinned of the host is in the process's own. */
static void fill_devices(const pki_gpu_memory_summary *m, job_spent *out)
{
    if (!m->asked || (m->why_not && *m->why_not))
        return;
    out->of[JOB_ON_DEVICES] = out->of[JOB_TAKEN] = 0;
    for (size_t i = 0; i < m->place_count; i++) {
        if (!m->places[i].place || !is_gpu(m->places[i].place))
            continue;
        out->of[JOB_ON_DEVICES] += (double)m->places[i].peak;
        out->of[JOB_TAKEN] += (double)m->places[i].most_held;
    }
}

job_spent job_spent_of(const pki_summary *s)
{
    job_spent out = {.counter_count = 0};
    for (int i = 0; i < JOB_COSTS; i++)
        out.of[i] = -1;
    fill_operations(&s->steps.utilisation, &out);
    fill_files(&s->io, &out);
    fill_energy(&s->energy, &out);
    if (s->memory.looks)
        out.of[JOB_RESIDENT] = (double)s->memory.most_resident;
    fill_devices(&s->gpu_memory, &out);
    return out;
}

void job_spent_finish(job_spent *spent)
{
    free(spent->counters);
    *spent = (job_spent){.counter_count = 0};
}

/* ---- the job ---- */

typedef struct of_hosts {
    table counters; /* "host number, name" */
    size_t room;
    double *most;
} of_hosts;

static void see(of_hosts *all, uint32_t host, const job_joules *counter)
{
    char key[80];
    snprintf(key, sizeof key, "%u %s", host, counter->name);
    uint32_t at = table_add(&all->counters, key);
    memory_fit(&all->most, &all->room, at + (size_t)1, sizeof *all->most);
    if (counter->joules > all->most[at])
        all->most[at] = counter->joules;
}

/* GPUs of all ranks, and of each host what one of its ranks has seen of each counter. */
static double joules_of(const job *j)
{
    of_hosts hosts = {.room = 0};
    double sum = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        const job_spent *s = &j->ranks[r].spent;
        sum += s->gpu_joules;
        for (size_t i = 0; i < s->counter_count; i++)
            see(&hosts, j->ranks[r].host, &s->counters[i]);
    }
    for (uint32_t i = 0; i < hosts.counters.count; i++)
        sum += hosts.most[i];
    table_finish(&hosts.counters);
    free(hosts.most);
    return sum;
}

static double sum_of(const job *j, int cost)
{
    double sum = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        if (j->ranks[r].spent.of[cost] > 0)
            sum += j->ranks[r].spent.of[cost];
    return sum;
}

static double utilisation_of(const job *j, bool model)
{
    double done = 0, possible = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        const job_spent *s = &j->ranks[r].spent;
        done += model ? s->model : s->hardware;
        possible += s->possible;
    }
    return possible > 0 ? done / possible : 0;
}

job_costs job_costs_of(const job *j)
{
    job_costs c;
    double *values = memory_zeroed(j->rank_count, sizeof *values);
    for (int i = 0; i < JOB_COSTS; i++) {
        for (size_t r = 0; r < j->rank_count; r++)
            values[r] = j->ranks[r].spent.of[i];
        c.by[i] = job_spread_of(j, values);
        c.sum[i] = !c.by[i].have                  ? -1
                   : i == JOB_MFU || i == JOB_HFU ? utilisation_of(j, i == JOB_MFU)
                   : i == JOB_JOULES              ? joules_of(j)
                                                  : sum_of(j, i);
    }
    free(values);
    return c;
}

/* ---- as text ---- */

static const char *shown(char *to, size_t size, int cost, double value)
{
    if (cost == JOB_MFU || cost == JOB_HFU)
        snprintf(to, size, "%s", pki_figure_percent(value).text);
    else
        snprintf(to, size, "%s", pki_figure_scaled(value, cost == JOB_JOULES ? "J" : "B").text);
    return to;
}

static void put_row(const char *name, const job_costs *c, int cost, FILE *to)
{
    char text[64];
    const job_spread *s = &c->by[cost];
    job_text_left(to, name, 24);
    snprintf(text, sizeof text, "%zu", s->have);
    pki_put_cell(to, text, 6);
    pki_put_cell(to, shown(text, sizeof text, cost, c->sum[cost]), 9);
    pki_put_cell(to, shown(text, sizeof text, cost, s->min), 9);
    pki_put_cell(to, shown(text, sizeof text, cost, s->mean), 9);
    pki_put_cell(to, shown(text, sizeof text, cost, s->max), 9);
    pki_put_cell(to, job_text_rank(text, s->max_rank), 4);
    pki_put_cell(to, pki_figure_percent(s->imbalance).text, 10);
    fputc('\n', to);
}

void job_costs_text(const job *j, FILE *to)
{
    static const char *const names[JOB_COSTS] = {"MFU",
                                                 "HFU",
                                                 "read by calls",
                                                 "written by calls",
                                                 "read of devices",
                                                 "written for devices",
                                                 "energy",
                                                 "memory at most",
                                                 "device memory at most",
                                                 "... taken, with pools"};
    job_costs c = job_costs_of(j);
    bool any = false;
    for (int i = 0; i < JOB_COSTS; i++)
        any = any || c.by[i].have;
    if (!any)
        return;
    fputs("\nWhat it cost beside time (the job's; least, mean and most of a rank)\n", to);
    job_text_left(to, "", 24);
    fputs("   ranks       job       min      mean       max  rank  imbalance\n", to);
    for (int i = 0; i < JOB_COSTS; i++)
        if (c.by[i].have)
            put_row(names[i], &c, i, to);
}

/* ---- for machines ---- */

void job_costs_json(const job *j, pki_json *to)
{
    job_costs c = job_costs_of(j);
    bool any = false;
    for (int i = 0; i < JOB_COSTS; i++)
        any = any || c.by[i].have;
    if (!any)
        return;
    pki_json_row(to);
    pki_json_open(to, "costs", '{');
    for (int i = 0; i < JOB_COSTS; i++) {
        if (!c.by[i].have)
            continue;
        pki_json_open(to, keys[i], '{');
        pki_json_real(to, "job", c.sum[i]);
        job_json_spread(to, "by_rank", &c.by[i]);
        pki_json_close(to, '}');
    }
    pki_json_close(to, '}');
}

void job_costs_rank_json(const job_rank *rank, pki_json *to)
{
    for (int i = 0; i < JOB_COSTS; i++)
        if (rank->spent.of[i] >= 0)
            pki_json_real(to, keys[i], rank->spent.of[i]);
}
