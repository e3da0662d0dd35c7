/* tools/bench/ab/launch.c - one process run of both builds: loads them, alternates short
 * batches, sends each one to its parent. See ab.h.
 *
 * Each build gets a namespace of its own (dlmopen), hence a C library and a libpk of its own:
 * neither symbols nor heaps nor static variables are shared. Where the loader has no room for that,
 * both are opened locally (RTLD_LOCAL) if their libpk is part of them.
 */
#include "bench/ab/ab.h"
#include "bench/drive.h"
#include "command.h"

#include <dlfcn.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDES 2
#define SETTLING 0.1   /* of the time: batches that do not count */
#define LEAST_ROUNDS 4 /* of old new new old */

typedef struct build {
    const char *path;
    void *object;
    size_t (*count)(void);
    const char *(*name)(size_t index);
    pk_status (*open)(size_t index, pki_bench_handle **handle);
    pk_status (*take)(pki_bench_handle *handle, uint64_t iterations, pki_bench_sample *sample);
    void (*close)(pki_bench_handle *handle);
    const char *(*error)(void);
} build;

typedef struct run {
    build builds[SIDES];
    int first; /* the side that goes first */
    double seconds;
    FILE *out;
    regex_t filter;
    bool filtered;
} run;

/* ---- to the parent ---- */

static void send_record(run *l, ab_kind kind, int side, uint32_t number, const char *text)
{
    size_t length = strlen(text);
    ab_record r = {.kind = kind, .side = (uint32_t)side, .number = number};
    r.length = (uint32_t)(length < AB_TEXT_MOST ? length : AB_TEXT_MOST);
    fwrite(&r, sizeof r, 1, l->out);
    fwrite(text, 1, r.length, l->out);
}

static bool refuse(run *l, const char *path, const char *what)
{
    char text[1000];
    snprintf(text, sizeof text, "cannot use %s: %s", path, what);
    send_record(l, AB_SKIP, 0, AB_NO_NUMBER, text);
    return false;
}

/* ---- loading ---- */

static bool bind_to(run *l, build *b)
{
    const struct {
        const char *name, *before; /* what it was called when libpk had the benchmarks */
        void *to;
    } functions[] = {
        {"pk_bench_instance_count_", "pk_bench_list", &b->count},
        {"pk_bench_instance_name_", "pk_bench_list_name", &b->name},
        {"pk_bench_open_", "pk_bench_open", &b->open},
        {"pk_bench_take_", "pk_bench_take", &b->take},
        {"pk_bench_close_", "pk_bench_close", &b->close},
        {"pk_error_message", "", &b->error},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(b->object, functions[i].name);
        found = found ? found : dlsym(b->object, functions[i].before);
        if (!found)
            return refuse(
                l, b->path,
                "it has no benchmarks of pk/bench.h: link it with libpkbench.so, or with the"
                " whole of libpkbench.a and libpk.a");
        memcpy(functions[i].to, &found, sizeof found);
    }
    return true;
}

static bool load_both(run *l, bool namespaces)
{
    for (int i = 0; i < SIDES; i++) {
        build *b = &l->builds[i ? !l->first : l->first];
        b->object = namespaces ? dlmopen(LM_ID_NEWLM, b->path, RTLD_NOW | RTLD_LOCAL)
                               : dlopen(b->path, RTLD_NOW | RTLD_LOCAL);
        if (!b->object)
            return false;
    }
    return true;
}

static bool load(run *l)
{
    if (!load_both(l, true) && !load_both(l, false))
        return refuse(l, l->builds[0].object ? l->builds[1].path : l->builds[0].path, dlerror());
    if (!bind_to(l, &l->builds[0]) || !bind_to(l, &l->builds[1]))
        return false;
    if (l->builds[0].count == l->builds[1].count)
        return refuse(l, l->builds[1].path, "it shares its libpk with the other build");
    return true;
}

/* ---- one benchmark ---- */

typedef struct duel {
    pki_bench_handle *handles[SIDES];
    uint64_t iterations;
    uint32_t number;
} duel;

static bool skip(run *l, const duel *d, int side)
{
    const char *why = l->builds[side].error();
    send_record(l, AB_SKIP, side, d->number, why && *why ? why : "it could not be measured");
    return false;
}

/* The same number of iterations for both, as many as the slower one takes for a batch. */
static bool start(run *l, duel *d, const size_t *indices)
{
    for (int i = 0; i < SIDES; i++) {
        int side = i ? !l->first : l->first;
        pki_bench_sample sample;
        if (l->builds[side].open(indices[side], &d->handles[side]) != PK_OK)
            return skip(l, d, side);
        if (l->builds[side].take(d->handles[side], 0, &sample) != PK_OK)
            return skip(l, d, side);
        if (!d->iterations || sample.iterations < d->iterations)
            d->iterations = sample.iterations;
    }
    return true;
}

static bool batch(run *l, duel *d, int side, bool counts)
{
    pki_bench_sample sample;
    if (l->builds[side].take(d->handles[side], d->iterations, &sample) != PK_OK)
        return skip(l, d, side);
    double n = (double)(sample.iterations ? sample.iterations : 1);
    ab_record r = {.kind = AB_SAMPLE, .side = (uint32_t)side, .number = d->number};
    r.sample = sample.time / n;
    r.cpu_sample = sample.cpu / n;
    if (counts)
        fwrite(&r, sizeof r, 1, l->out);
    return true;
}

/* one other other one */
static bool play_round(run *l, duel *d, bool counts)
{
    int one = l->first;
    return batch(l, d, one, counts) && batch(l, d, !one, counts) && batch(l, d, !one, counts) &&
           batch(l, d, one, counts);
}

static void play(run *l, duel *d, double until)
{
    double begin = ab_now(), settled = begin + SETTLING * (until - begin);
    bool going = play_round(l, d, false);
    while (going && ab_now() < settled)
        going = play_round(l, d, false);
    for (int rounds = 0; going && (rounds < LEAST_ROUNDS || ab_now() < until); rounds++)
        going = play_round(l, d, true);
}

static void measure(run *l, uint32_t number, const size_t *indices)
{
    duel d = {.number = number};
    send_record(l, AB_NAME, 0, number, l->builds[0].name(indices[0]));
    if (start(l, &d, indices))
        play(l, &d, ab_now() + l->seconds);
    for (int side = 0; side < SIDES; side++)
        if (d.handles[side])
            l->builds[side].close(d.handles[side]);
    fflush(l->out);
}

/* ---- all of them ---- */

#define NOT_THERE SIZE_MAX

static size_t find(const build *b, const char *name)
{
    size_t count = b->count();
    for (size_t i = 0; i < count; i++) {
        const char *its_name = b->name(i);
        if (its_name && strcmp(its_name, name) == 0)
            return i;
    }
    return NOT_THERE;
}

static bool is_wanted(run *l, const char *name)
{
    return name && (!l->filtered || regexec(&l->filter, name, 0, NULL, 0) == 0);
}

static void send_unmatched(run *l)
{
    const build *b = &l->builds[1];
    for (size_t i = 0; i < b->count(); i++) {
        const char *name = b->name(i);
        if (is_wanted(l, name) && find(&l->builds[0], name) == NOT_THERE)
            send_record(l, AB_ALONE, 1, 0, name);
    }
}

static void measure_all(run *l)
{
    uint32_t number = 0;
    for (size_t i = 0; i < l->builds[0].count(); i++) {
        const char *name = l->builds[0].name(i);
        size_t other = is_wanted(l, name) ? find(&l->builds[1], name) : NOT_THERE;
        if (other != NOT_THERE)
            measure(l, number++, (const size_t[]){i, other});
        else if (is_wanted(l, name))
            send_record(l, AB_ALONE, 0, 0, name);
    }
    send_unmatched(l);
}

int ab_run_both(int argc, char **argv)
{
    if (argc < 4)
        return complain("bench-ab: %s is for pk itself", AB_BOTH);
    run l = {.builds = {{.path = argv[0]}, {.path = argv[1]}}, .first = argv[2][0] == '1'};
    l.seconds = strtod(argv[3], NULL);
    l.out = fdopen(AB_CHILD_FD, "we");
    if (!l.out)
        return complain("bench-ab: %s is for pk itself", AB_BOTH);
    l.filtered = argc > 4;
    if (l.filtered && regcomp(&l.filter, argv[4], REG_EXTENDED | REG_NOSUB))
        return EXIT_UNUSABLE; /* the parent has tried it */
    if (load(&l))
        measure_all(&l);
    send_record(&l, AB_DONE, 0, 0, "");
    /* Neither build is closed: their threads may still be at it. */
    return fclose(l.out) == 0 ? EXIT_OK : EXIT_UNUSABLE;
}
