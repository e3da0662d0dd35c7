/* tools/rebuild/process.c - which of the processes in a file an event is of. */
#include "rebuild/state.h"

#include "memory.h"

#include <stdio.h>
#include <string.h>

uint32_t rebuild_process_of(table *processes, const char *track)
{
    char pid[EVENT_TRACK];
    snprintf(pid, sizeof pid, "%.*s", (int)strcspn(track, "/"), track);
    return table_add(processes, pid);
}

void rebuild_steps(rebuild *r, uint32_t thread)
{
    uint32_t process = r->threads[thread].process;
    memory_fit(&r->stepping, &r->stepping_room, process + (size_t)1, sizeof *r->stepping);
    r->stepping[process] = 1;
}

static bool has_steps(const rebuild *r, uint32_t process)
{
    return process < r->stepping_room && r->stepping[process];
}

/* In a file that somebody has put together of several processes' there is a loop for each: a report
 * is of one of them. What has no steps may be the same one's under another number. */
static bool is_another(const rebuild *r, uint32_t process)
{
    return r->stepper != TABLE_NONE && process != r->threads[r->stepper].process &&
           has_steps(r, process);
}

bool rebuild_is_elsewhere(const rebuild *r, uint32_t thread)
{
    return is_another(r, r->threads[thread].process);
}

bool rebuild_is_of_another(const rebuild *r, const event *e)
{
    char pid[EVENT_TRACK];
    if (r->processes.count < 2)
        return false;
    snprintf(pid, sizeof pid, "%.*s", (int)strcspn(e->track, "/"), e->track);
    return is_another(r, table_find(&r->processes, pid));
}

bool rebuild_is_named_twice(rebuild *r, const event *e)
{
    uint32_t known = r->announced.count;
    return rebuild_process_of(&r->announced, e->track) < known;
}
