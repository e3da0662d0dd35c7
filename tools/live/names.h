/* tools/live/names.h - the names in an arena, read as they come. */
#pragma once

#include "live/target.h"

typedef struct live_name {
    uint32_t kind; /* stats/kinds.h */
    int64_t value; /* of a variant; of a communicator its rank and size */
    char *text;    /* NULL: not known. Any bytes but NUL */
    char *key;     /* of a variant; of a communicator its library; of a counter its unit */
} live_name;

typedef struct live_names {
    live_name *all; /* by id */
    size_t room;
    uint64_t span, used; /* read up to there */
} live_names;

/* What has been added since the last time. Names are whole: an entry is read once its writer has
 * counted it as written. */
void live_names_read(live_names *names, const target *t);
void live_names_finish(live_names *names);

/* Never NULL; "(unknown)" for what has no name. */
const live_name *live_name_of(const live_names *names, uint32_t id);
