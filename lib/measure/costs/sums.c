#include "measure/costs/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

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
