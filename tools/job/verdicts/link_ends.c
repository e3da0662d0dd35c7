#include "job/verdicts/link_ends.h"

static double excess_of(const job *j, const job_late *late)
{
    const job_loop *loop = job_usual(j);
    double own = 0;
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = job_cell(j, b, late->rank);
        own += loop->own[cell] - loop->ready[cell];
    }
    return own * late->by / (1 + late->by);
}

/* ns of the run that slow links of a rank take longer than others would. */
static double links_of(const job_waits *waits, size_t rank)
{
    double cost = 0;
    for (size_t i = 0; i < waits->link_count && waits->links[i].slow; i++) {
        const job_link *link = &waits->links[i];
        if (link->from == rank || link->to == rank)
            cost += (link->transfer - link->usual) * link->messages;
    }
    return cost;
}

void job_excuse_link_ends(const job *j, const job_waits *waits, job_lateness *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        const job_late *late = &l->late[i];
        bool part = !late->host && excess_of(j, late) < JOB_LINK_PART * links_of(waits, late->rank);
        if (part)
            job_note_undecided(&l->at_link, late->rank, late->by);
        else
            l->late[kept++] = *late;
    }
    l->count = kept;
}
