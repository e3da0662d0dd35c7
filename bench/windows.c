/* windows.c [STEPS [REGIONS]] - what windows of a long run cost, and that nothing grows: steps of a
 * clock of its own making are folded into the figures of a run, cut into windows, written into a
 * file of bounded size, and added up again beside the run's own figures.
 *
 * No thread records, so what is timed is the windows' part alone: the cut, under the fold lock, and
 * the line, on the collector. Prints both for each region and window, the memory before and after,
 * and the bytes of the files.
 */
#include "base/compiler.h"
#include "measure/window/merge.h"
#include "out/file.h"
#include "out/window/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WINDOW 100000u
#define PATH "/tmp/pk-bench-windows.jsonl"
#define MOST_BYTES ((uint64_t)1 << 20)

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t resident_bytes(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lu %lu", &all, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Of the file and its earlier parts. */
static uint64_t bytes_on_disk(void)
{
    char name[PATH_MAX] = PATH;
    struct stat file;
    uint64_t all = 0;
    for (unsigned part = 0; part <= PKI_ROLLING_PARTS; part++)
        if ((part == 0 || pki_rolling_part(PATH, part, name)) && stat(name, &file) == 0)
            all += (uint64_t)file.st_size;
    return all;
}

static void remove_files(void)
{
    char name[PATH_MAX];
    remove(PATH);
    for (unsigned part = 1; part <= PKI_ROLLING_PARTS; part++)
        if (pki_rolling_part(PATH, part, name))
            remove(name);
}

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

typedef struct run {
    pki_steps *steps, *joined;
    uint32_t regions;
    uint64_t index, clock;
    uint64_t cut_ns, line_ns, windows, bytes, most_on_disk;
    pki_rolling file;
    pki_window_line line;
} run;

static void make_step(run *r)
{
    uint64_t all = 0;
    for (uint32_t id = 0; id < r->regions; id++) {
        uint64_t self = 1000 + next_random() % 1000;
        pki_steps_add_self(r->steps, id, PK_COMPUTE, self);
        all += self;
    }
    pki_step step = {.index = r->index++,
                     .start = r->clock,
                     .duration = all + 100,
                     .items = 1,
                     .broken_down = true};
    r->clock += step.duration;
    pki_steps_add(r->steps, &step);
}

static void name_regions(const run *r, pki_window *w)
{
    w->regions = calloc(r->regions, sizeof *w->regions);
    w->region_count = r->regions;
    for (uint32_t id = 0; id < r->regions; id++) {
        char name[32];
        snprintf(name, sizeof name, "region%u", id);
        w->regions[id] = (pki_window_region){.name = strdup(name), .kind = PK_COMPUTE};
    }
}

static void write_line(run *r, pki_window *w)
{
    uint64_t began = now_ns();
    if (!pki_window_line_begin(&r->line, w))
        exit(1);
    while (!pki_window_line_advance(&r->line))
        ;
    if (!pki_window_line_end(&r->line) ||
        !pki_rolling_append(&r->file, r->line.text, r->line.bytes))
        exit(1);
    r->line_ns += now_ns() - began;
    r->bytes += r->line.bytes;
    r->most_on_disk = PKI_MAX(r->most_on_disk, bytes_on_disk());
    pki_window_line_finish(&r->line);
}

static void end_window(run *r)
{
    pki_window w = {.index = r->windows++, .end = r->clock};
    uint64_t began = now_ns();
    if (!pki_steps_cut(r->steps, &w.steps.exact))
        exit(1);
    r->cut_ns += now_ns() - began;
    name_regions(r, &w);
    write_line(r, &w);
    if (!pki_steps_join(r->joined, &w.steps.exact))
        exit(1);
    pki_window_finish(&w);
}

static const char *no_name(void *user, uint32_t id)
{
    (void)user, (void)id;
    return NULL;
}

/* Of the run and of its windows: the same to the last digit? */
static int same(const run *r)
{
    pki_summary a, b;
    pki_summary_init(&a);
    pki_summary_init(&b);
    int alike = pki_steps_fill(r->steps, 0, no_name, NULL, &a) &&
                pki_steps_fill(r->joined, 0, no_name, NULL, &b) &&
                memcmp(&a.steps.all, &b.steps.all, sizeof a.steps.all) == 0 &&
                memcmp(&a.steps.steady, &b.steps.steady, sizeof a.steps.steady) == 0 &&
                memcmp(a.steps.kinds, b.steps.kinds, sizeof a.steps.kinds) == 0 &&
                a.steps.count == b.steps.count && a.steps.warmup == b.steps.warmup;
    pki_summary_finish(&a);
    pki_summary_finish(&b);
    return alike;
}

int main(int argc, char **argv)
{
    static run r;
    uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000u, first = 0;
    r.regions = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2;
    r.steps = pki_steps_create();
    r.joined = pki_steps_create();
    for (uint32_t id = 0; id < r.regions; id++)
        pki_steps_region(r.joined, id, PK_COMPUTE);
    if (!pki_rolling_open(&r.file, PATH, false, MOST_BYTES))
        return 1;
    for (uint64_t i = 0; i < steps; i++) {
        make_step(&r);
        if (r.index % WINDOW == 0)
            end_window(&r);
        if (r.index == 2 * WINDOW)
            first = resident_bytes();
    }
    end_window(&r);
    double each = (double)r.windows * r.regions;
    printf("%llu steps of %u regions, %llu windows\n", (unsigned long long)steps, r.regions,
           (unsigned long long)r.windows);
    printf("cut   %10.0f ns a window, %8.0f ns a region\n", (double)r.cut_ns / (double)r.windows,
           (double)r.cut_ns / each);
    printf("line  %10.0f ns a window, %8.0f ns a region, %.0f bytes a window\n",
           (double)r.line_ns / (double)r.windows, (double)r.line_ns / each,
           (double)r.bytes / (double)r.windows);
    printf("resident memory after 2 windows %.1f MB, at the end %.1f MB\n", (double)first / 1e6,
           (double)resident_bytes() / 1e6);
    printf("written %.1f MB, on disk at most %.3f MB; the bound is %.3f MB\n",
           (double)r.bytes / 1e6, (double)r.most_on_disk / 1e6, (double)MOST_BYTES / 1e6);
    pki_rolling_close(&r.file);
    remove_files();
    printf("windows add up to the run's figures: %s\n", same(&r) ? "to the last digit" : "NO");
    return !same(&r);
}
