#include "job/input.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/text.h"
#include "core/arena.h"
#include "load/load.h"
#include "memory.h"
#include "out/report/report.h"
#include "read/scan.h"
#include "read/source.h"
#include "recover/recover.h"
#include "table.h"

/* ---- one file ---- */

#define REPORT "{\"format\":\"" PKI_REPORT_FORMAT "\",\"schema\":"
#define FIRST_LOOK 4096
#define REPORT_MOST ((size_t)1 << 30)

typedef struct text {
    char *bytes;
    size_t length, room;
} text;

/* Who gets the ranks. */
typedef struct taker {
    pki_job_take *take;
    void *user;
} taker;

/* Up to so many bytes of it. */
static bool read_some(source *s, text *t, size_t most, complaint *why)
{
    while (t->length < most) {
        memory_fit(&t->bytes, &t->room, t->length + 65536, 1);
        size_t room = t->room - t->length, left = most - t->length;
        long n = source_read(s, t->bytes + t->length, room < left ? room : left, why);
        if (n < 0)
            return false;
        if (n == 0)
            return true;
        t->length += (size_t)n;
    }
    return true;
}

static bool begins_with(const text *t, const char *bytes, size_t length)
{
    return t->length >= length && memcmp(t->bytes, bytes, length) == 0;
}

/* ---- ... reports and files of ranks: straight from their text ---- */

static bool is_report(const text *t)
{
    return begins_with(t, REPORT, sizeof REPORT - 1);
}

static bool scan_report(const char *from, size_t length, pki_summary *out, complaint *why)
{
    scan s = {.at = from, .end = from + length, .why = why};
    long schema = strtol(from + sizeof REPORT - 1, NULL, 10);
    if (schema < 1 || schema > PKI_REPORT_SCHEMA)
        return complaint_set(why, "is a report of schema %ld, and this pk reads up to %d", schema,
                             PKI_REPORT_SCHEMA);
    pki_summary_init(out);
    if (scan_object(&s, &pki_rank_shape, out))
        return true;
    pki_summary_finish(out);
    return false;
}

/* ---- ... the file of a job: ranks' files, one behind the other ---- */

/* What stands in front of each. */
typedef struct head {
    int32_t rank, ranks;
    size_t bytes, length; /* that follow; its own */
} head;

#define HEAD_MOST 200

static bool is_job_file(const text *t)
{
    return begins_with(t, PKI_RANKS_BEGIN, sizeof PKI_RANKS_BEGIN - 1);
}

static bool read_head(const text *t, head *h, complaint *why)
{
    char line[HEAD_MOST + 1];
    unsigned long long bytes = 0;
    int schema = 0, length = 0, before = h->rank;
    snprintf(line, sizeof line, "%.*s", (int)PKI_MIN(t->length, (size_t)HEAD_MOST), t->bytes);
    sscanf(line, PKI_RANKS_BEGIN "%d,\"rank\":%d,\"ranks\":%d,\"bytes\":%llu}%n", &schema, &h->rank,
           &h->ranks, &bytes, &length);
    h->bytes = (size_t)bytes;
    h->length = (size_t)length + 1;
    if (schema > PKI_RANKS_SCHEMA)
        return complaint_set(why, "is a job's file of schema %d, and this pk reads up to %d",
                             schema, PKI_RANKS_SCHEMA);
    return (length && line[length] == '\n' && h->rank >= 0 && h->ranks > h->rank &&
            bytes <= REPORT_MOST) ||
           complaint_set(why, "is cut off or damaged behind rank %d", before);
}

/* What is read by now goes. */
static void drop(text *t, size_t bytes)
{
    t->length -= bytes;
    memmove(t->bytes, t->bytes + bytes, t->length);
}

/* Ranks that nobody had numbered when they started, or that were numbered otherwise, are numbered
 * by who has gathered them. */
static bool load_rank(const text *t, const head *h, size_t part, const taker *to, complaint *why)
{
    complaint own = {""};
    pki_summary rank;
    if (!is_report(t) || !scan_report(t->bytes, h->bytes, &rank, &own))
        return complaint_set(why, "rank %d: %s", h->rank, *own.text ? own.text : "is no report");
    rank.run.rank = h->rank;
    rank.run.world_size = PKI_MAX(rank.run.world_size, h->ranks);
    to->take(to->user, part, &rank);
    return true;
}

/* One that is damaged costs itself; what is cut off, what would have come there. */
static bool load_ranks(source *s, text *t, const taker *to, complaint *why)
{
    head h = {-1, 0, 0, 0};
    bool whole = true;
    for (size_t part = 0; read_some(s, t, HEAD_MOST, why); part++) {
        if (!t->length)
            return whole;
        if (!read_head(t, &h, why))
            return false;
        drop(t, h.length);
        if (!read_some(s, t, h.bytes, why))
            return false;
        if (t->length < h.bytes)
            return complaint_set(why, "is cut off amid rank %d", h.rank);
        whole = load_rank(t, &h, part, to, why) && whole;
        drop(t, h.bytes);
    }
    return false;
}

/* ---- ... arenas: by way of a trace ---- */

static bool load_arena(const char *path, pki_summary *out, complaint *why)
{
    const char *folder = getenv("TMPDIR");
    char trace[PATH_MAX];
    recovery done = {0};
    snprintf(trace, sizeof trace, "%s/pk-job-XXXXXX.json", folder && *folder ? folder : "/tmp");
    int fd = mkstemps(trace, 5);
    if (fd < 0)
        return complaint_set(why, "is an arena, and no trace of it can be made in %s", trace);
    close(fd);
    load_options options = {.progress = true};
    bool loaded = recover_file(path, &(recovery_wish){.out = trace}, &done, why) &&
                  load_run(trace, &options, out, why);
    unlink(trace);
    if (loaded)
        out->run.complete = false;
    return loaded;
}

/* ---- ... of any sort ---- */

static bool load_one(const char *path, source *s, text *t, pki_summary *out, complaint *why)
{
    load_options options = {.progress = true};
    if (is_report(t))
        return read_some(s, t, REPORT_MOST, why) && scan_report(t->bytes, t->length, out, why);
    if (begins_with(t, PKI_LIFE_MAGIC, sizeof PKI_LIFE_MAGIC - 1))
        return complaint_set(why, "is a state file (goodput_path)");
    if (begins_with(t, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC))
        return load_arena(path, out, why);
    return load_run(path, &options, out, why);
}

static bool load(const char *path, source *s, text *t, const taker *to, complaint *why)
{
    pki_summary rank;
    if (!read_some(s, t, FIRST_LOOK, why))
        return false;
    if (is_job_file(t))
        return load_ranks(s, t, to, why);
    if (!load_one(path, s, t, &rank, why))
        return false;
    to->take(to->user, 0, &rank);
    return true;
}

bool job_load(const char *path, pki_job_take *take, void *user, complaint *why)
{
    static text t; /* its room is used again and again */
    source *s = source_open(path, why);
    if (!s)
        return false;
    t.length = 0;
    bool loaded = load(path, s, &t, &(taker){take, user}, why);
    source_close(s);
    return loaded;
}

/* ---- which files there are to be read ---- */

#define DEEPEST 8 /* folders in folders */

/* Of a folder only what perfkit's files are called; a file that is named may have any name. */
static bool may_be_one(const char *name)
{
    static const char *const ends[] = {".json",     ".json.gz", ".jsonl",
                                       ".jsonl.gz", ".arena",   ".goodput"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (name[0] != '.' && pki_ends_with(name, ends[i]))
            return true;
    return false;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Most file systems say it in the folder; of a link it is that of what it leads to. */
static unsigned char type_of(const struct dirent *entry, const char *path)
{
    struct stat about;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type;
    if (stat(path, &about) != 0)
        return DT_UNKNOWN;
    return S_ISDIR(about.st_mode) ? DT_DIR : S_ISREG(about.st_mode) ? DT_REG : DT_UNKNOWN;
}

static void note(pki_job_reading *all, const char *path, const char *what)
{
    memory_needed(pki_job_note(all, path, what));
}

static void look_into(const char *path, unsigned depth, table *files, pki_job_reading *all)
{
    struct dirent **entries;
    int count = scandir(path, &entries, visible, alphasort);
    if (count < 0) {
        note(all, path, strerror(errno));
        return;
    }
    for (int i = 0; i < count; i++) {
        char inner[PATH_MAX];
        bool fits = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name) < PATH_MAX;
        unsigned char type = fits ? type_of(entries[i], inner) : DT_UNKNOWN;
        if (type == DT_DIR && depth < DEEPEST)
            look_into(inner, depth + 1, files, all);
        else if (type == DT_REG && may_be_one(entries[i]->d_name))
            table_add(files, inner);
        free(entries[i]);
    }
    free(entries);
}

static void list_files(char **paths, size_t count, table *files, pki_job_reading *all)
{
    for (size_t i = 0; i < count; i++) {
        struct stat about;
        if (stat(paths[i], &about) == 0 && S_ISDIR(about.st_mode))
            look_into(paths[i], 0, files, all);
        else
            table_add(files, paths[i]);
    }
}

/* ---- all of them ---- */

typedef struct file {
    pki_job_reading *of;
    const char *path;
} file;

static void take_rank(void *user, size_t part, pki_summary *s)
{
    const file *f = user;
    memory_needed(pki_job_reading_add(f->of, f->path, part, s));
}

static void load_again(const char *path, pki_job_take *take, void *user)
{
    complaint ignored = {""};
    job_load(path, take, user, &ignored);
}

static void read_file(pki_job *j, pki_job_reading *all, const char *path)
{
    complaint own = {""};
    file f = {all, path};
    bool is_life = false;
    if (job_load(path, take_rank, &f, &own))
        return;
    memory_needed(pki_job_life_add(j, path, &is_life));
    if (!is_life)
        note(all, path, own.text);
}

static bool explain(const pki_job *j, pki_job_made made, const pki_job_steps *steps, complaint *why)
{
    memory_needed(made != PKI_JOB_NO_MEMORY);
    if (made == PKI_JOB_NO_RANKS)
        complaint_set(why, "%s",
                      j->notes.count ? j->notes.texts[0]
                                     : "there is no file of a run in what was named");
    if (made == PKI_JOB_NO_STEPS)
        complaint_set(why, "no rank has a block of steps within %llu-%llu",
                      (unsigned long long)steps->first, (unsigned long long)steps->last);
    return made == PKI_JOB_MADE;
}

bool job_read(pki_job *j, char **paths, size_t count, const pki_job_steps *steps, complaint *why)
{
    table files = {0};
    pki_job_reading *all = pki_job_reading_begin(j, load_again);
    memory_needed(all);
    list_files(paths, count, &files, all);
    for (uint32_t i = 0; i < files.count; i++)
        read_file(j, all, files.texts[i]);
    j->file_count = files.count;
    table_finish(&files);
    return explain(j, pki_job_reading_end(all, steps), steps, why);
}
