#include "measure/costs/sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/files.h"

/* ---- what counters of energy say of a run, of its steps and of their kinds ---- */

void pki_energy_begin(pki_energy_account *a)
{
    memset(a, 0, sizeof *a);
    a->kind_count = 1;
    a->last_kind = -1;
}

int pki_energy_counter_of(pki_energy_account *a, const char *name, double range)
{
    for (size_t i = 0; i < a->count; i++)
        if (strncmp(a->counters[i].name, name, sizeof a->counters[i].name - 1) == 0)
            return (int)i;
    if (a->count == PKI_ENERGY_COUNTERS)
        return -1;
    pki_energy_counter *c = &a->counters[a->count];
    snprintf(c->name, sizeof c->name, "%s", name);
    c->range = range;
    return (int)a->count++;
}

/* J since the reading before; below 0: unknown. */
static double grown(pki_energy_counter *c, double joules)
{
    double more = joules - c->last;
    if (more >= 0)
        return more;
    if (c->range > 0 && c->last > c->range / 2 && joules <= c->range / 2)
        return more + c->range;
    c->resets++;
    return -1;
}

void pki_energy_read(pki_energy_account *a, int counter, double joules, uint64_t now)
{
    if (counter < 0 || (size_t)counter >= a->count)
        return;
    pki_energy_counter *c = &a->counters[counter];
    double more = c->begun ? grown(c, joules) : 0;
    if (!c->begun)
        c->since = now;
    c->fresh += PKI_MAX(more, 0);
    if (c->begun && more >= 0 && now > c->at) {
        double watts = more * 1e9 / (double)(now - c->at);
        c->joules += more;
        c->lowest = c->readings > 1 ? PKI_MIN(c->lowest, watts) : watts;
        c->highest = PKI_MAX(c->highest, watts);
    }
    c->begun = true;
    c->last = joules;
    c->at = now;
    c->readings++;
}

static size_t kind_of(pki_energy_account *a, const char *kind)
{
    size_t i = 1;
    if (!kind)
        return 0;
    while (i < a->kind_count && strncmp(a->kinds[i], kind, sizeof a->kinds[i] - 1) != 0)
        i++;
    if (i == a->kind_count && i < PKI_ENERGY_KINDS)
        snprintf(a->kinds[a->kind_count++], sizeof a->kinds[0], "%s", kind);
    return PKI_MIN(i, PKI_ENERGY_KINDS - 1u);
}

void pki_energy_step(pki_energy_account *a, const char *kind, uint64_t start, uint64_t end,
                     uint64_t items)
{
    size_t k = kind_of(a, kind);
    a->stretches[k] += a->last_kind != (int)k || start != a->last_end;
    a->last_kind = (int)k;
    a->last_end = end;
    if (k == 0) {
        *(a->held_in_step ? &a->held_steps : &a->free_steps) += 1;
        *(a->held_in_step ? &a->held_time : &a->free_time) += pki_saturating_sub(end, start);
    }
    a->held_in_step = a->held != 0;
    a->steps[k]++;
    a->items[k] += items;
    a->time[k] += pki_saturating_sub(end, start);
    a->pending[k] += pki_saturating_sub(end, start);
}

void pki_energy_held(pki_energy_account *a, unsigned gpu, const char *why)
{
    uint32_t bit = 1u << gpu % 32;
    a->held = why ? a->held | bit : a->held & ~bit;
    a->held_in_step |= why != NULL;
    if (why && !*a->held_by)
        snprintf(a->held_by, sizeof a->held_by, "%s", why);
}

void pki_energy_round(pki_energy_account *a, uint64_t now)
{
    double window = (double)(now - a->round_at), all = 0;
    for (size_t k = 0; k < a->kind_count; k++)
        all += (double)a->pending[k];
    window = PKI_MAX(window, all); /* a step that ends has begun before */
    for (size_t i = 0; i < a->count; i++) {
        for (size_t k = 0; k < a->kind_count && window > 0 && a->round_at; k++)
            a->counters[i].kinds[k] += a->counters[i].fresh * (double)a->pending[k] / window;
        a->counters[i].fresh = 0;
    }
    memset(a->pending, 0, sizeof a->pending);
    a->round_at = now;
}

/* ---- the kernel's counts of a process's I/O, sample by sample ---- */

bool pki_io_parse(const char *text, pki_io_counts *c)
{
    return pki_small_file_number(text, "rchar", &c->read_chars) &&
           pki_small_file_number(text, "wchar", &c->write_chars) &&
           pki_small_file_number(text, "syscr", &c->read_calls) &&
           pki_small_file_number(text, "syscw", &c->write_calls) &&
           pki_small_file_number(text, "read_bytes", &c->read_device) &&
           pki_small_file_number(text, "write_bytes", &c->write_device);
}

pki_io_counts pki_io_more(const pki_io_counts *now, const pki_io_counts *before)
{
    return (pki_io_counts){pki_saturating_sub(now->read_chars, before->read_chars),
                           pki_saturating_sub(now->write_chars, before->write_chars),
                           pki_saturating_sub(now->read_calls, before->read_calls),
                           pki_saturating_sub(now->write_calls, before->write_calls),
                           pki_saturating_sub(now->read_device, before->read_device),
                           pki_saturating_sub(now->write_device, before->write_device)};
}

/* Two files are read one behind the other, and what reading the first took is in the second alone:
 * the difference may be a few bytes less than before, and counts only grow. */
static pki_io_counts most_of(const pki_io_counts *a, const pki_io_counts *b)
{
    return (pki_io_counts){
        PKI_MAX(a->read_chars, b->read_chars),   PKI_MAX(a->write_chars, b->write_chars),
        PKI_MAX(a->read_calls, b->read_calls),   PKI_MAX(a->write_calls, b->write_calls),
        PKI_MAX(a->read_device, b->read_device), PKI_MAX(a->write_device, b->write_device)};
}

void pki_io_add(pki_io_account *a, const pki_io_counts *counts, uint64_t now)
{
    if (!a->begun) {
        *a = (pki_io_account){true, now, now, now, *counts, *counts, *counts, 0, 0};
        return;
    }
    a->last = most_of(counts, &a->last);
    a->at = now;
    if (now - a->window_at < PKI_IO_WINDOW)
        return;
    double seconds = (double)(now - a->window_at) / 1e9;
    pki_io_counts more = pki_io_more(&a->last, &a->window);
    a->best_read = PKI_MAX(a->best_read, (double)more.read_device / seconds);
    a->best_write = PKI_MAX(a->best_write, (double)more.write_device / seconds);
    a->window = a->last;
    a->window_at = now;
}

void pki_io_fill(const pki_io_account *a, pki_io_summary *out)
{
    pki_io_counts all = pki_io_more(&a->last, &a->first);
    out->observed = a->at - a->since;
    out->read_chars = all.read_chars;
    out->write_chars = all.write_chars;
    out->read_calls = all.read_calls;
    out->write_calls = all.write_calls;
    out->read_device = all.read_device;
    out->write_device = all.write_device;
    out->best_read = a->best_read;
    out->best_write = a->best_write;
}

/* ---- what the process read and wrote in each step, reading by reading ---- */

void pki_io_course_finish(pki_io_course *c)
{
    for (int i = 0; i < PKI_IO_FIGURES; i++)
        pki_tally_finish(&c->each[i]);
    *c = (pki_io_course){0};
}

/* The first that had so much. */
static void see_most(pki_io_most *most, const pki_io_reading *r, double value)
{
    if (most->steps && value <= most->value)
        return;
    *most = (pki_io_most){value, r->last, r->steps};
}

void pki_io_course_add(pki_io_course *c, const pki_io_reading *r)
{
    if (!r->steps)
        return;
    c->readings++;
    c->steps += r->steps;
    c->alone += r->steps == 1;
    if (r->values[PKI_IO_DEVICE_READ] > 0 || r->values[PKI_IO_DEVICE_WRITTEN] > 0)
        c->device += r->steps;
    for (int i = 0; i < PKI_IO_FIGURES; i++) {
        double each = r->values[i] / (double)r->steps;
        (void)pki_tally_add(&c->each[i], each, r->steps); /* or it is not in it */
        see_most(&c->most[i], r, each);
    }
}

static pki_io_step_figure figure(const pki_io_course *c, int i)
{
    return (pki_io_step_figure){pki_tally_dist(&c->each[i]), c->most[i].step, c->most[i].steps};
}

pki_io_steps pki_io_course_summary(const pki_io_course *c)
{
    return (pki_io_steps){.steps = c->steps,
                          .readings = c->readings,
                          .alone = c->alone,
                          .device = c->device,
                          .read = figure(c, PKI_IO_READ),
                          .written = figure(c, PKI_IO_WRITTEN),
                          .device_read = figure(c, PKI_IO_DEVICE_READ),
                          .device_written = figure(c, PKI_IO_DEVICE_WRITTEN),
                          .operations = figure(c, PKI_IO_OPERATIONS)};
}

/* ---- sums ---- */

#define RUN PKI_ENERGY_RUN

/* ---- from the account ---- */

static bool add_named(pki_energy_sums *out, pki_energy_sum row, const char *counter, char *kind)
{
    row.counter = strdup(counter);
    row.step_kind = kind;
    out->rows[out->row_count++] = row;
    return row.counter && row.step_kind;
}

static bool add_row(pki_energy_sums *out, pki_energy_sum row, const char *counter, const char *kind)
{
    return add_named(out, row, counter, strdup(kind));
}

/* A program may call its steps as the run's row is called: no two rows have one name. */
static char *name_of_kind(const char *kind)
{
    size_t run = strncmp(kind, RUN, sizeof RUN - 1) == 0 ? sizeof RUN - 1 : 0;
    char *name = malloc(run + strlen(kind) + 1);
    if (name) {
        memcpy(name, RUN, run);
        strcpy(name + run, kind);
    }
    return name;
}

static uint64_t microjoules(double joules)
{
    return joules > 0 && joules < 1e12 ? (uint64_t)llround(joules * 1e6) : 0;
}

static bool read_counter(const pki_energy_account *a, const pki_energy_counter *c,
                         pki_energy_sums *out)
{
    pki_energy_sum run = {.microjoules = microjoules(c->joules),
                          .time = c->at - c->since,
                          .stretches = 1,
                          .watched = c->at - c->since,
                          .readings = c->readings ? c->readings - 1 : 0,
                          .resets = c->resets,
                          .lowest = c->lowest,
                          .highest = c->highest};
    bool done = true;
    for (size_t k = 0; k < a->kind_count; k++) {
        run.steps += a->steps[k];
        run.items += a->items[k];
    }
    done = add_row(out, run, c->name, RUN);
    for (size_t k = 0; k < a->kind_count; k++) {
        pki_energy_sum row = run;
        row.microjoules = microjoules(c->kinds[k]);
        row.time = a->time[k];
        row.steps = a->steps[k];
        row.items = a->items[k];
        row.stretches = a->stretches[k];
        if (a->steps[k])
            done = add_named(out, row, c->name, name_of_kind(a->kinds[k])) && done;
    }
    return done;
}

bool pki_energy_sum_up(const pki_energy_account *a, const char *why_not, pki_energy_sums *out)
{
    bool done = true;
    out->asked = 1;
    out->why_not = strdup(why_not);
    out->held_by = strdup(a->held_by);
    out->held_steps = a->held_steps;
    out->held_time = a->held_time;
    out->free_steps = a->free_steps;
    out->free_time = a->free_time;
    out->rows = calloc(a->count * (a->kind_count + 1) + 1, sizeof *out->rows);
    for (size_t i = 0; i < a->count && out->rows; i++)
        done = read_counter(a, &a->counters[i], out) && done;
    return out->rows && out->held_by && out->why_not && done;
}

/* ---- parts, and their sum ---- */

static pki_energy_sum *find(const pki_energy_sums *sums, const pki_energy_sum *as)
{
    for (size_t i = 0; i < sums->row_count; i++)
        if (strcmp(sums->rows[i].counter, as->counter) == 0 &&
            strcmp(sums->rows[i].step_kind, as->step_kind) == 0)
            return &sums->rows[i];
    return NULL;
}

static bool is_run(const pki_energy_sum *row)
{
    return strcmp(row->step_kind, RUN) == 0;
}

/* What has `before` in it is never below it. */
static void subtract(pki_energy_sum *row, const pki_energy_sum *before)
{
    row->microjoules -= before->microjoules;
    row->time -= before->time;
    row->steps -= before->steps;
    row->items -= before->items;
    row->stretches -= is_run(row) ? 0 : before->stretches;
    row->watched -= before->watched;
    row->readings -= before->readings;
    row->resets -= before->resets;
}

bool pki_energy_more(const pki_energy_sums *now, const pki_energy_sums *before,
                     pki_energy_sums *out)
{
    bool done = true;
    *out = (pki_energy_sums){.asked = now->asked,
                             .why_not = strdup(now->why_not),
                             .held_by = strdup(now->held_by),
                             .held_steps = now->held_steps - before->held_steps,
                             .held_time = now->held_time - before->held_time,
                             .free_steps = now->free_steps - before->free_steps,
                             .free_time = now->free_time - before->free_time,
                             .rows = calloc(now->row_count + 1, sizeof *out->rows)};
    for (size_t i = 0; i < now->row_count && out->rows; i++) {
        pki_energy_sum row = now->rows[i];
        const pki_energy_sum *was = find(before, &row);
        if (was)
            subtract(&row, was);
        done = add_row(out, row, row.counter, row.step_kind) && done;
    }
    return out->why_not && out->held_by && out->rows && done;
}

static void add_to(pki_energy_sum *row, const pki_energy_sum *more)
{
    row->microjoules += more->microjoules;
    row->time += more->time;
    row->steps += more->steps;
    row->items += more->items;
    row->stretches = is_run(row) ? 1 : row->stretches + more->stretches;
    row->watched += more->watched;
    row->readings += more->readings;
    row->resets += more->resets;
    row->lowest = more->lowest;
    row->highest = more->highest;
}

/* Where the account has it: behind the others of its counter, or, of usual steps, behind the run's.
 */
static size_t index_of(const pki_energy_sums *in, const pki_energy_sum *row)
{
    size_t at = in->row_count;
    for (size_t i = 0; i < in->row_count; i++)
        if (strcmp(in->rows[i].counter, row->counter) == 0) {
            at = i + 1;
            if (!*row->step_kind)
                break;
        }
    return at;
}

static bool insert(pki_energy_sums *into, const pki_energy_sum *row)
{
    size_t at = index_of(into, row), behind = into->row_count - at;
    if (into->row_count == PKI_ENERGY_COUNTERS * (PKI_ENERGY_KINDS + 1)) /* of a damaged file */
        return true;
    pki_energy_sum *rows = realloc(into->rows, (into->row_count + 1) * sizeof *rows);
    if (!rows)
        return false;
    into->rows = rows;
    memmove(&rows[at + 1], &rows[at], behind * sizeof *rows);
    into->row_count++;
    rows[at] = *row;
    rows[at].counter = strdup(row->counter);
    rows[at].step_kind = strdup(row->step_kind);
    return rows[at].counter && rows[at].step_kind;
}

static bool keep(char **text, const char *last)
{
    char *copy = strdup(last ? last : "");
    free(*text);
    *text = copy;
    return copy;
}

bool pki_energy_add(pki_energy_sums *into, const pki_energy_sums *more)
{
    bool done = true;
    if (!more->asked)
        return true;
    into->asked = 1;
    into->held_steps += more->held_steps;
    into->held_time += more->held_time;
    into->free_steps += more->free_steps;
    into->free_time += more->free_time;
    for (size_t i = 0; i < more->row_count && done; i++) {
        pki_energy_sum *row = find(into, &more->rows[i]);
        if (row)
            add_to(row, &more->rows[i]);
        else
            done = insert(into, &more->rows[i]);
    }
    return keep(&into->why_not, more->why_not) && keep(&into->held_by, more->held_by) && done;
}

/* ---- as a report says it ---- */

static bool fill_row(const pki_energy_sum *sum, pki_energy_row *row)
{
    *row = (pki_energy_row){.counter = strdup(sum->counter),
                            .step_kind = strdup(sum->step_kind),
                            .joules = (double)sum->microjoules / 1e6,
                            .time = sum->time,
                            .steps = sum->steps,
                            .items = sum->items,
                            .period = sum->readings ? sum->watched / sum->readings : 0,
                            .resets = sum->resets};
    /* a part may lie within a stretch that has begun before */
    uint64_t stretches = PKI_MAX(sum->stretches, (uint64_t)(sum->steps > 0));
    row->refused =
        !row->period || !stretches || row->time / stretches < PKI_ENERGY_PERIODS * row->period;
    if (row->refused) { /* nothing is guessed */
        row->joules = 0;
        return row->counter && row->step_kind;
    }
    row->watts = row->time ? row->joules * 1e9 / (double)row->time : 0;
    row->error = 2 * (double)row->period / 1e9 * (sum->highest - sum->lowest) * (double)stretches;
    row->per_step = row->steps ? row->joules / (double)row->steps : 0;
    row->per_item = row->items ? row->joules / (double)row->items : 0;
    return row->counter && row->step_kind;
}

bool pki_energy_fill(const pki_energy_sums *sums, pki_energy_summary *out)
{
    bool done = true;
    if (!sums->asked)
        return true;
    out->asked = 1;
    out->why_not = strdup(sums->why_not);
    out->held_by = strdup(sums->held_by);
    out->held_steps = sums->held_steps;
    out->held_time = sums->held_time;
    out->free_steps = sums->free_steps;
    out->free_time = sums->free_time;
    out->rows = calloc(sums->row_count + 1, sizeof *out->rows);
    for (size_t i = 0; i < sums->row_count && out->rows; i++)
        done = fill_row(&sums->rows[i], &out->rows[out->row_count++]) && done;
    return out->rows && out->held_by && out->why_not && done;
}

void pki_energy_sums_finish(pki_energy_sums *sums)
{
    for (size_t i = 0; i < sums->row_count; i++) {
        free(sums->rows[i].counter);
        free(sums->rows[i].step_kind);
    }
    free(sums->rows);
    free(sums->why_not);
    free(sums->held_by);
    *sums = (pki_energy_sums){0};
}

/* ---- I/O ---- */

pki_io_summary pki_io_sums_more(const pki_io_summary *now, const pki_io_summary *before)
{
    pki_io_summary more = *now;
    more.observed = pki_saturating_sub(now->observed, before->observed);
    more.read_chars = pki_saturating_sub(now->read_chars, before->read_chars);
    more.write_chars = pki_saturating_sub(now->write_chars, before->write_chars);
    more.read_calls = pki_saturating_sub(now->read_calls, before->read_calls);
    more.write_calls = pki_saturating_sub(now->write_calls, before->write_calls);
    more.read_device = pki_saturating_sub(now->read_device, before->read_device);
    more.write_device = pki_saturating_sub(now->write_device, before->write_device);
    more.exposed = pki_saturating_sub(now->exposed, before->exposed);
    more.hidden = pki_saturating_sub(now->hidden, before->hidden);
    more.blocked = pki_saturating_sub(now->blocked, before->blocked);
    more.saves = pki_saturating_sub(now->saves, before->saves);
    more.save_time = pki_saturating_sub(now->save_time, before->save_time);
    more.save_bytes = pki_saturating_sub(now->save_bytes, before->save_bytes);
    return more;
}

void pki_io_sums_add(pki_io_summary *into, const pki_io_summary *more)
{
    into->asked |= more->asked;
    into->observed += more->observed;
    into->read_chars += more->read_chars;
    into->write_chars += more->write_chars;
    into->read_calls += more->read_calls;
    into->write_calls += more->write_calls;
    into->read_device += more->read_device;
    into->write_device += more->write_device;
    into->best_read = PKI_MAX(into->best_read, more->best_read);
    into->best_write = PKI_MAX(into->best_write, more->best_write);
    into->exposed += more->exposed;
    into->hidden += more->hidden;
    into->blocked_known = more->blocked_known || into->blocked_known;
    into->blocked += more->blocked;
    into->saves += more->saves;
    into->save_time += more->save_time;
    into->save_bytes += more->save_bytes;
}
