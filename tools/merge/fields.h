/* tools/merge/fields.h - where the members of an event stand in its line.
 *
 * A merged trace differs from its parts in a few numbers of each event. So events are not read and
 * written anew: what changes is replaced in the text, and the rest is copied as it is.
 */
#pragma once

#include "read/lines.h"

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
 * and are the digits `kept` at the end (docs/trace-format.md). */
void fields_read_times(fields *f, line l, bool lengths);

/* A time of the line, and of it what is kept. */
bool field_time(line l, field f, uint64_t *ns, size_t *kept);

/* Is it this text, quotes included? */
bool field_is(line l, field f, const char *text);

/* Does it begin with it? */
bool field_begins(line l, field f, const char *text);

/* A number without sign and point; false if it is another. */
bool field_integer(line l, field f, uint64_t *n);
