#include "job/figures/life.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "job/forms/json.h"
#include "measure/figure.h"
#include "memory.h"
#include "out/columns.h"

#define TIME(ns) (pki_figure_time((double)(ns)).text)
#define SHARE(x) (pki_figure_percent(x).text)
#define COUNT(n) (pki_figure_count(n).text)

/* ---- reading ---- */

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

bool job_life_read(const char *path, job_life *life)
{
    struct stat about; /* what is read from a pipe is read once */
    FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "re") : NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    if (!file || !is_state_file(file)) {
        if (file)
            fclose(file);
        return false;
    }
    *life = (job_life){.path = memory_copy(path), .runs = is_held(file)};
    pki_life *all = pki_life_begin();
    while ((n = getline(&line, &room, file)) > 0)
        pki_life_add(all, line, (size_t)n - (line[n - 1] == '\n'));
    life->sum = pki_life_end(all);
    free(line);
    fclose(file);
    return true;
}

/* ---- for people ---- */

static const char *const shown[PKI_PARTS] = {
    [PKI_PART_PRODUCTIVE] = "productive steps",
    [PKI_PART_RECOMPUTED] = "recomputed steps",
    [PKI_PART_DATA] = "waiting for data",
    [PKI_PART_STARTUP] = "start-up",
    [PKI_PART_COMPILE] = "compilation",
    [PKI_PART_CHECKPOINT] = "saving checkpoints",
    [PKI_PART_RESTORE] = "loading checkpoints",
    [PKI_PART_EVALUATION] = "evaluation",
    [PKI_PART_HANG] = "hangs",
    [PKI_PART_UNFINISHED] = "steps that never ended",
    [PKI_PART_OTHER] = "other, between steps",
};

static void put_row(FILE *to, const char *name, uint64_t ns, uint64_t wall)
{
    if (!ns)
        return;
    fputs("  ", to);
    pki_put_left(to, name, 26);
    pki_put_cell(to, TIME(ns), 10);
    pki_put_cell(to, SHARE(wall ? (double)ns / (double)wall : 0), 9);
    fputc('\n', to);
}

static void put_table(const pki_life_sum *s, FILE *to)
{
    for (size_t i = 0; i < PKI_PARTS; i++)
        put_row(to, shown[i], s->parts[i], s->wall);
    put_row(to, "down, between runs", s->down, s->wall);
    put_row(to, "wall time", s->wall, s->wall);
}

/* What is known for sure, and what may be. */
static void put_range(uint64_t least, uint64_t more, FILE *to)
{
    fputs(COUNT(least), to);
    if (more)
        fprintf(to, " to %s", COUNT(least + more));
}

/* What was lost is again only if a run has come behind it. */
static void put_steps(const job_life *l, FILE *to)
{
    const pki_life_sum *s = &l->sum;
    fputs("  ", to);
    put_range(s->steps, s->doubt_steps + (l->runs ? 0 : s->last_doubt_steps), to);
    fputs(" steps made", to);
    if (s->at_known && s->furthest >= 0) {
        fputs(", ", to);
        put_range(s->recomputed, s->doubt_steps, to);
        fprintf(to, " of them again; the training has come to step %s",
                COUNT((uint64_t)s->furthest));
    } else if (s->runs > 1)
        fputs("; which of them again is not known, since no pk_training_at says where runs went on",
              to);
    fputc('\n', to);
}

static void put_saves(const pki_life_sum *s, FILE *to)
{
    if (!s->saves)
        return;
    fprintf(to, "  %s checkpoints, %s each, one every %s", COUNT(s->saves),
            TIME(s->save_ns / s->saves), TIME(s->wall / s->saves));
    if (s->save_bytes && s->save_ns)
        fprintf(to, ", %s at %s",
                pki_figure_scaled((double)s->save_bytes / (double)s->saves, "B").text,
                pki_figure_scaled((double)s->save_bytes * 1e9 / (double)s->save_ns, "B/s").text);
    if (s->saved >= 0)
        fprintf(to, "; the last one at step %s", COUNT((uint64_t)s->saved));
    fputc('\n', to);
}

static void put_doubts(const job_life *l, FILE *to)
{
    const pki_life_sum *s = &l->sum;
    if (s->doubt)
        fprintf(
            to,
            "  up to %s of the down time may have been steps, about %s of them: what killed runs"
            " did after their last line\n",
            TIME(s->doubt), COUNT(s->doubt_steps));
    if (s->damaged)
        fprintf(to, "  %s lines are cut or damaged; the ones after them make up for it\n",
                COUNT(s->damaged));
    if (s->overlaps)
        fprintf(to,
                "  %s runs began before the one before them had ended, by %s in all: that time"
                " is in both\n",
                COUNT(s->overlaps), TIME(s->overlap));
    if (s->clock_set)
        fprintf(to, "  between %s runs the clock was set: that time is unknown, and left out\n",
                COUNT(s->clock_set));
}

static void put_life(const job_life *l, FILE *to)
{
    const pki_life_sum *s = &l->sum;
    uint64_t killed = s->runs - s->ended - (l->runs && s->runs > s->ended);
    fputs("\nGoodput (", to);
    pki_put_text(to, l->path);
    if (s->rank)
        fprintf(to, ", rank %llu", (unsigned long long)s->rank);
    fprintf(to, ")\n  %s run%s: %s ended, %s killed%s\n", COUNT(s->runs), s->runs == 1 ? "" : "s",
            COUNT(s->ended), COUNT(killed), l->runs ? ", one running" : "");
    fprintf(to,
            "  goodput %s = productive / wall time; ETTR %s = (productive + waiting for data) /"
            " wall time\n",
            SHARE(s->goodput), SHARE(s->ettr));
    put_table(s, to);
    put_steps(l, to);
    put_saves(s, to);
    put_doubts(l, to);
}

void job_lives_text(const job *j, FILE *to)
{
    for (size_t i = 0; i < j->life_count; i++)
        put_life(&j->lives[i], to);
}

/* ---- for machines ---- */

static void put_parts(const pki_life_sum *s, pki_json *json)
{
    pki_json_open(json, "parts", '{');
    for (size_t i = 0; i < PKI_PARTS; i++)
        pki_json_uint(json, pki_part_names[i], s->parts[i]);
    pki_json_uint(json, "down", s->down);
    pki_json_close(json, '}');
}

static void put_json(const job_life *l, pki_json *json)
{
    const pki_life_sum *s = &l->sum;
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "file", l->path);
    pki_json_uint(json, "rank", s->rank);
    pki_json_uint(json, "runs", s->runs);
    pki_json_uint(json, "ended", s->ended);
    pki_json_bool(json, "running", l->runs);
    pki_json_uint(json, "start_unix", s->first_unix);
    pki_json_uint(json, "wall", s->wall);
    pki_json_real(json, "goodput", s->goodput);
    pki_json_real(json, "ettr", s->ettr);
    put_parts(s, json);
    pki_json_uint(json, "doubt", s->doubt);
    pki_json_uint(json, "doubt_steps", s->doubt_steps);
    pki_json_uint(json, "last_doubt_steps", l->runs ? 0 : s->last_doubt_steps);
    pki_json_uint(json, "steps", s->steps);
    pki_json_uint(json, "recomputed", s->recomputed);
    pki_json_bool(json, "recomputed_known", s->at_known);
    if (s->furthest >= 0)
        pki_json_int(json, "furthest", s->furthest);
    pki_json_uint(json, "checkpoints", s->saves);
    pki_json_uint(json, "checkpoint_time", s->save_ns);
    pki_json_uint(json, "checkpoint_bytes", s->save_bytes);
    if (s->saved >= 0)
        pki_json_int(json, "checkpoint_step", s->saved);
    pki_json_uint(json, "damaged", s->damaged);
    pki_json_uint(json, "overlaps", s->overlaps);
    pki_json_uint(json, "overlap", s->overlap);
    pki_json_uint(json, "clock_back", s->clock_set);
    pki_json_close(json, '}');
}

void job_lives_json(const job *j, pki_json *json)
{
    if (!j->life_count)
        return;
    pki_json_row(json);
    pki_json_open(json, "goodput", '[');
    for (size_t i = 0; i < j->life_count; i++)
        put_json(&j->lives[i], json);
    pki_json_close(json, ']');
}

/* ---- alone ---- */

void job_lives_alone(const job *j, bool as_json, FILE *to)
{
    pki_json json = {.file = to, .rows = true};
    if (!as_json) {
        job_lives_text(j, to);
        return;
    }
    pki_json_open(&json, NULL, '{');
    pki_json_text(&json, "format", JOB_FORMAT);
    pki_json_uint(&json, "schema", JOB_SCHEMA);
    job_lives_json(j, &json);
    pki_json_close(&json, '}');
    fputc('\n', to);
}
