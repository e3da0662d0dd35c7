/* tools/job/figures/waits_links.h - of how long single messages took, which links are slow
 * (waits.h). */
#pragma once

#include "job/figures/waits.h"

typedef struct job_transfer {
    size_t from, to; /* places of ranks */
    bool across;     /* from host to host: another way than within one */
    uint64_t size;   /* class */
    int64_t at;      /* when it had come */
    double ns, doubt;
} job_transfer;

typedef struct job_transfers {
    job_transfer *all;
    size_t count, room;
} job_transfers;

void job_transfers_add(job_transfers *t, const job_transfer *one);

/* Puts them in order; to be freed. */
job_link *job_links_of_transfers(job_transfers *t, const job *j, size_t *count);
