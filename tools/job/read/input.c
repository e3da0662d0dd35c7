/* tools/job/read/input.c - one file of a rank, whatever it is. */
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "load/load.h"
#include "measure/goodput/goodput.h"
#include "memory.h"
#include "out/report/report.h"
#include "read/scan.h"
#include "read/source.h"
#include "recover/recover.h"

#define REPORT "{\"format\":\"" PKI_REPORT_FORMAT "\",\"schema\":"
#define FIRST_LOOK 4096
#define REPORT_MOST ((size_t)1 << 30)

typedef struct text {
    char *bytes;
    size_t length, room;
} text;

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

/* ---- reports and files of ranks: straight from their text ---- */

static bool is_report(const text *t)
{
    return begins_with(t, REPORT, sizeof REPORT - 1);
}

static bool scan_report(const text *t, pki_summary *out, complaint *why)
{
    scan s = {.at = t->bytes, .end = t->bytes + t->length, .why = why};
    long schema = strtol(t->bytes + sizeof REPORT - 1, NULL, 10);
    if (schema < 1 || schema > PKI_REPORT_SCHEMA)
        return complaint_set(why, "is a report of schema %ld, and this pk reads up to %d", schema,
                             PKI_REPORT_SCHEMA);
    pki_summary_init(out);
    if (scan_object(&s, &pki_rank_shape, out))
        return true;
    pki_summary_finish(out);
    return false;
}

/* ---- arenas: by way of a trace ---- */

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

/* ---- all of them ---- */

static bool load(const char *path, source *s, text *t, pki_summary *out, complaint *why)
{
    load_options options = {.progress = true};
    if (!read_some(s, t, FIRST_LOOK, why))
        return false;
    if (is_report(t))
        return read_some(s, t, REPORT_MOST, why) && scan_report(t, out, why);
    if (begins_with(t, PKI_LIFE_MAGIC, sizeof PKI_LIFE_MAGIC - 1))
        return complaint_set(why, "is a state file (goodput_path)");
    if (begins_with(t, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC))
        return load_arena(path, out, why);
    return load_run(path, &options, out, why);
}

bool job_load(const char *path, pki_summary *out, complaint *why)
{
    static text t; /* its room is used again and again */
    source *s = source_open(path, why);
    if (!s)
        return false;
    t.length = 0;
    bool loaded = load(path, s, &t, out, why);
    source_close(s);
    return loaded;
}
