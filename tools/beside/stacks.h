/* tools/beside/stacks.h - samples of a step's thread: what it was in, and who had called that;
 * within the room */
#pragma once

#include "beside/beside.h"

/* What a path's samples have more of in the step than in a usual one. */
typedef struct stacks_more {
    const char *function, *caller; /* "": not known */
    double ns, usual;       /* of that function there: in the step, in a usual one, by samples */
    double kernel;          /* ns more in the kernel, whoever called it */
    uint64_t samples;       /* of the path, in the step... */
    uint64_t usual_samples; /* ...and in all usual ones */
    bool certain;           /* beyond what chance does */
} stacks_more;

/* An event that is a sample, or a file of its places. */
bool stacks_is_sample(const event *e);
void stacks_add(slices *s, const event *e);
bool stacks_is_file(const event *e);
void stacks_add_file(slices *s, const event *e);

/* Once all have been read: functions for places. */
void stacks_name(slices *s, const char *process);

/* One is in the region of that path, in that column. */
void stacks_place(slices *s, uint32_t sample, const char *path, uint32_t column);

/* False: none are there. scripts: of functions of Python alone, innermost first, for samples that
 * are in so many of the interpreter's that none stands out. */
bool stacks_dearest(const slices *s, const char *path, uint32_t step, uint64_t usual_count,
                    bool scripts, stacks_more *out);

void stacks_free(slices *s);
