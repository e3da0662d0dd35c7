#include "bench/registry.h"

#include "base/compiler.h"
#include "bench/bench.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pk_bench_entry *first, *last;
static pk_bench_entry *expanded; /* the last one whose instances exist */
static pki_bench_instance **instances;
static size_t instance_count, family_count;

/* ---- registration ---- */

void pk_bench_register_(pk_bench_entry *entry)
{
    pthread_mutex_lock(&lock);
    if (last)
        last->next = entry;
    else
        first = entry;
    last = entry;
    pthread_mutex_unlock(&lock);
}

void pk_bench_attach_(pk_bench_entry *entry, pk_bench_axis *axis)
{
    pk_bench_axis **end = &entry->axes;
    while (*end)
        end = &(*end)->next;
    *end = axis;
}

pk_status pk_bench_add(const char *name, void (*body)(pk_bench_run *),
                       const struct pk_bench_options *options)
{
    struct pk_bench_options whole;
    if (!name || !*name || !body)
        return pki_bench_fail(PK_EINVAL, "a benchmark needs a name and a body");
    pk_status status = pki_bench_options_fill(&whole, options);
    if (status != PK_OK)
        return status;
    pk_bench_entry *entry = calloc(1, sizeof *entry);
    struct pk_bench_options *kept = calloc(1, sizeof *kept);
    char *copied = strdup(name);
    if (!entry || !kept || !copied) {
        free(entry);
        free(kept);
        free(copied);
        return pki_bench_fail(PK_ENOMEM, "no memory for one more benchmark");
    }
    if (options)
        memcpy(kept, options, PKI_MIN((size_t)options->size, sizeof *kept));
    kept->size = sizeof *kept;
    *entry = (pk_bench_entry){
        .name = copied, .body = body, .compiler = "", .flags = "", .optimized = 1, .fixed = kept};
    pk_bench_register_(entry);
    return PK_OK;
}

/* ---- axes ---- */

typedef struct values {
    const pk_bench_axis *axis;
    int64_t *at;
    size_t count;
} values;

static bool put(values *v, int64_t value)
{
    if (v->count < PKI_BENCH_VALUES_MOST)
        v->at[v->count] = value;
    return ++v->count <= PKI_BENCH_VALUES_MOST;
}

/* from, from * by, ... below to, then to; or from, from + by, ... up to it. */
static bool put_range(values *v, bool times, int64_t from, int64_t to, int64_t by)
{
    int64_t value = from;
    if (by < 1 + times || to < from || (times && from < 1))
        return false;
    for (bool over = false; !over && (times ? value < to : value <= to);) {
        if (!put(v, value))
            return false;
        over = times ? __builtin_mul_overflow(value, by, &value)
                     : __builtin_add_overflow(value, by, &value);
    }
    return !times || put(v, to);
}

static bool put_axis(values *v)
{
    const pk_bench_axis *a = v->axis;
    if (a->kind == PK_BENCH_AXIS_TIMES_ || a->kind == PK_BENCH_AXIS_STEPS_) {
        if (a->count != 3)
            return false;
        return put_range(v, a->kind == PK_BENCH_AXIS_TIMES_, a->values[0], a->values[1],
                         a->values[2]);
    }
    for (uint32_t i = 0; i < a->count; i++) {
        bool fits = a->kind != PK_BENCH_AXIS_THREADS_ ||
                    (a->values[i] >= 1 && a->values[i] <= PKI_BENCH_THREADS_MOST);
        if (!fits || !put(v, a->values[i]))
            return false;
    }
    return true;
}

/* ---- combinations ---- */

static char *name_of(const pk_bench_entry *entry, const values *axes, size_t count,
                     const size_t *at)
{
    char *name = NULL;
    size_t size;
    FILE *out = open_memstream(&name, &size);
    if (!out)
        return NULL;
    fputs(entry->name, out);
    for (size_t i = 0; i < count; i++) {
        const char *key = axes[i].axis->key ? axes[i].axis->key : "";
        fprintf(out, "/%s%s%" PRId64, key, *key ? ":" : "", axes[i].at[at[i]]);
    }
    bool wrong = ferror(out) != 0;
    wrong |= fclose(out) != 0;
    if (wrong) {
        free(name);
        return NULL;
    }
    return name;
}

static void set_parameters(pki_bench_instance *made, const values *axes, size_t count,
                           const size_t *at)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value = axes[i].at[at[i]];
        if (axes[i].axis->kind == PK_BENCH_AXIS_THREADS_) {
            made->threads = (uint32_t)value;
            continue;
        }
        made->arguments.keys[made->arguments.count] = axes[i].axis->key ? axes[i].axis->key : "";
        made->arguments.values[made->arguments.count++] = value;
    }
}

static bool add_instance(const pk_bench_entry *entry, const values *axes, size_t count,
                         const size_t *at, size_t member)
{
    pki_bench_instance **grown = realloc(instances, (instance_count + 1) * sizeof *grown);
    if (grown)
        instances = grown;
    pki_bench_instance *made = grown ? calloc(1, sizeof *made) : NULL;
    char *name = made ? name_of(entry, axes, count, at) : NULL;
    if (!name) {
        free(made);
        return false;
    }
    made->entry = entry;
    made->family = family_count;
    made->member = member;
    made->name = name;
    set_parameters(made, axes, count, at);
    instances[instance_count++] = made;
    return true;
}

/* The last axis turns fastest. */
static bool next_combination(const values *axes, size_t count, size_t *at)
{
    for (size_t i = count; i-- > 0;) {
        if (++at[i] < axes[i].count)
            return true;
        at[i] = 0;
    }
    return false;
}

static void forget(size_t from)
{
    while (instance_count > from) {
        pki_bench_instance *gone = instances[--instance_count];
        free(gone->name);
        free(gone);
    }
}

static pk_status combine(const pk_bench_entry *entry, const values *axes, size_t count)
{
    size_t at[PKI_BENCH_AXES] = {0}, before = instance_count, member = 0;
    do {
        if (!add_instance(entry, axes, count, at, member++)) {
            forget(before);
            return pki_bench_fail(PK_ENOMEM, "no memory to list the benchmarks");
        }
    } while (next_combination(axes, count, at));
    family_count++;
    return PK_OK;
}

static pk_status fill_axes(const pk_bench_entry *entry, values *axes, size_t *count)
{
    size_t all = 1;
    for (const pk_bench_axis *a = entry->axes; a; a = a->next) {
        if (*count == PKI_BENCH_AXES)
            return pki_bench_fail(PK_EINVAL, "benchmark \"%s\": more than %d parameters",
                                  entry->name, PKI_BENCH_AXES);
        values *v = &axes[(*count)++];
        *v = (values){a, calloc(PKI_BENCH_VALUES_MOST, sizeof *v->at), 0};
        if (!v->at)
            return pki_bench_fail(PK_ENOMEM, "no memory to list the benchmarks");
        if (!put_axis(v) || v->count == 0)
            return pki_bench_fail(PK_EINVAL,
                                  "benchmark \"%s\": the values of parameter \"%s\" make no"
                                  " list (too many, or from, to and by do not fit)",
                                  entry->name, a->key ? a->key : "");
        all *= v->count;
        if (all > PKI_BENCH_COMBINATIONS_MOST)
            return pki_bench_fail(PK_EINVAL,
                                  "benchmark \"%s\": more than %d combinations of parameters",
                                  entry->name, PKI_BENCH_COMBINATIONS_MOST);
    }
    return PK_OK;
}

static pk_status expand(const pk_bench_entry *entry)
{
    values axes[PKI_BENCH_AXES];
    size_t count = 0;
    pk_status status = fill_axes(entry, axes, &count);
    if (status == PK_OK)
        status = combine(entry, axes, count);
    for (size_t i = 0; i < count; i++)
        free(axes[i].at);
    return status;
}

/* ---- the list ---- */

pk_status pki_bench_instances(size_t *count)
{
    pk_status status = PK_OK;
    pthread_mutex_lock(&lock);
    for (pk_bench_entry *e = expanded ? expanded->next : first; e && status == PK_OK; e = e->next) {
        status = expand(e);
        expanded = status == PK_OK ? e : expanded;
    }
    *count = instance_count;
    pthread_mutex_unlock(&lock);
    return status;
}

const pki_bench_instance *pki_bench_instance_at(size_t index)
{
    pthread_mutex_lock(&lock);
    const pki_bench_instance *found = index < instance_count ? instances[index] : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

size_t pk_bench_instance_count_(void)
{
    size_t count;
    pki_bench_instances(&count);
    return count;
}

const char *pk_bench_instance_name_(size_t index)
{
    size_t count;
    pki_bench_instances(&count);
    const pki_bench_instance *found = pki_bench_instance_at(index);
    return found ? found->name : NULL;
}

/* ---- an instance's case ---- */

static void override(struct pk_bench_options *o, const struct pk_bench_options *over)
{
#define OVER(field) o->field = over->field > 0 ? over->field : o->field
    OVER(precision);
    OVER(confidence);
    OVER(min_time);
    OVER(max_time);
    OVER(min_samples);
    OVER(max_samples);
    OVER(sample_time);
    OVER(iterations);
    OVER(max_warmup);
    OVER(seed);
    OVER(hardware);
    OVER(allocations);
    OVER(unqueued);
#undef OVER
    if (over->cold) {
        o->cold = 1;
        o->iterations = 0;
    }
    /* One of a pair from the command line: the benchmark's other one gives way. */
    if (o->max_time && o->max_time < o->min_time)
        *(over->max_time ? &o->min_time : &o->max_time) =
            over->max_time ? o->max_time : o->min_time;
    if (o->max_samples && o->max_samples < o->min_samples)
        *(over->max_samples ? &o->min_samples : &o->max_samples) =
            over->max_samples ? o->max_samples : o->min_samples;
}

pk_status pki_bench_instance_case(const pki_bench_instance *instance,
                                  const pki_bench_engine *engine,
                                  const struct pk_bench_options *over, pki_bench_case *c)
{
    struct pk_bench_options given, whole;
    memset(&given, 0, sizeof given);
    if (instance->entry->fixed)
        given = *instance->entry->fixed;
    given.size = sizeof given;
    if (instance->entry->options)
        instance->entry->options(&given);
    if (instance->threads)
        given.threads = instance->threads;
    if (over)
        override(&given, over);
    pk_status status = pki_bench_options_fill(&whole, &given);
    if (status != PK_OK)
        return status;
    pki_bench_case_init(c, engine, instance->name, &whole);
    c->body = instance->entry->body;
    c->arguments = instance->arguments;
    return PK_OK;
}
