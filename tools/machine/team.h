/* tools/machine/team.h - threads that do the same at once, each held to a processor of its own. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "complaint.h"

typedef void team_work(void *user, unsigned member);

typedef struct team_member {
    struct team *team;
    pthread_t thread;
    unsigned number;
    int processor;                     /* -1: wherever the system puts it */
    uint64_t begin, end, on_processor; /* ns, of the last work */
} team_member;

typedef struct team {
    unsigned count;
    team_member *members;
    pthread_barrier_t begin, end;
    team_work *work; /* NULL: the end */
    void *user;
    uint64_t wanted, had; /* ns of all rounds and members: wall time, and time on a processor */
} team;

/* The processors that this process may use, at most `room`; how many. */
unsigned team_processors(int *processors, unsigned room);

/* One thread for each of them. False, and why. */
bool team_make(team *t, const int *processors, unsigned count, complaint *why);

/* Has all do it; the seconds from the first one's begin to the last one's end. */
double team_do(team *t, team_work *work, void *user);

/* The least that a member had of a processor in the last work, ns; 0: that is not known. */
uint64_t team_shortest(const team *t);

void team_finish(team *t);
