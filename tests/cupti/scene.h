/* tests/cupti/scene.h - a session with the mock of libcupti, and what its trace says. */
#ifndef TESTS_CUPTI_H
#define TESTS_CUPTI_H

#include "../unit/document.h"
#include "../unit/session.h"
#include "../unit/valgrind.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "../fake/fake_cupti.h"

static fake_cupti_table *fake;

#define LAUNCH CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000
#define RUNTIME .domain = CUPTI_CB_DOMAIN_RUNTIME_API
#define DRIVER .domain = CUPTI_CB_DOMAIN_DRIVER_API
#define A_KERNEL .device = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
#define play(...) fake->play(&(fake_call){__VA_ARGS__})
#define launch(...) play(RUNTIME, .id = LAUNCH, A_KERNEL, __VA_ARGS__)

/* The path of the mock is the program's first argument. */
static inline void open_fake(const char *path)
{
    setenv("PK_CUPTI_LIBRARY", path, 1);
    setenv("PK_CUDA_LIBRARY", path, 1);
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    fake_cupti_table *(*table)(void) = NULL;
    void *symbol = library ? dlsym(library, "fake_cupti") : NULL;
    memcpy(&table, &symbol, sizeof symbol);
    if (!table)
        abort();
    fake = table();
}

static inline int reset_fake(void **state)
{
    fake->reset();
    unsetenv("PK_CUPTI_STEPS");
    return enter_folder(state);
}

static inline int stop_and_leave(void **state)
{
    pk_stop();
    if (fake->misuses)
        fail_msg("%u times against CUPTI's documentation: %s", fake->misuses, fake->misuse);
    return leave_folder(state);
}

#define start_cupti(...) start_tuned("", __VA_ARGS__)

/* settings: of pk_options.tuning, each with a comma before it. */
#define start_tuned(settings, ...)                                                                 \
    assert_int_equal(pk_start(pk_options(.trace_path = "run.json", .backends = "cupti",            \
                                         .tuning = "flush_ms=3600000" settings, __VA_ARGS__)),     \
                     PK_OK)

static inline json_t *stop_and_load(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    return load_document("run.json");
}

/* Event number n of that category and name, either may be NULL; NULL: there are not so many.
 * *count, if it is not NULL: how many there are. */
static inline const json_t *look_for(const json_t *doc, const char *cat, const char *name, size_t n,
                                     size_t *count)
{
    size_t i, seen = 0;
    json_t *event;
    const json_t *found = NULL;
    json_array_foreach(member(doc, "traceEvents"), i, event)
    {
        const char *c = json_string_value(json_object_get(event, "cat"));
        const char *e = json_string_value(member(event, "name"));
        bool same = (!cat || (c && strcmp(c, cat) == 0)) && (!name || strcmp(e, name) == 0);
        if (same && strcmp(json_string_value(member(event, "ph")), "M") != 0 && seen++ == n)
            found = event;
    }
    if (count)
        *count = seen;
    return found;
}

static inline const json_t *nth_event(const json_t *doc, const char *cat, const char *name,
                                      size_t n)
{
    return look_for(doc, cat, name, n, NULL);
}

static inline size_t count_of_cat(const json_t *doc, const char *cat, const char *name)
{
    size_t count;
    look_for(doc, cat, name, 0, &count);
    return count;
}

static inline const json_t *the_event(const json_t *doc, const char *cat, const char *name)
{
    const json_t *event = nth_event(doc, cat, name, 0);
    if (!event || nth_event(doc, cat, name, 1))
        fail_msg("%zu events of %s %s", count_of_cat(doc, cat, name), cat ? cat : "",
                 name ? name : "");
    return event;
}

static inline const json_t *arg(const json_t *event, const char *key)
{
    return json_object_get(member(event, "args"), key);
}

static inline int64_t number(const json_t *event, const char *key)
{
    if (!json_is_integer(arg(event, key)))
        fail_msg("no number %s", key);
    return json_integer_value(arg(event, key));
}

static inline const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(arg(event, key));
    return text ? text : "";
}

static inline double ts_of(const json_t *event)
{
    return json_number_value(member(event, "ts"));
}

static inline double end_of(const json_t *event)
{
    return ts_of(event) + json_number_value(member(event, "dur"));
}

/* What the end of the trace says of the records. */
static inline int64_t fate(const json_t *doc, const char *what)
{
    return json_integer_value(member(member(doc, "cupti"), what));
}

static inline pk_backend_info status(void)
{
    pk_backend_info info = {.size = sizeof info};
    assert_int_equal(pk_backend_status("cupti", &info), PK_OK);
    return info;
}

#endif
