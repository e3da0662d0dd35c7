/* examples/train/options.h - what the trainer is asked for, and how it says what is wrong */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ---- the one clear line on stderr that every failure of the trainer gets ---- */

/* "pk-train: ..." */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* ---- the trainer's command line ---- */

typedef struct options {
    uint64_t steps, batch, seq, layers, dim, heads, seed;
    double rate, clip, decay; /* rate: of learning */
    uint64_t warmup;
    const char *checkpoint; /* NULL: none */
    uint64_t checkpoint_every;
    bool resume;
    uint64_t slow_ms; /* as in loader.h */
    uint64_t slow_step;
    uint64_t slow_compute; /* percent that computing a gradient is to take longer */
    uint64_t shard;        /* of several trainers: which; each has batches of its own */
    uint64_t queue;        /* batches ready at most */
    uint64_t print_every;
    bool quiet;
    const char *trace, *report; /* NULL: the environment decides */
    bool help;
    char *const *files; /* NULL: the text that ships with the system */
    int file_count;
} options;

/* False after complaining. The strings are those of argv. */
bool options_parse(options *o, int argc, char *const *argv);

/* What --help prints. */
void options_print_help(void);
