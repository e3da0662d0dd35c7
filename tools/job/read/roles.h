/* tools/job/read/roles.h - which ranks do the same work: those that have the same stages of their
 * own; and which are of a host. A stage that some rank may have among those for which it had no
 * room, since these take half as long as it or longer, makes no role.
 */
#pragma once

#include "job/job.h"

/* By place of a rank its role, from 0; how many there are in *count. A rank that nobody is like is
 * among the most. To be freed. */
uint32_t *job_roles(const job *j, size_t *count);

/* Places of ranks by host: those of host h stand from begins[h] to before begins[h + 1], which has
 * room for one more than there are, and is zero. To be freed. */
size_t *job_ranks_by_host(const job *j, size_t *begins);
