/* tools/job/roles.h - which ranks do the same work: those that have the same stages of their own.
 */
#pragma once

#include "job/job.h"

/* By place of a rank its role, from 0; how many there are in *count. A rank that nobody is like is
 * among the most. To be freed. */
uint32_t *job_roles(const job *j, size_t *count);
