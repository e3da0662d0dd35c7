/* tools/merge/inputs.c - which files are merged, and what their heads say. */
#include "merge/source.h"

#include "base/compiler.h"
#include "base/text.h"
#include "memory.h"
#include "trace/trace.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *print_copy(const char *format, const char *a, const char *b)
{
    size_t n = strlen(format) + strlen(a) + strlen(b) + 1;
    char *text = memory_zeroed(1, n);
    snprintf(text, n, format, a, b);
    return text;
}

/* ---- the head ---- */

static const char *text_in(const json_t *of, const char *key)
{
    const char *text = json_string_value(json_object_get(of, key));
    return text ? text : "";
}

static uint64_t number_in(const json_t *of, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(of, key));
    return n > 0 ? (uint64_t)n : 0;
}

/* distributedInfo is PyTorch's; perfkit's own says -1 where no rank is known. */
static int32_t rank_of(const json_t *head, const json_t *metadata)
{
    const json_t *rank = json_object_get(metadata, "rank");
    if (!rank)
        rank = json_object_get(json_object_get(head, "distributedInfo"), "rank");
    json_int_t n = json_is_integer(rank) ? json_integer_value(rank) : -1;
    return n >= 0 && n < INT32_MAX ? (int32_t)n : -1;
}

/* Files of one machine, from its start on, have one clock. What does not say which start that was
 * goes by the host's name; what has real time alone shares that. */
static char *clock_of(const merge_source *s, const json_t *clock)
{
    const char *boot = text_in(clock, "id");
    if (*boot)
        return memory_copy(boot);
    return s->base_ns && *s->host ? print_copy("%s%s", "host ", s->host) : memory_copy("real time");
}

static void read_clock(merge_source *s, const json_t *head, const json_t *metadata)
{
    const json_t *clock = json_object_get(metadata, "clock");
    s->unix_ns = number_in(head, "baseTimeNanoseconds");
    s->base_ns = number_in(clock, "base_monotonic_ns");
    s->clock_name = clock_of(s, clock);
    if (strcmp(s->clock_name, "real time") == 0)
        s->base_ns = s->unix_ns;
}

static void read_head(merge_source *s, const json_t *head)
{
    const json_t *metadata = json_object_get(head, "metadata");
    s->ours = *text_in(metadata, "perfkit") != '\0';
    s->host = memory_copy(text_in(metadata, "host"));
    s->program = memory_copy(text_in(metadata, "program"));
    s->pid = number_in(metadata, "pid");
    s->rank = rank_of(head, metadata);
    s->ranks = (int32_t)PKI_MIN(number_in(metadata, "world_size"), (uint64_t)INT32_MAX);
    read_clock(s, head, metadata);
}

/* ---- files ---- */

static void note_arena(merge_source *s)
{
    char *beside = print_copy("%s%s", s->path, ".arena");
    s->arena = access(beside, F_OK) == 0;
    free(beside);
}

typedef enum found { FOUND_TRACE, FOUND_ANOTHER, FOUND_NOTHING } found;

/* Anything but a trace is FOUND_ANOTHER: a report, windows, a trace that was merged already. */
static found add_file(merge_sources *all, const char *path, complaint *why)
{
    trace t;
    if (!trace_open_run(&t, path, false, why))
        return FOUND_NOTHING;
    bool fits = !t.windows && trace_has_events(&t) &&
                !json_object_get(json_object_get(trace_head(&t), "metadata"), "merged");
    if (fits) {
        memory_fit(&all->all, &all->room, all->count + 1, sizeof *all->all);
        merge_source *s = &all->all[all->count++];
        *s = (merge_source){.path = memory_copy(path)};
        read_head(s, trace_head(&t));
        note_arena(s);
    }
    trace_close(&t);
    return fits ? FOUND_TRACE : FOUND_ANOTHER;
}

static bool is_candidate(const char *name)
{
    return *name != '.' && (pki_ends_with(name, ".json") || pki_ends_with(name, ".json.gz"));
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return b && stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
}

static bool add_folder(merge_sources *all, const char *path, const char *out, complaint *why);

static bool add_entry(merge_sources *all, const char *path, const char *name, const char *out)
{
    struct stat is;
    complaint ignored = {""};
    if (*name == '.' || stat(path, &is) != 0)
        return true;
    if (S_ISDIR(is.st_mode))
        return add_folder(all, path, out, &ignored);
    if (!S_ISREG(is.st_mode) || !is_candidate(name) || is_same_file(path, out))
        return true;
    found what = add_file(all, path, &ignored);
    all->passed_over += what == FOUND_ANOTHER;
    all->unreadable += what == FOUND_NOTHING;
    return true;
}

static bool add_folder(merge_sources *all, const char *path, const char *out, complaint *why)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        return complaint_set(why, "cannot be read");
    for (int i = 0; i < n; i++) {
        char *inside = print_copy("%s/%s", path, entries[i]->d_name);
        add_entry(all, inside, entries[i]->d_name, out);
        free(inside);
        free(entries[i]);
    }
    free(entries);
    return true;
}

bool sources_add(merge_sources *all, const char *path, const char *out, complaint *why)
{
    struct stat is;
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode))
        return add_folder(all, path, out, why);
    if (is_same_file(path, out))
        return complaint_set(why, "is the output, too");
    found what = add_file(all, path, why);
    return what == FOUND_TRACE ||
           (what == FOUND_ANOTHER && complaint_set(why, "is no trace of one process"));
}

/* ---- in order ---- */

static int by_rank(const void *a, const void *b)
{
    const merge_source *one = a, *other = b;
    if (one->rank != other->rank)
        return one->rank < other->rank ? -1 : 1;
    return strcmp(one->path, other->path);
}

static bool are_one_process(const merge_source *a, const merge_source *b)
{
    return a->ours && b->ours && a->rank == b->rank && a->pid == b->pid &&
           strcmp(a->host, b->host) == 0 && strcmp(a->clock_name, b->clock_name) == 0;
}

static void find_twins(merge_sources *s)
{
    for (size_t i = 0; i < s->count; i++) {
        merge_source *it = &s->all[i];
        it->process = (uint32_t)i;
        it->twin = !it->ours;
        for (size_t j = i; j-- > 0 && s->all[j].rank == it->rank;) {
            if (are_one_process(&s->all[j], it)) {
                it->process = s->all[j].process;
                it->twin = s->all[j].twin;
                break;
            }
            it->twin = true;
        }
    }
}

void sources_sort(merge_sources *s)
{
    if (s->count)
        qsort(s->all, s->count, sizeof *s->all, by_rank);
    find_twins(s);
}

void source_free(merge_source *s)
{
    free(s->path);
    free(s->host);
    free(s->program);
    free(s->clock_name);
}

void sources_free(merge_sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        source_free(&s->all[i]);
    free(s->all);
}
