/* tools/live/behind.h - which of several ranks the others wait for */
#pragma once

#include "live/snapshot.h"

/* ---- which of several ranks the others wait for, and how that is known ---- */

/* Evidence, the strongest first:
 *   - its process is gone, or stopped
 *   - it is missing in a collective that others have begun: their last operation that is complete
 *     on a communicator is n, something is under way, and this rank has not enqueued n + 1 (or has
 *     enqueued it, and not started it). Who is itself in a collective where somebody else is
 *     missing is not to blame; nor, where a process is gone or stopped, who has not come and stands
 *     in a region of kind comm or wait: perhaps it waits for that one, or for who does, and perhaps
 *     for something else, so it is told apart from those that are behind. Communicators with
 *     messages on them are no evidence: ranks count differently
 *   - it is in an earlier step than others
 *   - it is inside a region that others have left, who stand in a region of kind comm or wait */

typedef struct view {
    target *t;
    snapshot s;
} view;

typedef enum behind_why {
    BEHIND_NOT,
    BEHIND_GONE,
    BEHIND_STOPPED,
    BEHIND_MISSING,
    BEHIND_STEP,
    BEHIND_REGION,
    BEHIND_PERHAPS
} behind_why;

#define BEHIND_WORDS 600

typedef struct behind_row {
    size_t of; /* which of the looks */
    behind_why why;
    char words[BEHIND_WORDS]; /* "has not entered ..." */
} behind_row;

typedef struct behind {
    behind_row *rows; /* of those that are, the strongest evidence first */
    size_t count;
    size_t perhaps;             /* rows after those: wait, perhaps for one of them */
    char verdict[BEHIND_WORDS]; /* in words, also where nobody is */
} behind;

/* False without memory. */
bool behind_find(behind *b, const view *views, size_t count);
void behind_finish(behind *b);

/* "missing in a collective" and so on. */
const char *behind_why_text(behind_why why);

/* "rank 3", "pid 4711". */
#define VIEW_NAME 24
void view_name(const view *l, char name[VIEW_NAME]);

/* The innermost open region of the thread that makes the steps; NULL: none is open. */
const live_region *view_innermost(const view *l);

/* ---- collectives that some ranks have begun and others have not ---- */

typedef struct collective {
    const char *comm; /* as all ranks call it */
    const char *library;
    int32_t size;
    uint64_t operation; /* its number on the communicator */
    bool started;       /* by those inside; else enqueued alone is known */
    size_t inside;      /* so many are */
    bool since_known;
    uint64_t shortest_ns; /* the last of them came so long ago */
} collective;
