/* tools/bench/baseline.h - stored runs to compare with: found by machine, program and options.
 *
 *     DIR/FINGERPRINT/PROGRAM-CONFIGURATION/DATE-LAUNCH.json
 *
 * FINGERPRINT is the file's (docs/internals/bench.md), "unknown" for Google's; CONFIGURATION a hash
 * of its options. Every file is one run at one moment; the spread between them is what tells a
 * change from the machine's moods. Each is a whole file of benchmarks that can be used by itself.
 */
#pragma once

#include "bench/bench_file.h"

#define BASELINE_KEEP 20

typedef struct baseline {
    bench_file *files; /* oldest first */
    size_t count;
    bool other_machine; /* there was none of this one */
} baseline;

/* The stored runs that have a benchmark in common with `fresh`, at most the `keep` newest ones, and
 * of those of one minute the last: a moment is what is counted. None is fine; false, and why, if
 * the folder cannot be read or what lies in it is no such file. */
bool baseline_find(const char *folder, const bench_file *fresh, size_t keep, baseline *out,
                   complaint *why);
void baseline_finish(baseline *b);

/* Stores a copy of fresh's file, and removes the oldest ones beyond `keep`. False, and why. */
bool baseline_store(const char *folder, const bench_file *fresh, size_t keep, complaint *why);
