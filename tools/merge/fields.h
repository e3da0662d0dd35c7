/* tools/merge/fields.h - where the members of an event stand in its line, and which lines are alike
 */
#pragma once

#include "job/clocks/clocks.h"
#include "read/lines.h"

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
