/* lib/bench/progress.h - one line on a terminal while benchmarks run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bench/rounds.h"

typedef struct pki_bench_line {
    bool on; /* stderr is a terminal */
    uint32_t repetition, repetitions;
    uint64_t last; /* when it was written, ns */
} pki_bench_line;

pki_bench_line pki_bench_line_make(bool wanted, uint32_t repetitions);

/* A pki_bench_progress; user is a pki_bench_line. */
void pki_bench_line_show(void *user, const pki_bench_case *c, size_t done, size_t count);

/* The line's text: "[3/12] sum/n:1024  123.4 ns  +- 0.8 %". For tests, too. */
void pki_bench_line_text(const pki_bench_line *line, const pki_bench_case *c, size_t done,
                         size_t count, char *text, size_t size);
