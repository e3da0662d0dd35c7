/* gpu.h - what the tests on a GPU share: saying why not, figures for docs/gpu-results.md, checks,
 * and traces read line by line.
 */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line, and exit 77; 1 if something has failed by then. */
void gpu_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A figure: printed, and appended as "key<TAB>text" to the file that PK_GPU_FIGURES names. */
void gpu_figure(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Said if it is not so, and appended to that file, too; gpu_result() is what main returns then. The
 * tests go on: who has come as far as to a GPU wants to know all that is wrong. */
#define gpu_check(condition, ...)                                                                  \
    gpu_checked((condition), #condition, __FILE__, __LINE__, __VA_ARGS__)
bool gpu_checked(bool so, const char *what, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for what takes time: on a mock (PK_GPU_MOCK) it is said and does not count, since that
 * has no times of its own, and shares its processors with everybody. */
#define gpu_bar(condition, ...)                                                                    \
    gpu_measured((condition), #condition, __FILE__, __LINE__, __VA_ARGS__)
bool gpu_measured(bool so, const char *what, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int gpu_result(void);

/* Starts a session with a trace in a fresh file under $TMPDIR, whose path it returns; backends as
 * in pk_options. Ends the program if perfkit does not start. */
const char *gpu_start(const char *backends);

/* The backend's line. Skips the test if it is not live. */
void gpu_need(const char *backend);
const char *gpu_reason(const char *backend);

uint64_t gpu_now(void); /* CLOCK_MONOTONIC, ns */
void gpu_sleep_ms(unsigned ms);

/* ---- numbers; they sort what they are given ---- */

double gpu_quantile(double *values, size_t count, double q);
#define gpu_median(values, count) gpu_quantile((values), (count), 0.5)

/* The line through the points that is best in the sense of Theil and Sen: medians of slopes. */
typedef struct gpu_line {
    double slope, offset; /* y = slope * (x - x0) + offset */
    double x0;
} gpu_line;
gpu_line gpu_fit(const double *x, const double *y, size_t count);
static inline double gpu_at(gpu_line l, double x)
{
    return l.slope * (x - l.x0) + l.offset;
}

/* ---- traces ---- */

typedef struct gpu_event {
    char name[64], category[32], region[64];
    double start, end;  /* ns since the session's start */
    double uncertainty; /* ns; of a span's ends */
    uint64_t correlation;
    uint64_t pid, tid;
} gpu_event;

typedef struct gpu_trace {
    gpu_event *events; /* those with a duration, in the order of the file */
    size_t count;
    double base_monotonic; /* of ns 0 */
} gpu_trace;

/* Lines of the file that contain this. */
size_t gpu_count_lines(const char *path, const char *containing);

/* The file stays: run.sh removes those of a test that was well. */
gpu_trace gpu_read_trace(const char *path);
bool gpu_is(const gpu_event *event, const char *category, const char *name); /* NULL: any */
size_t gpu_count(const gpu_trace *trace, const char *category, const char *name);

#endif
