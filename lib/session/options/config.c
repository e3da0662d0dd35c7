#include "session/options/config.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/tuning.h"
#include "history/history.h"
#include "out/gz.h"
#include "session/captures/capture_file.h"
#include "session/control.h"
#include "session/report/run.h"

/* ---- options that are text ---- */

/* What an option or, without one, its variable says, and which of the two it is. An empty option
 * asks for the default whatever the variable says. */
static pki_config_text option_text(const char *given, const char *field, const char *variable)
{
    if (given)
        return (pki_config_text){*given ? given : NULL, field};
    return (pki_config_text){pki_variable(variable), variable};
}

/* ---- .tuning, PK_TUNING and the variables of its keys ---- */

typedef struct tuning {
    char code_text[PKI_TUNING_MOST], environment_text[PKI_TUNING_MOST];
    const char *code[PKI_TUNING_COUNT], *environment[PKI_TUNING_COUNT];
    bool override; /* the environment before the code */
} tuning;

static pk_status read_settings(const char *text, const char *source, char copy[PKI_TUNING_MOST],
                               const char *values[PKI_TUNING_COUNT])
{
    char why[160];
    if ((size_t)snprintf(copy, PKI_TUNING_MOST, "%s", text ? text : "") >= PKI_TUNING_MOST)
        return pki_fail(PK_EINVAL, "%s is longer than %d bytes", source, PKI_TUNING_MOST - 1);
    if (!pki_tuning_split(copy, values, why, sizeof why))
        return pki_fail(PK_EINVAL, "%s: %s", source, why);
    return PK_OK;
}

static pk_status read_tuning(tuning *t, const pk_options *o)
{
    pk_status s = read_settings(o->tuning, "tuning", t->code_text, t->code);
    t->override = pki_operator_overrides();
    return s ? s
             : read_settings(pki_variable("PK_TUNING"), "PK_TUNING", t->environment_text,
                             t->environment);
}

static pki_config_text environment_of(const tuning *t, pki_tuning_key key)
{
    const pki_tuning *row = &pki_tunings[key];
    const char *variable = pki_variable(row->variable), *all = t->environment[key];
    if (variable || !all || !*all)
        return (pki_config_text){variable, row->variable};
    return (pki_config_text){all, row->key};
}

/* What the code says, else the key's variable, else PK_TUNING. A key that is set to nothing asks
 * for the default whatever the others say. */
static pki_config_text tuned(const tuning *t, pki_tuning_key key)
{
    const char *code = t->code[key];
    const pki_config_text environment = environment_of(t, key);
    if (!code || (t->override && environment.text))
        return environment;
    return (pki_config_text){*code ? code : NULL, pki_tunings[key].key};
}

/* ---- paths ---- */

/* A path with its %-fields filled in; "" without a text. PK_EINVAL names what is wrong with it. */
static pk_status pki_config_path(pki_config_text pattern, const pki_world *world,
                                 char path[PATH_MAX])
{
    char bad;
    const pki_path_fields fields = {world->rank, (int)world->pid, world->host};
    path[0] = 0;
    if (!pattern.text || pki_path_expand(path, PATH_MAX, pattern.text, &fields, &bad))
        return PK_OK;
    if (bad == '%')
        return pki_fail(PK_EINVAL, "%s: a %% at its end (%%%% is one that stays)", pattern.source);
    if (bad)
        return pki_fail(PK_EINVAL, "%s: %%%c is none of %%r, %%p, %%h and %%%%", pattern.source,
                        bad);
    return pki_fail(PK_EINVAL, "%s is longer than a path can be", pattern.source);
}

/* ---- log, log_user, log_level, and PK_LOG ---- */

static pk_status read_level(const pk_options *o, pk_log_level *level)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug"};
    const char *text = o->log_level ? NULL : pki_variable("PK_LOG_LEVEL");
    *level = (pk_log_level)o->log_level;
    if (o->log_level > PK_LOG_DEBUG)
        return pki_fail(PK_EINVAL, "log_level %u is no pk_log_level", o->log_level);
    if (!text)
        return PK_OK;
    for (unsigned i = PK_LOG_ERROR; i <= PK_LOG_DEBUG; i++)
        if (strcmp(text, names[i]) == 0) {
            *level = (pk_log_level)i;
            return PK_OK;
        }
    return pki_fail(PK_EINVAL, "PK_LOG_LEVEL=%.40s is none of error, warning, info and debug",
                    text);
}

/* First of all, so that what is wrong with the others is logged. */
static pk_status pki_config_log(const pk_options *o)
{
    pk_log_level level;
    const char *where = o->log ? NULL : pki_variable("PK_LOG");
    bool to_stderr = where && strcmp(where, "stderr") == 0;
    pki_log_to(to_stderr ? pki_log_to_stderr : o->log, o->log_user, PK_LOG_DEFAULT);
    if (where && !to_stderr && strcmp(where, "none") != 0)
        return pki_fail(PK_EINVAL, "PK_LOG=%.40s is neither stderr nor none", where);
    pk_status status = read_level(o, &level);
    if (!status)
        pki_log_to(to_stderr ? pki_log_to_stderr : o->log, o->log_user, level);
    return status;
}

/* ---- what of a configuration is about the history and its captures ---- */

#define STEPS_DEFAULT 32u /* where there are captures */

static pk_status read_clauses(pki_config *c, pki_config_text capture)
{
    char why[160];
    if (!capture.text)
        return PK_OK;
    if (!pki_clauses_parse(capture.text, &c->capture, why, sizeof why))
        return pki_fail(PK_EINVAL, "%s: %s", capture.source, why);
    uint64_t longest = pki_clauses_longest(&c->capture),
             wanted = PKI_MAX(longest + 8, STEPS_DEFAULT);
    if (c->history_steps && c->history_steps < longest)
        return pki_fail(PK_EINVAL, "%s: a capture of %llu steps, and history_steps is %u",
                        capture.source, (unsigned long long)longest, c->history_steps);
    if (!c->history_steps)
        c->history_steps = (uint32_t)wanted;
    return PK_OK;
}

static pk_status read_pattern(pki_config *c, pki_config_text path)
{
    char kept[PATH_MAX], bad;
    const pki_path_fields fields = {c->world.rank, (int)c->world.pid, c->world.host};
    if (!pki_capture_path_prepare(path.text, kept) ||
        (!pki_path_expand(c->capture_path, PATH_MAX, kept, &fields, &bad) && !bad))
        return pki_fail(PK_EINVAL, "%s is longer than a path can be", path.source);
    if (!pki_path_expand(c->capture_path, PATH_MAX, kept, &fields, &bad))
        return pki_fail(PK_EINVAL, "%s: %%%c is none of %%s, %%r, %%p, %%h and %%%%", path.source,
                        bad);
    if (!pki_capture_path_is_one(c->capture_path))
        return pki_fail(PK_EINVAL, "%s has no %%s: each capture would replace the one before",
                        path.source);
    return PK_OK;
}

/* With a trace all that is kept is in it, too. */
static bool name_history(pki_config *c)
{
    return c->trace[0] || pki_capture_path_expand(c->capture_path, "history", c->history);
}

/* A trace shows all steps, and with a history alone nobody says which: CUPTI records all the time.
 * Where only captures are kept, what it would record otherwise is thrown away. */
static void read_kernels(pki_config *c)
{
    pki_clauses *k = &c->capture;
    bool any =
        k->slow != 0 || k->range_count || k->every || k->cycle.active || k->request || k->straggler;
    bool unsaid = k->kernels == PKI_KERNELS_UNSAID;
    c->cupti_armed =
        !c->cupti_window && (k->kernels == PKI_KERNELS_ARMED || (unsaid && any && !c->trace[0]));
    uint64_t room = c->history_steps - PKI_MIN(c->history_steps, PKI_CAPTURE_BEFORE + 1);
    k->behind = PKI_MIN(k->behind, room);
}

/* Behind all numbers and paths. PK_EINVAL names the option and what is wrong with it. */
static pk_status pki_config_captures(pki_config *c, const pk_options *o)
{
    const pki_config_text capture = option_text(o->capture, "capture", "PK_CAPTURE");
    const pki_config_text path = option_text(o->capture_path, "capture_path", "PK_CAPTURE_PATH");
    const pki_config_text usual = {"run-%r-%s.json", "capture_path"};
    pk_status s = read_clauses(c, capture);
    if (s || !c->history_steps)
        return s;
    read_kernels(c);
    if (!path.text && c->trace[0] && !pki_capture_path_derive(c->trace, c->capture_path))
        return pki_fail(PK_EINVAL, "trace_path is longer than a path can be");
    if (path.text || !c->trace[0])
        s = read_pattern(c, path.text ? path : usual);
    c->capture_compressed = pki_ends_with(c->capture_path, ".gz");
    if (!s && c->capture_compressed && !pki_gz_available())
        return pki_fail(PK_ENOTSUP, "%s %s: this build has no zlib", path.source, c->capture_path);
    if (!s && !name_history(c))
        return pki_fail(PK_EINVAL, "%s is longer than a path can be", path.source);
    return s;
}

/* ---- who empties the rings, and where ---- */

static bool read_processor(const char **at, unsigned long *number)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *number = strtoul(*at, &end, 10);
    *at = end;
    return *number < CPU_SETSIZE;
}

/* "3" or "0-3" */
static bool read_range(const char **at, cpu_set_t *set)
{
    unsigned long first, last;
    if (!read_processor(at, &first))
        return false;
    last = first;
    if (**at == '-') {
        (*at)++;
        if (!read_processor(at, &last) || last < first)
            return false;
    }
    for (unsigned long i = first; i <= last; i++)
        CPU_SET(i, set);
    return true;
}

static bool read_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    for (const char *at = text; read_range(&at, set); at++)
        if (*at != ',')
            return *at == '\0';
    return false;
}

#define OVERHEAD_MOST 0.5

/* "0.01", in every locale: digits, then perhaps a point and digits. */
static bool read_share(const char *text, double *share)
{
    double digit = 1;
    *share = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        *share = *share * 10 + (*text - '0');
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9'; text++)
            *share += (*text - '0') * (digit /= 10);
    return *text == '\0';
}

static pk_status read_overhead(pki_config *c, double given)
{
    const char *text = given != 0 ? NULL : pki_variable("PK_OVERHEAD_MAX");
    const char *source = text ? "PK_OVERHEAD_MAX" : "overhead_max";
    c->overhead_max = given;
    if (text && !read_share(text, &c->overhead_max))
        return pki_fail(PK_EINVAL, "%s=%.60s is no number such as 0.01", source, text);
    if (!(c->overhead_max >= 0 && c->overhead_max <= OVERHEAD_MOST))
        return pki_fail(PK_EINVAL, "%s is a share of the CPU time, and has to be from 0 to 0.5",
                        source);
    return PK_OK;
}

/* PK_EINVAL names the option and what is wrong with it. */
static pk_status pki_config_collector(pki_config *c, const pk_options *o, const tuning *t)
{
    const pki_config_text where = tuned(t, PKI_TUNING_COLLECTOR_CPUS);
    c->collector_placed = where.text != NULL;
    if (where.text && !read_list(where.text, &c->collector_cpus))
        return pki_fail(PK_EINVAL, "%s: %.60s is no list of processors, as 0-3,8", where.source,
                        where.text);
    return read_overhead(c, o->overhead_max);
}

/* ---- goodput_path, costs ---- */

static pk_status read_costs(pki_config *c, const pk_options *o)
{
    const pki_config_text costs = option_text(o->costs, "costs", "PK_COSTS");
    const struct {
        const char *name;
        bool *wanted;
    } all[] = {{"io", &c->costs_io},
               {"energy", &c->costs_energy},
               {"memory", &c->costs_memory},
               {"hardware", &c->costs_hardware},
               {"software", &c->costs_software},
               {"topdown", &c->costs_topdown}};
    for (const char *p = costs.text; p && *p;) {
        size_t n = strcspn(p, ","), i = 0;
        while (i < PKI_COUNT_OF(all) && (strlen(all[i].name) != n || memcmp(p, all[i].name, n)))
            i++;
        if (i == PKI_COUNT_OF(all))
            return pki_fail(PK_EINVAL,
                            "%s: '%.*s' is not io, energy, memory, hardware, software or topdown",
                            costs.source, (int)(n < 40 ? n : 40), p);
        *all[i].wanted = true;
        p += n + (p[n] == ',');
    }
    return PK_OK;
}

/* Has each rank a path of its own? (%%r is no %r.) */
static bool has_rank(pki_config_text path, const pki_config *c)
{
    pki_world other = c->world;
    char theirs[PATH_MAX];
    other.rank++;
    return pki_config_path(path, &other, theirs) == PK_OK && strcmp(theirs, c->goodput) != 0;
}

/* Once the world and the other paths are known. */
static pk_status pki_config_goodput(pki_config *c, const pk_options *o)
{
    const pki_config_text path = option_text(o->goodput_path, "goodput_path", "PK_GOODPUT_PATH");
    const char *const others[] = {c->trace, c->report, c->arena, c->windows, c->metrics};
    pk_status s = pki_config_path(path, &c->world, c->goodput);
    c->goodput_of_each = !s && has_rank(path, c);
    for (size_t i = 0; !s && c->goodput[0] && i < sizeof others / sizeof *others; i++)
        if (strcmp(c->goodput, others[i]) == 0)
            s = pki_fail(PK_EINVAL, "%s %s: another file of this session has the same", path.source,
                         c->goodput);
    return s ? s : read_costs(c, o);
}

/* ---- pk_options and the environment, checked and resolved ---- */

#define SMALLEST_OPTIONS offsetof(pk_options, report_path) /* size and the field behind it */
#define LARGEST_OPTIONS 65536

/* A number with its bounds; 0 and unset mean the default. */
typedef struct number {
    const char *field, *variable;
    uint64_t least, most, otherwise;
    bool power_of_two;
} number;

static bool parse(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9')
        return false;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    end += shift != 0;
    if (errno || *end || n > UINT64_MAX >> shift)
        return false;
    *value = (uint64_t)n << shift;
    return true;
}

/* A text's, if there is one. 0 is the default. */
static pk_status read_within(const number *n, pki_config_text from, uint64_t *value)
{
    if (from.text && !parse(from.text, value))
        return pki_fail(PK_EINVAL, "%s=%.60s is not a number (digits, then perhaps K, M or G)",
                        from.source, from.text);
    if (*value == 0) {
        *value = n->otherwise;
        return PK_OK;
    }
    if (*value < n->least || *value > n->most)
        return pki_fail(PK_EINVAL, "%s is %llu, and has to be from %llu to %llu", from.source,
                        (unsigned long long)*value, (unsigned long long)n->least,
                        (unsigned long long)n->most);
    if (n->power_of_two && (*value & (*value - 1)))
        return pki_fail(PK_EINVAL, "%s is %llu, and has to be a power of two", from.source,
                        (unsigned long long)*value);
    return PK_OK;
}

static pk_status read_number(const number *n, uint64_t given, uint64_t *value)
{
    const char *text = given ? NULL : pki_variable(n->variable);
    *value = given;
    return read_within(n, (pki_config_text){text, text ? n->variable : n->field}, value);
}

static pk_status read_small(const number *n, uint32_t given, uint32_t *value)
{
    uint64_t wide;
    pk_status status = read_number(n, given, &wide);
    *value = (uint32_t)wide;
    return status;
}

static pk_status tuned_number(const tuning *t, pki_tuning_key key, uint64_t *value)
{
    const pki_tuning *row = &pki_tunings[key];
    const number n = {row->key,  row->variable,  row->least,
                      row->most, row->otherwise, row->power_of_two};
    *value = 0;
    return read_within(&n, tuned(t, key), value);
}

static pk_status tuned_small(const tuning *t, pki_tuning_key key, uint32_t *value)
{
    uint64_t wide;
    pk_status status = tuned_number(t, key, &wide);
    *value = (uint32_t)wide;
    return status;
}

static pk_status tuned_switch(const tuning *t, pki_tuning_key key, bool *on)
{
    const pki_config_text from = tuned(t, key);
    *on = from.text ? strcmp(from.text, "1") == 0 : pki_tunings[key].otherwise != 0;
    if (!from.text || *on || strcmp(from.text, "0") == 0)
        return PK_OK;
    return pki_fail(PK_EINVAL, "%s=%.40s is neither 0 nor 1", from.source, from.text);
}

static pk_status read_numbers(pki_config *c, const pk_options *o)
{
    static const number memory = {
        "memory_bytes", "PK_MEMORY_BYTES", PKI_MEMORY_LEAST, (uint64_t)1 << 40, 0, false};
    static const number warmup = {"warmup_steps", "PK_WARMUP_STEPS", 0, 1000000, 0, false};
    static const number steps = {
        "history_steps", "PK_HISTORY_STEPS", 1, PKI_HISTORY_STEPS_MOST, 0, false};
    static const number hang = {"hang_seconds", "PK_HANG_SECONDS", 1, 604800, 0, false};
    /* libpk_alloc has read it long ago, and could say nothing */
    static const number sample = {"", "PK_ALLOC_SAMPLE_BYTES", 1024, (uint64_t)1 << 33, 0, false};
    uint64_t sampled;
    pk_status s = read_number(&memory, o->memory_bytes, &c->memory_bytes);
    s = s ? s : read_small(&warmup, o->warmup_steps, &c->warmup_steps);
    s = s ? s : read_number(&sample, 0, &sampled);
    s = s ? s : read_small(&steps, o->history_steps, &c->history_steps);
    return s ? s : read_small(&hang, o->hang_seconds, &c->hang_seconds);
}

static pk_status read_tuned_numbers(pki_config *c, const tuning *t)
{
    const struct {
        pki_tuning_key key;
        uint64_t *wide;
        uint32_t *small;
    } all[] = {
        {PKI_TUNING_RING_RECORDS, NULL, &c->ring_records},
        {PKI_TUNING_FLUSH_MS, NULL, &c->flush_ms},
        {PKI_TUNING_TRACE_MAX_BYTES, &c->trace_max_bytes, NULL},
        {PKI_TUNING_TRACE_ROTATE_BYTES, &c->trace_rotate_bytes, NULL},
        {PKI_TUNING_TRACE_KEEP, NULL, &c->trace_keep},
        {PKI_TUNING_HISTORY_BYTES, &c->history_bytes, NULL},
        {PKI_TUNING_CAPTURES_PER_HOUR, NULL, &c->captures_per_hour},
        {PKI_TUNING_CAPTURE_BYTES_PER_HOUR, &c->capture_bytes_per_hour, NULL},
        {PKI_TUNING_WINDOW_STEPS, NULL, &c->window_steps},
        {PKI_TUNING_WINDOW_SECONDS, NULL, &c->window_seconds},
        {PKI_TUNING_WINDOWS_MAX_BYTES, &c->windows_max_bytes, NULL},
        {PKI_TUNING_METRICS_SECONDS, NULL, &c->metrics_seconds},
        {PKI_TUNING_SAMPLES, NULL, &c->samples},
    };
    pk_status s = PK_OK;
    for (size_t i = 0; !s && i < PKI_COUNT_OF(all); i++)
        s = all[i].wide ? tuned_number(t, all[i].key, all[i].wide)
                        : tuned_small(t, all[i].key, all[i].small);
    c->samples_asked = tuned(t, PKI_TUNING_SAMPLES).text != NULL;
    c->spares = c->ring_records == 0; /* who asks for a size gets that */
    c->ring_records = c->spares ? PKI_RING_RECORDS : c->ring_records;
    return s;
}

static pk_status read_switches(pki_config *c, const tuning *t)
{
    pk_status s = tuned_switch(t, PKI_TUNING_REPORT_THREADS, &c->report_threads);
    s = s ? s : tuned_switch(t, PKI_TUNING_GPU_GRAPHS, &c->gpu_graphs);
    s = s ? s : tuned_switch(t, PKI_TUNING_CUPTI_GRAPH_NODES, &c->cupti_graph_nodes);
    s = s ? s : tuned_switch(t, PKI_TUNING_CUPTI_SYNC_EVENTS, &c->cupti_sync_events);
    return s ? s : tuned_switch(t, PKI_TUNING_NVTX_CONSUME, &c->nvtx_consume);
}

static pk_status read_job(pki_config *c, const pk_options *o)
{
    const pki_config_text path = option_text(o->job_path, "job_path", "PK_JOB_PATH");
    pk_status s = pki_config_path(path, &c->world, c->job);
    if (!s && strcmp(c->job, "-") == 0)
        return pki_fail(PK_EINVAL, "%s is \"-\", and has to be a file: pk job reads it",
                        path.source);
    if (!s && pki_ends_with(c->job, ".gz") && !pki_gz_available())
        return pki_fail(PK_ENOTSUP, "%s %s: this build has no zlib", path.source, c->job);
    return s;
}

static pk_status read_paths(pki_config *c, const pk_options *o, const tuning *t)
{
    const pki_config_text trace = option_text(o->trace_path, "trace_path", "PK_TRACE_PATH");
    const pki_config_text report = option_text(o->report_path, "report_path", "PK_REPORT_PATH");
    const pki_config_text command = option_text(o->hang_command, "hang_command", "PK_HANG_COMMAND");
    pk_status s = pki_config_path(trace, &c->world, c->trace);
    s = s ? s : pki_config_path(report, &c->world, c->report);
    s = s ? s : pki_config_path(tuned(t, PKI_TUNING_ARENA_PATH), &c->world, c->arena);
    s = s ? s : pki_config_path(command, &c->world, c->hang_command);
    s = s ? s : pki_config_path(tuned(t, PKI_TUNING_MACHINE_PATH), &c->world, c->machine);
    s = s ? s : pki_limits_config(c, tuned(t, PKI_TUNING_PEAK));
    s = s ? s : read_job(c, o);
    if (!s && c->trace[0] && (strcmp(c->trace, c->report) == 0 || strcmp(c->trace, c->arena) == 0))
        return pki_fail(PK_EINVAL, "%s %s: report or arena have the same", trace.source, c->trace);
    c->compressed = pki_ends_with(c->trace, ".gz");
    c->report_json = pki_ends_with(c->report, ".json");
    if (!s && c->compressed && !pki_gz_available())
        return pki_fail(PK_ENOTSUP, "%s %s: this build has no zlib", trace.source, c->trace);
    return s;
}

static pk_status read_windows(pki_config *c, const pk_options *o)
{
    const pki_config_text path = option_text(o->windows_path, "windows_path", "PK_WINDOWS_PATH");
    pk_status s = pki_config_path(path, &c->world, c->windows);
    if (s || !c->windows[0])
        return s;
    if (strcmp(c->windows, c->trace) == 0 || strcmp(c->windows, c->report) == 0 ||
        strcmp(c->windows, c->arena) == 0)
        return pki_fail(PK_EINVAL, "%s %s: trace, report or arena have the same", path.source,
                        c->windows);
    c->windows_compressed = pki_ends_with(c->windows, ".gz");
    if (c->windows_compressed && !pki_gz_available())
        return pki_fail(PK_ENOTSUP, "%s %s: this build has no zlib", path.source, c->windows);
    if (!c->window_steps && !c->window_seconds)
        c->window_seconds = PKI_WINDOW_SECONDS;
    return PK_OK;
}

static pk_status read_metrics(pki_config *c, const pk_options *o)
{
    const pki_config_text path = option_text(o->metrics_path, "metrics_path", "PK_METRICS_PATH");
    pk_status s = pki_config_path(path, &c->world, c->metrics);
    if (!s && c->metrics[0] &&
        (strcmp(c->metrics, c->trace) == 0 || strcmp(c->metrics, c->report) == 0 ||
         strcmp(c->metrics, c->arena) == 0 || strcmp(c->metrics, c->windows) == 0))
        return pki_fail(PK_EINVAL, "%s %s: trace, report, arena or windows have the same",
                        path.source, c->metrics);
    return s;
}

static pk_status read_shim(pki_config *c, const tuning *t)
{
    const pki_config_text shim = tuned(t, PKI_TUNING_NVTX_SHIM);
    if (shim.text && strlen(shim.text) >= sizeof c->nvtx_shim)
        return pki_fail(PK_EINVAL, "%s is longer than a path can be", shim.source);
    snprintf(c->nvtx_shim, sizeof c->nvtx_shim, "%s", shim.text ? shim.text : "");
    return PK_OK;
}

static pk_status read_clock(pki_config *c, const tuning *t)
{
    const pki_config_text wanted = tuned(t, PKI_TUNING_CLOCK);
    const char *why_not = NULL;
    bool trusted = pki_cycle_counter_trusted(&why_not);
    if (!wanted.text) {
        c->monotonic = !trusted;
        c->clock_reason = why_not;
        return PK_OK;
    }
    c->monotonic = strcmp(wanted.text, "monotonic") == 0;
    if (c->monotonic)
        return PK_OK;
    if (pki_cycle_counter_constant() && strcmp(wanted.text, PKI_CYCLE_COUNTER_NAME) == 0) {
        c->clock_reason = trusted ? NULL : why_not;
        return PK_OK;
    }
    if (strcmp(wanted.text, "tsc") != 0 && strcmp(wanted.text, "cntvct") != 0)
        return pki_fail(PK_EINVAL, "%s: %.20s is none of tsc, cntvct and monotonic", wanted.source,
                        wanted.text);
    return pki_fail(PK_ENOTSUP, "%s: %s: %s", wanted.source, wanted.text,
                    why_not ? why_not : "this processor has another one");
}

static bool is_backend(const char *name, size_t n)
{
    static const char *const names[] = {"cuda", "cupti", "nvtx", "nccl", "nvml"};
    for (size_t i = 0; i < PKI_COUNT_OF(names); i++)
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return true;
    return false;
}

static pk_status read_backends(pki_config *c, const pk_options *o)
{
    const pki_config_text list = option_text(o->backends, "backends", "PK_BACKENDS");
    if (!list.text)
        return PK_OK;
    if (strlen(list.text) >= sizeof c->backends)
        return pki_fail(PK_EINVAL, "%s is longer than any list of them", list.source);
    strcpy(c->backends, list.text);
    if (strcmp(list.text, "none") == 0)
        return PK_OK;
    for (const char *p = list.text; *p; p += *p == ',') {
        p += *p == '-';
        size_t n = strcspn(p, ",");
        if (!is_backend(p, n))
            return pki_fail(PK_EINVAL, "%s: '%.*s' is none of cuda, cupti, nvtx, nccl and nvml",
                            list.source, (int)PKI_MIN(n, 40u), p);
        p += n;
    }
    return PK_OK;
}

/* A step's number: digits. */
static const char *read_step(const char *text, uint64_t *step)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9')
        return NULL;
    *step = strtoull(text, &end, 10);
    return errno ? NULL : end;
}

static pk_status read_window(pki_config *c, const tuning *t)
{
    const pki_config_text window = tuned(t, PKI_TUNING_CUPTI_STEPS);
    const char *end = window.text ? read_step(window.text, &c->cupti_first) : NULL;
    if (!window.text)
        return PK_OK;
    c->cupti_last = c->cupti_first;
    if (end && *end == '-')
        end = read_step(end + 1, &c->cupti_last);
    if (!end || *end || c->cupti_last < c->cupti_first)
        return pki_fail(PK_EINVAL, "%s: %.40s is no range of steps such as 100-104", window.source,
                        window.text);
    c->cupti_window = true;
    return PK_OK;
}

/* A larger struct comes from a newer header: what it asks for in fields unknown here must not get
 * lost in silence. */
static pk_status copy_options(pk_options *mine, const pk_options *given)
{
    memset(mine, 0, sizeof *mine);
    if (!given)
        return PK_OK;
    if (given->size < SMALLEST_OPTIONS || given->size > LARGEST_OPTIONS ||
        given->size % _Alignof(pk_options))
        return pki_fail(
            PK_EINVAL, "pk_options.size is %u: use pk_options(...) or set it to sizeof(pk_options)",
            given->size);
    for (size_t i = sizeof *mine; i < given->size; i++)
        if (((const char *)given)[i])
            return pki_fail(
                PK_EINVAL, "pk_options asks for something that perfkit %s does not know (byte %zu)",
                pk_version(), i);
    memcpy(mine, given, PKI_MIN(given->size, sizeof *mine));
    return PK_OK;
}

static pk_status read_world(pki_config *c, const pk_options *o)
{
    static const number number_of_ranks = {"world_size", "PK_WORLD_SIZE", 1, INT32_MAX, 0, false};
    static const number number_of_rank = {"rank", "PK_RANK", 0, INT32_MAX, 0, false};
    uint64_t rank = (uint32_t)o->rank, size;
    pki_world_detect(&c->world);
    if (o->world_size < 0 || (o->world_size && o->rank < 0))
        return pki_fail(PK_EINVAL, "rank %d of world_size %d: neither can be negative", o->rank,
                        o->world_size);
    pk_status s = read_number(&number_of_ranks, (uint32_t)o->world_size, &size);
    if (s || size == 0)
        return s;
    s = o->world_size ? PK_OK : read_number(&number_of_rank, 0, &rank);
    if (!s && rank >= size)
        return pki_fail(PK_EINVAL,
                        "rank %llu of world_size %llu: ranks go from 0 to world_size - 1",
                        (unsigned long long)rank, (unsigned long long)size);
    c->world.rank = (int32_t)rank;
    c->world.size = (int32_t)size;
    return s;
}

static pk_status read_all(pki_config *c, const pk_options *o, const tuning *t)
{
    pk_status s = read_world(c, o);
    s = s ? s : read_numbers(c, o);
    s = s ? s : read_tuned_numbers(c, t);
    s = s ? s : read_switches(c, t);
    s = s ? s : read_paths(c, o, t);
    s = s ? s : read_window(c, t);
    s = s ? s : pki_config_captures(c, o);
    s = s ? s : read_clock(c, t);
    s = s ? s : read_backends(c, o);
    s = s ? s : read_shim(c, t);
    s = s ? s : read_windows(c, o);
    s = s ? s : read_metrics(c, o);
    s = s ? s : pki_config_goodput(c, o);
    s = s ? s : pki_config_collector(c, o, t);
    return s ? s : pki_environment_config(c);
}

pk_status pki_config_read(pki_config *c, const pk_options *given)
{
    pk_options options;
    pki_mem_clear(c, sizeof *c);
    pk_status s = copy_options(&options, given);
    pki_operator_override(&options);
    s = s ? s : pki_config_log(&options);
    if (s)
        return s;
    tuning *t = malloc(sizeof *t);
    if (!t)
        return pki_fail(PK_ENOMEM, "no memory for the options");
    s = read_tuning(t, &options);
    s = s ? s : read_all(c, &options, t);
    free(t);
    return s;
}
