#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "stats/slot.h"

/* ---- what is kept of a rank's summary: devices, costs, events ---- */

static double mean_of(const pki_gpu_row *g, int figure)
{
    return g->per_step[figure].count ? g->per_step[figure].mean : -1;
}

static double known(double value)
{
    return value > 0 ? value : 0;
}

static pki_job_device device_of(const pki_gpu_row *g)
{
    double busy = mean_of(g, PKI_GPU_BUSY), exposed = mean_of(g, PKI_GPU_COMM_EXPOSED);
    double hidden = mean_of(g, PKI_GPU_COMM_HIDDEN), copied = mean_of(g, PKI_GPU_COPY_ALONE);
    return (pki_job_device){
        .number = g->device,
        .measured = g->measured,
        .steps = g->per_step[PKI_GPU_STEP].count,
        .step = mean_of(g, PKI_GPU_STEP),
        .parts = {[PKI_JOB_DEVICE_COMPUTE] = known(busy - known(exposed) - known(copied)),
                  [PKI_JOB_DEVICE_COMMUNICATION] = known(exposed),
                  [PKI_JOB_DEVICE_MEMORY] = copied,
                  [PKI_JOB_DEVICE_IDLE] = mean_of(g, PKI_GPU_IDLE),
                  [PKI_JOB_DEVICE_SYNC_GAPS] = mean_of(g, PKI_GPU_SYNC_GAPS),
                  [PKI_JOB_DEVICE_LAUNCH_GAPS] = mean_of(g, PKI_GPU_LAUNCH_GAPS)},
        .hidden = known(hidden),
        .communicated = known(hidden) + known(exposed)};
}

bool pki_job_devices_copy(pki_job_rank *to, const pki_summary *from)
{
    to->devices = pki_array_zeroed(from->gpu_count, sizeof *to->devices);
    for (size_t i = 0; to->devices && i < from->gpu_count; i++)
        if (from->gpus[i].per_step[PKI_GPU_BUSY].count)
            to->devices[to->device_count++] = device_of(&from->gpus[i]);
    return to->devices != NULL;
}

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

static bool fill_energy(const pki_energy_summary *e, pki_job_spent *out)
{
    out->counters = pki_array_zeroed(e->row_count, sizeof *out->counters);
    for (size_t i = 0; out->counters && i < e->row_count; i++) {
        const pki_energy_row *r = &e->rows[i];
        if (strcmp(r->step_kind, PKI_ENERGY_RUN) != 0 || r->refused || !counts(r->counter))
            continue;
        out->of[PKI_JOB_JOULES] =
            (out->of[PKI_JOB_JOULES] < 0 ? 0 : out->of[PKI_JOB_JOULES]) + r->joules;
        if (is_gpu(r->counter)) {
            out->gpu_joules += r->joules;
            continue;
        }
        pki_job_joules *to = &out->counters[out->counter_count++];
        snprintf(to->name, sizeof to->name, "%s", r->counter);
        to->joules = r->joules;
    }
    return out->counters != NULL;
}

static void fill_files(const pki_io_summary *io, pki_job_spent *out)
{
    if (!io->asked || (io->why_not && *io->why_not))
        return;
    out->of[PKI_JOB_READ] = (double)io->read_chars;
    out->of[PKI_JOB_WRITTEN] = (double)io->write_chars;
    out->of[PKI_JOB_DEVICE_READ] = (double)io->read_device;
    out->of[PKI_JOB_DEVICE_WRITTEN] = (double)io->write_device;
}

static void fill_operations(const pki_utilisation *u, pki_job_spent *out)
{
    double possible = u->peak * (double)u->time / 1e9;
    if (!u->steps || !(possible > 0))
        return;
    out->model = u->model;
    out->hardware = u->hardware;
    out->possible = possible;
    out->of[PKI_JOB_MFU] = u->model / possible;
    out->of[PKI_JOB_HFU] = u->hardware / possible;
}

/* Of all its devices; what is pinned of the host is in the process's own. */
static void fill_devices(const pki_gpu_memory_summary *m, pki_job_spent *out)
{
    if (!m->asked || (m->why_not && *m->why_not))
        return;
    out->of[PKI_JOB_ON_DEVICES] = out->of[PKI_JOB_TAKEN] = 0;
    for (size_t i = 0; i < m->place_count; i++) {
        if (!m->places[i].place || !is_gpu(m->places[i].place))
            continue;
        out->of[PKI_JOB_ON_DEVICES] += (double)m->places[i].peak;
        out->of[PKI_JOB_TAKEN] += (double)m->places[i].most_held;
    }
}

bool pki_job_spent_of(pki_job_spent *out, const pki_summary *s)
{
    *out = (pki_job_spent){.counter_count = 0};
    for (int i = 0; i < PKI_JOB_COSTS; i++)
        out->of[i] = -1;
    fill_operations(&s->steps.utilisation, out);
    fill_files(&s->io, out);
    if (s->memory.looks)
        out->of[PKI_JOB_RESIDENT] = (double)s->memory.most_resident;
    fill_devices(&s->gpu_memory, out);
    return fill_energy(&s->energy, out);
}

void pki_job_spent_finish(pki_job_spent *spent)
{
    free(spent->counters);
    *spent = (pki_job_spent){.counter_count = 0};
}

/* Takes the rows out of the summary. */
static void move_counted(pki_job_rank *rank, pki_summary *from)
{
    rank->counted_count = from->events.row_count;
    rank->counted = from->events.rows;
    from->events.row_count = 0;
    from->events.rows = NULL;
}

static void forget_counted(pki_job_rank *rank)
{
    for (size_t i = 0; i < rank->counted_count; i++)
        free(rank->counted[i].region);
    free(rank->counted);
    rank->counted = NULL;
    rank->counted_count = 0;
}

/* ---- goodput: a state file of the job's life ---- */

static bool is_state_file(FILE *file)
{
    char magic[sizeof PKI_LIFE_MAGIC - 1];
    bool is = fread(magic, sizeof magic, 1, file) == 1 &&
              memcmp(magic, PKI_LIFE_MAGIC, sizeof magic) == 0;
    rewind(file);
    return is;
}

static bool is_held(FILE *file)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fileno(file), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* False: no memory for its lines. */
static bool read_lines(FILE *file, pki_life *to)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    errno = 0;
    while ((n = getline(&line, &room, file)) > 0)
        pki_life_add(to, line, (size_t)n - (line[n - 1] == '\n'));
    free(line);
    return errno != ENOMEM;
}

static bool read_life(FILE *file, const char *path, pki_job_life *out)
{
    pki_life *all = pki_life_begin();
    *out = (pki_job_life){.path = strdup(path), .runs = is_held(file)};
    bool done = all && out->path && read_lines(file, all);
    out->sum = pki_life_end(all);
    if (!done)
        free(out->path);
    return done;
}

bool pki_job_life_add(pki_job *j, const char *path, bool *is)
{
    struct stat about; /* what is read from a pipe is read once */
    FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "re") : NULL;
    pki_job_life life;
    *is = file && is_state_file(file);
    bool done = !*is || read_life(file, path, &life);
    if (file)
        fclose(file);
    if (!*is || !done)
        return done;
    pki_job_life *more = realloc(j->lives, (j->life_count + 1) * sizeof *more);
    if (!more) {
        free(life.path);
        return false;
    }
    j->lives = more;
    j->lives[j->life_count++] = life;
    return true;
}

/* ---- the regions of all ranks, added up ---- */

typedef struct pki_job_self {
    uint32_t region;
    double self;
} pki_job_self;

/* They are added up file by file, since of all ranks they would not fit into memory. Only buckets
 * that have something: of what other profilers wrote each call may have a name. */
typedef struct regions {
    pki_texts names; /* kind as a digit, then the name */
    size_t room;
    pki_window_sum *sums;
} regions;

/* PKI_TEXTS_NONE: without memory. */
static uint32_t index_of_region(regions *all, const pki_region_row *row)
{
    char name[512];
    size_t length = strnlen(row->name, sizeof name - 2);
    name[0] = (char)('0' + row->kind % 10);
    memcpy(name + 1, row->name, length);
    name[length + 1] = '\0';
    if (!pki_array_fit(&all->sums, &all->room, all->names.count + (size_t)1, sizeof *all->sums))
        return PKI_TEXTS_NONE;
    return pki_texts_add(&all->names, name);
}

static bool add_exact(pki_window_sum *to, const pki_window_sum *from)
{
    bool done = true;
    if (!from->count)
        return true;
    to->min = to->count && to->min < from->min ? to->min : from->min;
    to->max = to->max > from->max ? to->max : from->max;
    to->count += from->count;
    to->sum += from->sum;
    to->squares_low += from->squares_low;
    to->squares_high += from->squares_high + (to->squares_low < from->squares_low);
    to->thinned.spread += from->thinned.spread;
    to->thinned.untimed += from->thinned.untimed;
    for (size_t i = 0; done && i < from->buckets.used; i++)
        if (from->buckets.buckets[i].key < PK_STATS_BUCKETS)
            done = pki_tally_count(&to->buckets, from->buckets.buckets[i].key,
                                   from->buckets.buckets[i].count);
    return done;
}

static bool add_regions(regions *all, pki_job_rank *rank, const pki_summary *from)
{
    free(rank->selves);
    rank->self_count = 0;
    rank->selves = pki_array_zeroed(from->region_count, sizeof *rank->selves);
    for (size_t i = 0; rank->selves && i < from->region_count; i++) {
        const pki_region_row *row = &from->regions[i];
        uint32_t at = index_of_region(all, row);
        if (at == PKI_TEXTS_NONE || !add_exact(&all->sums[at], &row->exact))
            return false;
        rank->selves[rank->self_count++] = (pki_job_self){at, (double)row->self};
    }
    return rank->selves != NULL;
}

/* ---- what comes out ---- */

/* Self times by region, then by rank; -1 of a rank that does not have it. NULL without memory. */
static double *selves_of(const regions *all, const pki_job *j)
{
    size_t ranks = j->rank_count, cells = all->names.count * ranks;
    double *selves = pki_array_zeroed(cells, sizeof *selves);
    for (size_t i = 0; selves && i < cells; i++)
        selves[i] = -1;
    for (size_t r = 0; selves && r < ranks; r++)
        for (size_t i = 0; i < j->ranks[r].self_count; i++) {
            double *self = &selves[j->ranks[r].selves[i].region * ranks + r];
            *self = (*self < 0 ? 0 : *self) + j->ranks[r].selves[i].self;
        }
    return selves;
}

/* The squares travel in the spare words, as in measure/window/window.c. */
static pki_dist dist_of(const pki_window_sum *sum, pk_stats *room)
{
    pki_stats_again(room);
    room->count = sum->count;
    room->sum = sum->sum;
    room->min = sum->count ? sum->min : room->min;
    room->max = sum->max;
    room->untimed = sum->thinned.untimed;
    room->spare[0] = sum->squares_low;
    room->spare[1] = sum->squares_high;
    room->spare[2] = sum->thinned.spread;
    for (size_t i = 0; i < sum->buckets.used; i++)
        pki_stats_count(room, sum->buckets.buckets[i].key, sum->buckets.buckets[i].count);
    pki_stats_finish(room, 1);
    return pki_stats_dist(room);
}

/* Without a name. */
static pki_job_region region_of(const regions *all, uint32_t at, const pki_job *j,
                                const double *selves, pk_stats *room)
{
    pki_job_region out = {.kind = (uint32_t)(all->names.texts[at][0] - '0'),
                          .number = at,
                          .time = dist_of(&all->sums[at], room),
                          .spread = pki_job_spread_of(j, selves + at * j->rank_count)};
    out.self = out.spread.mean * (double)out.spread.have;
    return out;
}

double pki_job_self_of_rank(const pki_job_rank *rank, const pki_job_region *region)
{
    double self = -1;
    for (size_t i = 0; i < rank->self_count; i++)
        if (rank->selves[i].region == region->number)
            self = (self < 0 ? 0 : self) + rank->selves[i].self;
    return self;
}

static int most_self_first(const void *x, const void *y)
{
    const pki_job_region *a = x, *b = y;
    if (a->self != b->self)
        return a->self < b->self ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

static bool fill(const regions *all, pki_job *j, const double *selves, pk_stats *room)
{
    for (uint32_t i = 0; i < all->names.count; i++) {
        pki_job_region region = region_of(all, i, j, selves, room);
        if (!region.spread.have)
            continue;
        region.name = strdup(all->names.texts[i] + 1);
        if (!region.name)
            return false;
        j->regions[j->region_count++] = region;
    }
    if (j->region_count)
        qsort(j->regions, j->region_count, sizeof *j->regions, most_self_first);
    return true;
}

static bool make_regions(const regions *all, pki_job *j)
{
    double *selves = selves_of(all, j);
    pk_stats *room = calloc(1, sizeof *room);
    j->regions = pki_array_zeroed(all->names.count, sizeof *j->regions);
    bool done = selves && room && j->regions && fill(all, j, selves, room);
    free(selves);
    free(room);
    return done;
}

static void finish_regions(regions *all)
{
    for (uint32_t i = 0; i < all->names.count; i++)
        pki_tally_finish(&all->sums[i].buckets);
    free(all->sums);
    pki_texts_finish(&all->names);
    *all = (regions){.room = 0};
}

/* ---- which of two is the rank ---- */

static bool is_one_run(const pki_job_rank *a, const pki_job_rank *b)
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
static int preference(const pki_job_rank *a, const pki_job_rank *b)
{
    bool report_a = strcmp(a->run.source, "session") == 0;
    bool report_b = strcmp(b->run.source, "session") == 0;
    int order = by_number(a->run.start_unix, b->run.start_unix);
    order = order ? order : by_number(a->run.complete, b->run.complete);
    order = order ? order : by_number(report_a, report_b);
    order = order ? order : by_number(a->run.wall, b->run.wall);
    order = order ? order : by_number(a->region_count, b->region_count);
    order = order ? order : strcmp(b->path, a->path);
    return order ? order : by_number(b->part, a->part);
}

static int by_rank(const void *x, const void *y)
{
    const pki_job_rank *a = x, *b = y;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static void finish_rank(pki_job_rank *r)
{
    pki_summary parts = {.run = r->run, .stages = r->stages, .comm = r->comm};
    pki_summary_finish(&parts);
    free(r->selves);
    free(r->slowest);
    free(r->devices);
    pki_job_spent_finish(&r->spent);
    forget_counted(r);
    free(r->path);
}

/* ---- reading ---- */

struct pki_job_reading {
    pki_job *into;
    size_t room;
    pki_texts processes; /* by rank, or by host, process and start: its place among the ranks */
    regions regions;
    bool again; /* what has been added up has one in it that is left out */
    pki_job_again *reread;
    bool failed; /* without memory */
};

typedef pki_job_reading reading;

/* PKI_TEXTS_NONE: without memory. */
static uint32_t index_of(reading *all, const pki_job_rank *r)
{
    char key[160];
    if (r->rank != PKI_JOB_NO_RANK)
        snprintf(key, sizeof key, "%d", r->rank);
    else
        snprintf(key, sizeof key, "%.64s %u %llu", r->run.host, r->run.pid,
                 (unsigned long long)r->run.start_unix);
    return pki_texts_add(&all->processes, key);
}

bool pki_job_note(pki_job_reading *all, const char *path, const char *what)
{
    char text[PATH_MAX + 400];
    snprintf(text, sizeof text, "%s: %s", path, what);
    all->failed |= pki_texts_add(&all->into->notes, text) == PKI_TEXTS_NONE;
    return !all->failed;
}

/* A report may have no member `run`. */
static bool fill_in(pki_run *run)
{
    char **const texts[] = {&run->program, &run->host, &run->source};
    bool done = true;
    for (size_t i = 0; i < PKI_COUNT_OF(texts); i++) {
        *texts[i] = *texts[i] ? *texts[i] : strdup("");
        done = done && *texts[i];
    }
    return done;
}

/* Without their parts. */
static bool copy_slowest(pki_job_rank *r, const pki_summary *s)
{
    size_t count = s->steps.slowest_count;
    r->slowest = pki_array_zeroed(count, sizeof *r->slowest);
    for (size_t i = 0; r->slowest && i < count; i++) {
        r->slowest[i] = s->steps.slowest[i];
        r->slowest[i].parts = NULL;
        r->slowest[i].part_count = 0;
    }
    r->slowest_count = r->slowest ? count : 0;
    return r->slowest != NULL;
}

/* It owns then what it has of the summary, also without memory for all of it, which is false. */
static bool make_rank(pki_job_rank *r, const char *path, size_t part, pki_summary *s)
{
    bool done = fill_in(&s->run);
    *r = (pki_job_rank){.rank = s->run.world_size ? s->run.rank : PKI_JOB_NO_RANK,
                        .path = strdup(path),
                        .part = part,
                        .run = s->run,
                        .stages = s->stages,
                        .processor = s->steps.processor,
                        .comm = s->comm,
                        .region_count = s->region_count};
    done = done && r->path && copy_slowest(r, s) && pki_job_devices_copy(r, s) &&
           pki_job_spent_of(&r->spent, s);
    move_counted(r, s);
    s->run = (pki_run){0};
    s->stages = (pki_stage_summary){0};
    s->comm = (pki_comm_summary){0};
    return done;
}

/* Another file of the same run is nothing to speak of. */
static void drop_file(reading *all, const pki_job_rank *taken, pki_job_rank *r)
{
    char what[PATH_MAX + 80];
    snprintf(what, sizeof what, "is of another run of rank %d than %s: left out", r->rank,
             taken->path);
    if (!is_one_run(taken, r))
        pki_job_note(all, r->path, what);
    finish_rank(r);
}

static bool add_new(reading *all, pki_job_rank *next, const pki_summary *s)
{
    pki_job *j = all->into;
    if (!pki_array_fit(&j->ranks, &all->room, j->rank_count + 1, sizeof *j->ranks) ||
        !add_regions(&all->regions, next, s))
        return false;
    j->ranks[j->rank_count++] = *next;
    return true;
}

/* Of one that is taken the regions are added when all have come. */
static void add_another(reading *all, pki_job_rank *next, uint32_t place)
{
    pki_job *j = all->into;
    if (preference(next, &j->ranks[place]) > 0) {
        drop_file(all, next, &j->ranks[place]);
        j->ranks[place] = *next;
        all->again = true;
    } else {
        drop_file(all, &j->ranks[place], next);
    }
}

static bool add_rank(reading *all, const char *path, size_t part, pki_summary *s)
{
    pki_job_rank next;
    bool done = make_rank(&next, path, part, s);
    uint32_t place = done ? index_of(all, &next) : PKI_TEXTS_NONE;
    if (place != PKI_TEXTS_NONE && place < all->into->rank_count) {
        add_another(all, &next, place);
        return true;
    }
    done = place != PKI_TEXTS_NONE && add_new(all, &next, s);
    if (!done)
        finish_rank(&next);
    return done;
}

bool pki_job_reading_add(pki_job_reading *all, const char *path, size_t part, pki_summary *s)
{
    if (!all->failed && !add_rank(all, path, part, s))
        all->failed = true;
    pki_summary_finish(s);
    return !all->failed;
}

/* ---- ranks that nobody has numbered ---- */

static int by_process(const void *x, const void *y)
{
    const pki_job_rank *a = x, *b = y;
    int order = (a->rank != PKI_JOB_NO_RANK) - (b->rank != PKI_JOB_NO_RANK);
    order = order ? order : strcmp(a->run.host, b->run.host);
    order = order ? order : by_number(a->run.start_unix, b->run.start_unix);
    order = order ? order : by_number(a->run.pid, b->run.pid);
    return order ? order : -preference(a, b);
}

/* Processes of a job that no launcher has told their ranks: numbered by host, start and pid. Among
 * ranks with numbers they are no ranks. */
static void number_ranks(reading *all)
{
    pki_job *j = all->into;
    if (j->rank_count)
        qsort(j->ranks, j->rank_count, sizeof *j->ranks, by_process);
    bool numbered = j->rank_count && j->ranks[j->rank_count - 1].rank != PKI_JOB_NO_RANK;
    size_t kept = 0;
    for (size_t i = 0; i < j->rank_count; i++) {
        pki_job_rank *r = &j->ranks[i];
        if (r->rank == PKI_JOB_NO_RANK && numbered) {
            pki_job_note(all, r->path, "is of a process without a rank: left out");
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
    reading *of;
    pki_job_rank **ranks;
    size_t count;
} again;

static int by_file(const void *x, const void *y)
{
    const pki_job_rank *a = *(pki_job_rank *const *)x, *b = *(pki_job_rank *const *)y;
    int order = strcmp(a->path, b->path);
    return order ? order : (a->part > b->part) - (a->part < b->part);
}

static void take_again(void *user, size_t part, pki_summary *s)
{
    again *a = user;
    if (a->count && a->ranks[0]->part == part) {
        a->of->failed |= !add_regions(&a->of->regions, a->ranks[0], s);
        a->ranks++;
        a->count--;
    }
    pki_summary_finish(s);
}

/* One of a run that had been read before has taken its place: what is added up is begun anew. */
static void add_again(reading *all)
{
    const pki_job *j = all->into;
    pki_job_rank **order = pki_array_zeroed(j->rank_count, sizeof *order);
    finish_regions(&all->regions);
    all->failed |= !order;
    for (size_t i = 0; order && i < j->rank_count; i++)
        order[i] = &j->ranks[i];
    if (order && j->rank_count)
        qsort(order, j->rank_count, sizeof *order, by_file);
    for (size_t i = 0, n; order && i < j->rank_count; i += n) {
        for (n = 1; i + n < j->rank_count && strcmp(order[i + n]->path, order[i]->path) == 0;)
            n++;
        if (all->reread && !all->failed)
            all->reread(order[i]->path, take_again, &(again){all, order + i, n});
    }
    free(order);
}

static bool number_hosts(pki_job *j)
{
    for (size_t i = 0; i < j->rank_count; i++) {
        pki_job_rank *r = &j->ranks[i];
        r->host = pki_texts_add(&j->hosts, r->run.host);
        if (r->host == PKI_TEXTS_NONE)
            return false;
        if (r->run.world_size > j->world)
            j->world = r->run.world_size;
        if (r->rank >= j->world && r->rank < INT32_MAX)
            j->world = r->rank + 1;
    }
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What has been read becomes ranks in order. */
static pki_job_made arrange(reading *all, const pki_job_steps *steps)
{
    pki_job *j = all->into;
    number_ranks(all);
    if (all->again && !all->failed)
        add_again(all);
    if (all->failed || !number_hosts(j) || !make_regions(&all->regions, j))
        return PKI_JOB_NO_MEMORY;
    if (j->notes.count)
        qsort(j->notes.texts, j->notes.count, sizeof *j->notes.texts, by_text);
    return j->rank_count ? pki_job_make_loops(j, steps) : PKI_JOB_NO_RANKS;
}

pki_job_reading *pki_job_reading_begin(pki_job *j, pki_job_again *reread)
{
    reading *all = calloc(1, sizeof *all);
    *j = (pki_job){0};
    if (all)
        *all = (reading){.into = j, .reread = reread};
    return all;
}

pki_job_made pki_job_reading_end(pki_job_reading *all, const pki_job_steps *steps)
{
    pki_job_made made = all ? arrange(all, steps) : PKI_JOB_NO_MEMORY;
    if (all) {
        finish_regions(&all->regions);
        pki_texts_finish(&all->processes);
    }
    free(all);
    return made;
}

pki_job_made pki_job_of(pki_job *j, pki_summary *ranks, size_t count, const pki_job_steps *steps)
{
    pki_job_reading *all = pki_job_reading_begin(j, NULL);
    for (size_t r = 0; r < count; r++)
        if (all)
            pki_job_reading_add(all, "", r, &ranks[r]);
        else
            pki_summary_finish(&ranks[r]);
    return pki_job_reading_end(all, steps);
}

void pki_job_finish(pki_job *j)
{
    for (size_t i = 0; i < j->rank_count; i++)
        finish_rank(&j->ranks[i]);
    for (size_t i = 0; i < j->region_count; i++)
        free(j->regions[i].name);
    for (size_t i = 0; i < j->life_count; i++)
        free(j->lives[i].path);
    pki_job_free_loops(j);
    free(j->lives);
    free(j->ranks);
    free(j->regions);
    pki_texts_finish(&j->hosts);
    pki_texts_finish(&j->notes);
    *j = (pki_job){0};
}
