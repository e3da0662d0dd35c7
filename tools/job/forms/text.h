/* tools/job/forms/text.h - parts of the text of a job. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "job/verdicts/findings.h"
#include "out/columns.h"

/* text_exchange.c: MPI, messages, waits. */
void job_put_exchange(const job_findings *f, FILE *to);

/* The same, cut so that it differs from its neighbours. */
static inline void job_text_apart(FILE *to, const char *text, size_t width, const pki_column *names)
{
    fputs("  ", to);
    pki_put_apart(to, text, width, names);
}

static inline void job_text_left(FILE *to, const char *text, size_t width)
{
    fputs("  ", to);
    pki_put_left(to, text, width);
}

/* "12": of nobody "-". */
static inline const char *job_text_rank(char text[16], int32_t rank)
{
    snprintf(text, 16, "%d", rank);
    return rank == JOB_NO_RANK ? "-" : text;
}

/* Counts are sums of doubles here: files may say anything. */
static inline uint64_t job_text_whole(double n)
{
    return n >= 0x1p64 ? UINT64_MAX : n > 0 ? (uint64_t)n : 0;
}
