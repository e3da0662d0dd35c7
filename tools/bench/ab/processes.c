/* tools/bench/ab/processes.c - each process run a process that writes its file of benchmarks: see
 * ab.h.
 */
#include "bench/ab/ab.h"

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the command line of a process run ---- */

#define OURS 12
#define WARMUP 0.2 /* of a process run's time; the rest is measured */

typedef struct command_line {
    char json[100];
    char texts[OURS][160];
    char **words;
    int count;
} command_line;

static void put(command_line *c, const char *word)
{
    snprintf(c->texts[c->count], sizeof c->texts[0], "%s", word);
    c->words[c->count] = c->texts[c->count];
    c->count++;
}

static void put_seconds(command_line *c, const char *key, double seconds)
{
    char word[100];
    snprintf(word, sizeof word, "%s=%.6f", key, seconds);
    put(c, word);
}

static void put_text(command_line *c, const char *key, const char *text)
{
    char word[160];
    snprintf(word, sizeof word, "%s=%s", key, text);
    put(c, word);
}

static void put_options(command_line *c, const ab_wish *w, double seconds)
{
    if (w->google) {
        put_text(c, "--benchmark_out", c->json);
        put(c, "--benchmark_out_format=json");
        put_seconds(c, "--benchmark_min_time", (1 - WARMUP) * seconds);
    } else {
        put_text(c, "--json", c->json);
        put_seconds(c, "--min-time", (1 - WARMUP) * seconds);
        put_seconds(c, "--max-time", (1 - WARMUP) * seconds);
        put_seconds(c, "--max-warmup", WARMUP * seconds);
        put(c, "--min-samples=5");
        put(c, "--quiet");
    }
}

/* Ours first: what the user says after -- is the last word. The filter is a word of its own length.
 */
static void make_command(command_line *c, const ab_session *s, int side)
{
    const ab_wish *w = s->wish;
    c->words = memory_zeroed((size_t)(OURS + w->argument_count + 4), sizeof *c->words);
    c->words[0] = s->files[side];
    c->count = 1;
    snprintf(c->json, sizeof c->json, "%s/launch.json", s->folder);
    put_options(c, w, w->time / (2 * (double)s->wanted));
    if (w->filter) {
        c->words[c->count++] = (char *)(uintptr_t)(w->google ? "--benchmark_filter" : "--filter");
        c->words[c->count++] = (char *)(uintptr_t)w->filter;
    }
    for (int i = 0; i < w->argument_count; i++)
        c->words[c->count++] = w->arguments[i];
}

/* ---- one process run ---- */

static bool wait_for(ab_child *child, double until, const char *log, complaint *why)
{
    char ignored[256];
    complaint first = {""}, second = {""};
    long got;
    do
        got = ab_child_read(child, ignored, sizeof ignored, until, &first);
    while (got > 0);
    bool ended = ab_child_finish(child, got < 0, log, &second);
    if (got < 0)
        return complaint_set(why, "%s", first.text);
    return ended || complaint_set(why, "%s", second.text);
}

static bool read_run(ab_session *s, int side, const char *path, complaint *why)
{
    char id[64];
    bench_file one;
    if (!bench_file_load(&one, path, why))
        return false;
    snprintf(id, sizeof id, "%016zx", s->runs + 1);
    for (uint32_t i = 0; i < one.names.count; i++)
        if (one.series[i].run_count && one.series[i].runs[0].id[0])
            snprintf(id, sizeof id, "%.60s", one.series[i].runs[0].id);
    bench_file_append(&s->builds[side], &one, id, s->runs + 1);
    return true;
}

static bool launch(ab_session *s, int side, complaint *why)
{
    char log[100];
    complaint wrong = {""};
    command_line c = {.count = 0};
    ab_child child;
    snprintf(log, sizeof log, "%s/launch.log", s->folder);
    make_command(&c, s, side);
    unlink(c.json);
    bool ran = ab_child_start(&child, c.words, log, &wrong) &&
               wait_for(&child, ab_now() + s->wish->timeout, log, &wrong);
    if (ran && access(c.json, R_OK))
        ran = complaint_set(&wrong, "wrote no file of benchmarks (%s)",
                            s->wish->google ? "--benchmark_out" : "--json FILE");
    ran = ran && read_run(s, side, c.json, &wrong);
    free(c.words);
    return ran || complaint_set(why, "%s %s", s->wish->paths[side], wrong.text);
}

/* ---- all of them ---- */

bool ab_run_processes(ab_session *s, complaint *why)
{
    for (; s->runs < s->wanted && !ab_is_over(s); s->runs++) {
        int first = ab_new_first(s->runs);
        ab_show_progress(s);
        if (!launch(s, first, why) || !launch(s, !first, why))
            return false;
    }
    return true;
}
