/* tools/job/text.h - parts of the text of a job. */
#pragma once

#include "job/findings.h"

/* text_exchange.c: MPI, messages, waits. */
void job_put_exchange(const job_findings *f, FILE *to);
