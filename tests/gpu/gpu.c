#include "gpu.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pk/pk.h>

static int failures;

void gpu_skip(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("skipped: ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    exit(failures ? 1 : 77); /* what has failed by then is no reason to skip */
}

/* One write of a whole line, so that several programs may append, and a kill leaves no half of it.
 */
static void append(const char *key, const char *text)
{
    const char *path = getenv("PK_GPU_FIGURES");
    FILE *file = path && *path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s\t%s\n", key, text);
    fclose(file);
}

void gpu_figure(const char *key, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    printf("  %-28s %s\n", key, text);
    fflush(stdout);
    append(key, text);
}

static void say_wrong(const char *what, const char *file, int line, const char *format,
                      va_list list)
{
    char details[256], text[512];
    const char *name = strrchr(file, '/');
    vsnprintf(details, sizeof details, format, list);
    snprintf(text, sizeof text, "%s:%d: not so: %s: %s", name ? name + 1 : file, line, what,
             details);
    printf("%s\n", text);
    fflush(stdout);
    append("wrong", text);
}

bool gpu_checked(bool so, const char *what, const char *file, int line, const char *format, ...)
{
    va_list list;
    if (so)
        return true;
    va_start(list, format);
    say_wrong(what, file, line, format, list);
    va_end(list);
    failures++;
    return false;
}

bool gpu_measured(bool so, const char *what, const char *file, int line, const char *format, ...)
{
    va_list list;
    if (so)
        return true;
    va_start(list, format);
    say_wrong(what, file, line, format, list);
    va_end(list);
    failures += getenv("PK_GPU_MOCK") == NULL;
    return false;
}

int gpu_result(void)
{
    return failures ? 1 : 0;
}

const char *gpu_start(const char *backends)
{
    static char path[512];
    static unsigned sessions;
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/pk-gpu-%d-%u.json", folder ? folder : "/tmp", (int)getpid(),
             sessions++);
    if (pk_start(pk_options(.trace_path = path, .backends = backends)) != PK_OK) {
        printf("pk_start: %s\n", pk_error_message());
        exit(1);
    }
    return path;
}

const char *gpu_reason(const char *backend)
{
    static pk_backend_info info;
    info.size = sizeof info;
    return pk_backend_status(backend, &info) == PK_OK ? info.reason : "no such backend";
}

void gpu_need(const char *backend)
{
    pk_backend_info info = {.size = sizeof info};
    if (pk_backend_status(backend, &info) != PK_OK || !info.live)
        gpu_skip("%s is off: %s", backend, info.reason);
}

uint64_t gpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void gpu_sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* ---- numbers ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double gpu_quantile(double *values, size_t count, double q)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, ascending);
    size_t i = (size_t)ceil(q * (double)count);
    return values[i > 0 ? i - 1 : 0];
}

/* Slopes between points half the distance apart: as good as between all, and few enough. */
gpu_line gpu_fit(const double *x, const double *y, size_t count)
{
    size_t half = count / 2;
    gpu_line line = {1, 0, count ? x[0] : 0};
    double *scratch = calloc(count + 1, sizeof *scratch);
    if (!scratch)
        abort();
    for (size_t i = 0; i < half; i++)
        scratch[i] = (y[i + half] - y[i]) / (x[i + half] - x[i]);
    if (half)
        line.slope = gpu_median(scratch, half);
    for (size_t i = 0; i < count; i++)
        scratch[i] = y[i] - line.slope * (x[i] - line.x0);
    if (count)
        line.offset = gpu_median(scratch, count);
    free(scratch);
    return line;
}

/* ---- traces ---- */

/* What follows "key": in the line; NULL if it is not there. perfkit writes one event per line, and
 * escapes quotes in names. */
static const char *field(const char *line, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(line, quoted);
    return at ? at + strlen(quoted) : NULL;
}

static double number(const char *line, const char *key)
{
    const char *at = field(line, key);
    return at ? strtod(at, NULL) : 0;
}

static void text(const char *line, const char *key, char *to, size_t size)
{
    const char *at = field(line, key);
    size_t n = at && *at == '"' ? strcspn(at + 1, "\"") : 0;
    snprintf(to, size, "%.*s", (int)n, n ? at + 1 : "");
}

/* "12.345" microseconds, exactly. */
static double ns_of(const char *line, const char *key)
{
    return round(number(line, key) * 1e3);
}

static void read_event(gpu_event *e, const char *line)
{
    text(line, "name", e->name, sizeof e->name);
    text(line, "cat", e->category, sizeof e->category);
    text(line, "region", e->region, sizeof e->region);
    e->start = ns_of(line, "ts");
    e->end = e->start + ns_of(line, "dur");
    e->uncertainty = number(line, "uncertainty_ns");
    const char *correlation = field(line, "correlation");
    e->correlation = correlation ? strtoull(correlation, NULL, 10) : 0;
    e->pid = (uint64_t)number(line, "pid");
    e->tid = (uint64_t)number(line, "tid");
}

static void add(gpu_trace *t, size_t *room, const char *line)
{
    if (t->count == *room) {
        *room = *room ? 2 * *room : 1024;
        t->events = realloc(t->events, *room * sizeof *t->events);
        if (!t->events)
            abort();
    }
    read_event(&t->events[t->count++], line);
}

size_t gpu_count_lines(const char *path, const char *containing)
{
    size_t count = 0, size = 0;
    char *line = NULL;
    FILE *file = fopen(path, "r");
    while (file && getline(&line, &size, file) > 0)
        count += strstr(line, containing) != NULL;
    free(line);
    if (file)
        fclose(file);
    return count;
}

gpu_trace gpu_read_trace(const char *path)
{
    gpu_trace trace = {.events = NULL};
    size_t room = 0, size = 0;
    char *line = NULL;
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s cannot be read\n", path);
        exit(1);
    }
    while (getline(&line, &size, file) > 0) {
        if (strncmp(line, "{\"ph\":\"X\"", 9) == 0)
            add(&trace, &room, line);
        else if (field(line, "base_monotonic_ns"))
            trace.base_monotonic = number(line, "base_monotonic_ns");
    }
    free(line);
    fclose(file);
    return trace;
}

bool gpu_is(const gpu_event *e, const char *category, const char *name)
{
    return (!category || strcmp(e->category, category) == 0) &&
           (!name || strcmp(e->name, name) == 0);
}

size_t gpu_count(const gpu_trace *t, const char *category, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        count += gpu_is(&t->events[i], category, name);
    return count;
}
