/* tools/machine/command.c - `pk machine`: its words, and what it prints */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/compiler.h"
#include "base/tuning.h"
#include "command.h"
#include "files.h"
#include "machine/machine.h"
#include "measure/figure.h"
#include "memory.h"
#include "out/columns.h"
#include "out/json_write.h"

/* ---- show text ---- */

#define NAME 19
#define CELL 14
#define DISTURBED 0.9 /* a median below that share of the best round */

static bool is_memory(const pki_limit *l)
{
    return strcmp(l->name, PKI_LIMIT_COPY) == 0 ||
           strncmp(l->name, PKI_LIMIT_TRIAD, strlen(PKI_LIMIT_TRIAD)) == 0;
}

static void put_rates(const pki_limit *l, const char *unit)
{
    pki_put_cell(stdout, pki_figure_scaled((double)l->best, unit).text, CELL);
    pki_put_cell(stdout, pki_figure_scaled((double)l->median, unit).text, CELL);
    pki_put_cell(stdout, pki_figure_scaled((double)l->worst, unit).text, CELL);
}

static void show_limit(const machine_found *f, const pki_limit *l)
{
    char where[32] = "one";
    const char *unit = is_memory(l) ? "B/s" : "flop/s";
    if (l->all && f->processors)
        snprintf(where, sizeof where, "all %u", f->processors);
    else if (l->all)
        snprintf(where, sizeof where, "all");
    pki_put_left(stdout, l->name, NAME);
    pki_put_cell(stdout, where, 8);
    put_rates(l, unit);
    if (!is_memory(l) && !l->all && f->clock_hz > 0)
        printf("  %.1f a cycle", (double)l->best / f->clock_hz);
    putchar('\n');
}

static void show_limits(const machine_found *f, bool memory)
{
    pki_put_left(stdout, memory ? "memory" : "arithmetic", NAME);
    pki_put_cell(stdout, "threads", 8);
    pki_put_cell(stdout, "best", CELL);
    pki_put_cell(stdout, "median", CELL);
    pki_put_cell(stdout, "worst", CELL);
    putchar('\n');
    for (size_t i = 0; i < f->machine.limit_count; i++)
        if (is_memory(&f->machine.limits[i]) == memory)
            show_limit(f, &f->machine.limits[i]);
}

static void show_arrays(const machine_found *f)
{
    char text[400];
    bool small = f->array_bytes < 4 * f->cache_bytes;
    snprintf(text, sizeof text,
             "Arrays of %llu MiB beside caches of %llu MiB%s%s; bytes as STREAM counts them: 16 "
             "(copy) and 24 (triad) an element, stores that go through the caches, but for "
             "triad-streamed.",
             (unsigned long long)(f->array_bytes >> 20), (unsigned long long)(f->cache_bytes >> 20),
             f->cache_known ? "" : " (a guess)",
             small ? ", less than four times as much: what was measured is not memory alone" : "");
    pki_put_paragraph(stdout, text, 0, 0);
}

static void show_storage(const storage_figures *s)
{
    char text[256];
    if (!s->folder)
        return;
    putchar('\n');
    pki_put_left(stdout, "storage", NAME);
    printf("%10s  %14s  %14s  %14s\n", "", "best", "median", "worst");
    pki_put_left(stdout, s->direct ? "write" : "write, with sync", NAME);
    printf("%10s", "");
    put_rates(&s->write, "B/s");
    if (s->read.rounds) {
        putchar('\n');
        pki_put_left(stdout, "read", NAME);
        printf("%10s", "");
        put_rates(&s->read, "B/s");
    }
    putchar('\n');
    snprintf(text, sizeof text, "%llu MiB in %.100s, blocks of 1 MiB one after the other, %s.",
             (unsigned long long)(s->bytes >> 20), s->folder,
             s->direct ? "past the page cache (O_DIRECT)"
                       : "through the page cache: there is no O_DIRECT, so reading was not "
                         "measured");
    pki_put_paragraph(stdout, text, 0, 0);
}

static void show_rate(const char *what, double rate)
{
    if (rate > 0)
        printf(", %s %s", what, pki_figure_scaled(rate, "flop/s").text);
}

static void show_devices(const machine_found *f)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        const pki_device_limits *d = pki_device_find(f->devices[i]);
        printf("\ndevice %u  ", i);
        pki_put_text(stdout, f->devices[i]);
        if (!d) {
            printf(": not in the table\n");
            continue;
        }
        printf("\n  table, not measured (%s, dense): %s", d->source,
               pki_figure_scaled(d->bandwidth, "B/s").text);
        show_rate("fp64", d->fp64);
        show_rate("fp64 tensor", d->fp64_tensor);
        show_rate("fp32", d->fp32);
        show_rate("tf32", d->tf32);
        show_rate("bf16", d->bf16);
        show_rate("fp16", d->fp16);
        show_rate("fp8", d->fp8);
        putchar('\n');
    }
}

/* What else was going on, and what fences the process in. */
static void show_surroundings(const machine_found *f)
{
    const pki_bench_environment *e = &f->environment;
    printf("load      %.2f when it began; the threads had a processor for %s of the rounds\n",
           e->load[0], pki_figure_percent(f->on_processor).text);
    if (f->clock_hz > 0)
        printf("clock     %.3f GHz, by a chain of additions%s%s\n", f->clock_hz / 1e9,
               e->governor[0] ? ", governor " : "", e->governor);
    if (e->cgroup_cpus > 0)
        printf("cgroup    %.2f processors at most\n", e->cgroup_cpus);
    if (e->cgroup_memory_bytes)
        printf("cgroup    %llu MiB of memory at most\n",
               (unsigned long long)(e->cgroup_memory_bytes >> 20));
    if (e->virtual_machine[0])
        printf("machine   virtual: what its neighbours take shows in the spread alone\n");
}

static void warn(const machine_found *f)
{
    unsigned disturbed = 0;
    for (size_t i = 0; i < f->machine.limit_count; i++) {
        const pki_limit *l = &f->machine.limits[i];
        disturbed += (double)l->median < DISTURBED * (double)l->best;
    }
    if (disturbed)
        printf("\nIn %u of %u limits the median is more than 10 %% below the best round: other "
               "work\nshared the machine. Measure again when it is idle.\n",
               disturbed, (unsigned)f->machine.limit_count);
}

static void machine_show_text(const machine_found *f)
{
    const pki_machine *m = &f->machine;
    time_t when = (time_t)m->measured;
    struct tm utc;
    char day[32] = "";
    if (gmtime_r(&when, &utc))
        strftime(day, sizeof day, "%Y-%m-%d %H:%M UTC", &utc);
    printf("host      ");
    pki_put_text(stdout, m->host);
    printf(", measured %s\ncpu       ", day);
    pki_put_text(stdout, m->cpu);
    printf("\nonline    %llu processors\n", (unsigned long long)m->processors);
    if (f->processors)
        show_surroundings(f);
    putchar('\n');
    show_limits(f, true);
    if (f->array_bytes)
        show_arrays(f);
    putchar('\n');
    show_limits(f, false);
    show_storage(&f->storage);
    show_devices(f);
    warn(f);
}

/* ---- show json ---- */

static void show_json_put_rates(pki_json *j, const pki_limit *l)
{
    pki_json_uint(j, "best", l->best);
    pki_json_uint(j, "median", l->median);
    pki_json_uint(j, "worst", l->worst);
    pki_json_uint(j, "rounds", l->rounds);
}

static void put_limits(pki_json *j, const pki_machine *m)
{
    pki_json_open(j, "limits", '[');
    for (size_t i = 0; i < m->limit_count; i++) {
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", m->limits[i].name);
        pki_json_text(j, "threads", m->limits[i].all ? "all" : "one");
        show_json_put_rates(j, &m->limits[i]);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_surroundings(pki_json *j, const machine_found *f)
{
    const pki_bench_environment *e = &f->environment;
    pki_json_uint(j, "processors_allowed", f->processors);
    pki_json_real(j, "clock_hz", f->clock_hz);
    pki_json_text(j, "governor", e->governor);
    pki_json_real(j, "load", e->load[0]);
    pki_json_real(j, "on_processor", f->on_processor);
    pki_json_real(j, "cgroup_processors", e->cgroup_cpus);
    pki_json_uint(j, "cgroup_memory_bytes", e->cgroup_memory_bytes);
    pki_json_text(j, "virtual_machine", e->virtual_machine);
    pki_json_uint(j, "array_bytes", f->array_bytes);
    pki_json_uint(j, "cache_bytes", f->cache_bytes);
    pki_json_bool(j, "cache_known", f->cache_known);
}

static void put_storage(pki_json *j, const storage_figures *s)
{
    if (!s->folder)
        return;
    pki_json_row(j);
    pki_json_open(j, "storage", '{');
    pki_json_text(j, "folder", s->folder);
    pki_json_bool(j, "direct", s->direct);
    pki_json_uint(j, "bytes", s->bytes);
    pki_json_open(j, "write", '{');
    show_json_put_rates(j, &s->write);
    pki_json_close(j, '}');
    if (s->read.rounds) {
        pki_json_open(j, "read", '{');
        show_json_put_rates(j, &s->read);
        pki_json_close(j, '}');
    }
    pki_json_close(j, '}');
}

static void put_device(pki_json *j, const char *name)
{
    const pki_device_limits *d = pki_device_find(name);
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", name);
    pki_json_bool(j, "in_table", d != NULL);
    if (d) {
        pki_json_text(j, "source", d->source);
        pki_json_real(j, "bandwidth", d->bandwidth);
        pki_json_real(j, "fp64", d->fp64);
        pki_json_real(j, "fp64_tensor", d->fp64_tensor);
        pki_json_real(j, "fp32", d->fp32);
        pki_json_real(j, "tf32", d->tf32);
        pki_json_real(j, "bf16", d->bf16);
        pki_json_real(j, "fp16", d->fp16);
        pki_json_real(j, "fp8", d->fp8);
    }
    pki_json_close(j, '}');
}

/* What was not measured is left out. */
static void machine_show_json(const machine_found *f)
{
    pki_plain plain;
    pki_json j = {.file = stdout, .rows = true};
    memory_needed(pki_plain_enter(&plain));
    pki_json_open(&j, NULL, '{');
    pki_json_text(&j, "host", f->machine.host);
    pki_json_text(&j, "cpu", f->machine.cpu);
    pki_json_uint(&j, "processors", f->machine.processors);
    pki_json_uint(&j, "measured", f->machine.measured);
    if (f->processors)
        put_surroundings(&j, f);
    put_limits(&j, &f->machine);
    put_storage(&j, &f->storage);
    pki_json_open(&j, "devices", '[');
    for (unsigned i = 0; i < f->device_count; i++)
        put_device(&j, f->devices[i]);
    pki_json_close(&j, ']');
    pki_json_close(&j, '}');
    putchar('\n');
    pki_plain_leave(&plain);
}

/* ---- pk machine: what this machine can do, measured once and kept ---- */

#define ROUNDS 15u
#define STORAGE_MIB 256u

static const option all_options[] = {
    {"--show", NULL, "what was measured last, without measuring",
     .at = offsetof(machine_wish, show)},
    {"--json", NULL, "as JSON", .at = offsetof(machine_wish, json)},
    {"-o", "FILE",
     "where it is kept (default: PK_MACHINE_PATH, or ~/.cache/perfkit/machine-HOST.txt)",
     PKI_OPTION_FILE, option_text, offsetof(machine_wish, output), .needs = "a file"},
    {"--folder", "DIR", "measures writing and reading there, too; 5 x 256 MiB are written",
     PKI_OPTION_FOLDER, option_text, offsetof(machine_wish, folder), .needs = "a folder",
     .begins_group = true},
    {"--storage", "MIB", "so much in a round of it, a tenth of what is free at most (default {})",
     PKI_OPTION_WORD, option_number, offsetof(machine_wish, storage_mib), .least = 1,
     .most = 1u << 20, .shown = STORAGE_MIB},
    {"--memory", "MIB",
     "for all arrays together (default: 12 times the caches, at most a quarter of what is free)",
     PKI_OPTION_WORD, option_number, offsetof(machine_wish, memory_mib), .least = 1,
     .most = 1u << 24},
    {"--rounds", "N", "of each limit (default {})", PKI_OPTION_WORD, option_number,
     offsetof(machine_wish, rounds), .least = 1, .most = RATES_ROUNDS_MOST, .shown = ROUNDS},
};

static const option_table command_options = {
    .command = "machine",
    .usage = "[OPTION ...]",
    .about =
        "Measures what this machine can do: memory bandwidth (copy and triad) and peak\n"
        "arithmetic by each width of vectors, on one processor and on all that it may use. It\n"
        "takes some ten seconds, best on an idle machine, and is kept in a small file. Of GPUs\n"
        "it shows what their data sheets say.",
    .notes = "Exit status: 0; 2 if something could not be measured or kept.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .who = "machine: ",
    .operands = offsetof(machine_wish, none),
};

/* ---- its place ---- */

static bool find_output(machine_wish *w, char path[PATH_MAX], complaint *why)
{
    static char named[PATH_MAX];
    pki_machine here;
    if (!w->output && pki_tuning_of_environment(PKI_TUNING_MACHINE_PATH, named, sizeof named))
        w->output = named;
    if (w->output) {
        if (snprintf(path, PATH_MAX, "%s", w->output) < PATH_MAX)
            return true;
        return complaint_set(why, "machine: -o is longer than a path can be");
    }
    pki_machine_here(&here);
    if (pki_machine_path(here.host, path))
        return true;
    return complaint_set(why, "machine: neither XDG_CACHE_HOME nor HOME says where to keep it; "
                              "-o FILE does");
}

/* The folders in which it lies, as XDG wants them: nobody else's to read. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700); /* output_open says what is wrong */
        *slash = '/';
    }
}

static bool write_machine(const machine_wish *w, const pki_machine *m, char *path, complaint *why)
{
    output o;
    char text[PKI_MACHINE_BYTES];
    size_t n = pki_machine_print(m, text);
    if (!w->output)
        make_folders(path);
    return output_open(&o, path, OUTPUT_FILE, why) &&
           output_close(&o, fwrite(text, 1, n, o.to) == n, why);
}

/* ---- the command ---- */

static bool load(const machine_wish *w, const char *path, machine_found *found, complaint *why)
{
    char words[160];
    return pki_machine_load(path, w->output != NULL, &found->machine, words, sizeof words) ||
           complaint_set(why, "%s: %s", path, words);
}

static bool measure(const machine_wish *w, char *path, machine_found *found, complaint *why)
{
    /* Before seconds of work, what may be wrong at once. */
    if (w->output && !output_check(path, OUTPUT_FILE, why))
        return false;
    if (w->folder && !storage_measure(w->folder, w->storage_mib, &found->storage, why))
        return false;
    return machine_measure(w, found, why) && write_machine(w, &found->machine, path, why);
}

int command_machine(int argc, char **argv)
{
    static machine_found found;
    machine_wish w = {.rounds = ROUNDS, .storage_mib = STORAGE_MIB};
    complaint why = {""};
    char path[PATH_MAX];
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (w.none.count)
        return complain("machine takes no file, thus not \"%s\" (pk machine --help)",
                        w.none.all[0]);
    if (!find_output(&w, path, &why) ||
        !(w.show ? load(&w, path, &found, &why) : measure(&w, path, &found, &why)))
        return complain("%s", why.text);
    machine_find_devices(&found);
    if (w.json)
        machine_show_json(&found);
    else
        machine_show_text(&found);
    if (!w.json && !w.show)
        printf("\nkept in %s\n", path);
    return EXIT_OK;
}
