/* tools/merge/source.h - a trace that is merged with others: whose it is, and its events. */
#pragma once

#include "complaint.h"
#include "job/clocks/clocks.h"
#include "merge/fields.h"

typedef struct merge_source {
    char *path;
    char *host, *program; /* "": not known */
    char *clock_name;
    int32_t rank;     /* -1: not known */
    int32_t ranks;    /* of the job; 0: not known */
    uint64_t pid;     /* of the process itself; 0: not known */
    pki_clocked when; /* by which clock */
    bool ours;        /* perfkit wrote it */
    bool twin;        /* another process has the same rank */
    uint32_t process; /* the same for files of one process: captures */
    bool cut;         /* it has no end; once it has been read */
    bool arena;       /* a killed run's arena lies beside it */
} merge_source;

typedef struct merge_sources {
    merge_source *all;
    size_t count, room;
    size_t passed_over; /* files of folders that are no traces */
    size_t unreadable;  /* ...and that could not be read */
} merge_sources;

/* A file, or a folder with files in it; `out` is none of them. False, and why. */
bool sources_add(merge_sources *s, const char *path, const char *out, complaint *why);

/* By rank. */
void sources_sort(merge_sources *s);
void source_free(merge_source *s);
void sources_free(merge_sources *s);

/* Who wants the events: lines without what stands between them. False ends the reading. */
typedef bool source_visit(void *user, const merge_source *of, line l, const fields *f);

/* All events; sets cut and, with lengths, which are then read, last_ns. One file is open at a time.
 * False: `visit` said so, or the file
 * could not be read, and why. */
bool source_read_events(merge_source *s, bool lengths, source_visit *visit, void *user,
                        complaint *why);
