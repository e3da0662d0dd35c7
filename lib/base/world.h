/* lib/base/world.h - which process of which job this is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct pki_world {
    int32_t rank,
        size; /* 0 and 0: not a job of several processes, as far as the environment says */
    int32_t local_rank, local_size; /* among the ranks of this host; 0 and 0: not known */
    int32_t node;                   /* number of the host in the job; -1: not known */
    char job[64];                   /* as whoever started it calls it; "": not known */
    uint32_t pid;
    char host[64];
    char clock[96]; /* whose CLOCK_MONOTONIC it is: the same in all processes that share it; "": not
                       known */
    char program[128]; /* last part of the executable's path */
} pki_world;

void pki_world_detect(pki_world *world);
