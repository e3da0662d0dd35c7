/* tools/merge/merge.h - what the files of pk merge share */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "command.h"
#include "complaint.h"
#include "job/clocks.h"
#include "read/lines.h"
#include "recover/recover.h"
#include "trace/trace.h"

/* ---- where the members of an event stand in its line ---- */

/* A merged trace differs from its parts in a few numbers of each event. So events are not read and
 * written anew: what changes is replaced in the text, and the rest is copied as it is. */

/* length 0: not there. Strings with their quotes. */
typedef struct field {
    size_t at, length;
} field;

typedef struct fields {
    char phase; /* '?': it has none */
    field name, cat, pid, tid, ts, dur, id, args;
    uint64_t process, thread; /* pid and tid; 0: none */
    bool timed;               /* it has a time that makes sense; see fields_time */
    uint64_t start, length;   /* ns, rounded down; length 0: it has no duration */
    size_t start_kept, length_kept;
} fields;

/* Lines mostly begin as an earlier one does, up to their time. */
#define FIELDS_KNOWN 256
#define FIELDS_START 240

typedef struct fields_start {
    fields is; /* ts, and what may stand behind it, without length */
    uint16_t length;
    char text[FIELDS_START];
} fields_start;

typedef struct fields_known {
    fields_start all[FIELDS_KNOWN];
} fields_known;

/* Of the outermost object alone. False: the line is not a whole object. */
bool fields_find(fields *f, fields_known *known, line l);

/* Reads ts and, if wanted, dur. With six decimals the last three are no part of the nanoseconds,
 * and are the digits `kept` at the end (docs/internals/trace-format.md). */
void fields_read_times(fields *f, line l, bool lengths);

/* Is it this text, quotes included? */
bool field_is(line l, field f, const char *text);

/* Does it begin with it? */
bool field_begins(line l, field f, const char *text);

/* A number without sign and point; false if it is another. */
bool field_integer(line l, field f, uint64_t *n);

/* ---- alike ---- */

/* Operations whose lines differ from an earlier one's in their times and
 * their number on the communicator alone: most of a trace's. What the earlier line said is known.
 */

#define ALIKE_KEPT 8

/* What a line said, and where it may differ. */
typedef struct alike_line {
    char *text; /* NULL: none */
    size_t length, room;
    size_t begin;     /* up to its time */
    size_t behind;    /* from behind its duration */
    size_t number;    /* of the operation: its digits... */
    size_t after;     /* ...and what follows them */
    pki_joint is;     /* but for times, number and source */
    uint64_t channel; /* of a collective: its key, into which the number is mixed */
} alike_line;

typedef struct alike {
    alike_line all[ALIKE_KEPT];
    uint32_t next;
} alike;

void alike_free(alike *a);

/* The line is like an earlier one, and this is what it says; in *channel see above, and the number
 * in *number. */
bool alike_find(const alike *a, line l, const fields *f, pki_joint *o, uint64_t *channel,
                uint64_t *number);

/* A line, and what it says. */
void alike_add(alike *a, line l, const fields *f, const pki_joint *o, uint64_t channel,
               uint64_t number);

/* ---- a trace that is merged with others: whose it is, and its events ---- */

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
void sources_free(merge_sources *s);

/* Who wants the events: lines without what stands between them. False ends the reading. */
typedef bool source_visit(void *user, const merge_source *of, line l, const fields *f);

/* All events; sets cut and, with lengths, which are then read, last_ns. One file is open at a time.
 * False: `visit` said so, or the file
 * could not be read, and why. */
bool source_read_events(merge_source *s, bool lengths, source_visit *visit, void *user,
                        complaint *why);

/* ---- processes of a merged trace have numbers of their own ---- */

/* Two of different nodes or containers may have the same. */

typedef struct pid_entry {
    uint32_t process; /* merge_source.process */
    uint32_t place;   /* among the process's own: its main one is 0 */
    uint64_t pid;
    uint32_t becomes;
} pid_entry;

typedef struct pids {
    pki_map map;
    pid_entry *all;
    size_t count, room, last; /* the one asked for last */
    uint32_t next;            /* number for who cannot keep its own */
} pids;

/* ---- what stands before the events of a merged trace ---- */

/* The caller's to free. */
char *merged_head(const merge_sources *s, const pki_clocks *c, size_t *length);

/* ---- operations on communicators, from the events of a trace ---- */

/* A slice that came lately, on whatever thread. */
typedef struct recent {
    uint64_t tid, start;
} recent;

#define COLLECTOR_RECENT 1024

typedef struct collector {
    pki_joints *into;
    event_reader reader;
    char *copy; /* of a line: it is taken apart in place */
    size_t room;
    pki_joint open; /* a pair's beginning, whose end comes next */
    uint64_t open_id;
    bool is_open;
    alike known;
    recent recent[COLLECTOR_RECENT];
    uint32_t next; /* place in it */
} collector;

/* Of a function of pki_joints that answers false and errno. */
bool joints_stored(bool stored, complaint *why);

void collector_open(collector *c, pki_joints *into);
void collector_close(collector *c);

/* The slices of another file begin. */
void collector_new_file(collector *c);

/* A slice: a pair of events may be of the call that it is. */
void collector_note(collector *c, const fields *f);

/* Could this event be one, or the end of one? */
bool collector_wants(const collector *c, line l, const fields *f);

/* Takes the event, which became this process's in the merged trace. False, and why. */
bool collector_add(collector *c, uint32_t of, line l, const fields *f, uint32_t pid, bool written,
                   complaint *why);

/* ---- the events of one trace after the other, into the merged one ---- */

typedef struct merge_range {
    bool limited;
    uint64_t from, to; /* ns of the axis */
} merge_range;

typedef struct merge_copy {
    const merge_sources *sources;
    const pki_clocks *clocks;
    merge_range range;
    pids pids;
    collector *collector; /* NULL: nobody wants to know what ranks did together */
    rewrite *out;
    complaint *why;
    uint64_t events, left_out, without_time;
    size_t damaged; /* files */
    /* Ids of arrows whose beginning lies in the range; those of its source alone. */
    pki_map begun_map;
    uint64_t *begun;
    size_t begun_count, begun_room;
} merge_copy;

bool copy_source(merge_copy *c, merge_source *s);
void copy_end(merge_copy *c);

/* ---- what has to be known of all files before the first event is written ---- */

/* When the wanted steps were, and how far clocks are apart. */

typedef struct merge_steps {
    bool limited;
    uint64_t first, last; /* numbers */
} merge_steps;

/* False and why; also if no rank has any of the steps. */
bool prescan(merge_sources *s, pki_clocks *c, const merge_steps *steps, merge_range *range,
             const char *beside, complaint *why);

/* ---- what `pk merge` is asked for ---- */

typedef struct rank_range {
    uint64_t first, last;
} rank_range;

typedef struct merge_wish {
    const char *out;
    operands paths;
    merge_steps steps;
    merge_range range;
    rank_range *ranks; /* NULL: all */
    size_t rank_count, rank_room;
    bool manifest;
} merge_wish;

option_take parse_ranks, parse_steps, parse_from, parse_to;

/* Sources of other ranks go. */
void wish_select_ranks(const merge_wish *w, merge_sources *s);
void wish_free(merge_wish *w);

/* ---- from who was waited for to who waited ---- */

/* Messages and collectives of ranks, as arrows in the merged trace. */

typedef struct arrows {
    merge_copy *to;
    uint64_t next_id;
    uint64_t messages, collectives; /* that were found on all their ranks */
    uint64_t drawn;
    uint64_t backwards, worst_ns; /* an end that comes before what it has to follow */
    uint64_t alone;               /* messages without the other side; collectives of one rank */
    uint64_t ambiguous;           /* of communicators that have the same name */
    bool failed;
} arrows;

/* False, and why. */
bool arrows_put(arrows *a, pki_joints *o, complaint *why);
