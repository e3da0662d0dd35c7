/* lib/out/salvage.h - a killed run's arena, read from its file */
#pragma once

#include "core/arena.h"
#include "core/thread.h"
#include "out/chrome/chrome.h"

/* ---- a killed run's arena, read from its file ---- */

/* The file may come from anywhere: nothing in it is believed before it has been checked against the
 * file's size. Pointers in it are addresses of the process that wrote it and are turned into
 * offsets. */

typedef struct pki_salvage {
    const char *base;
    size_t bytes;
    const pki_arena_header *header;
    pki_commit commit; /* the one in force */
    uint32_t generation;
    uint32_t block_count;          /* of the header, or fewer if they cannot all be there */
    const pki_names_entry **names; /* by id */
    pki_chrome chrome;
    uint64_t last_ticks; /* the latest moment that is known */
    pk_counts counts;
    char why[200]; /* in words, if opening failed */
} pki_salvage;

/* False and why. */
bool pki_salvage_open(pki_salvage *salvage, const char *path);
void pki_salvage_close(pki_salvage *salvage);

/* The process that is still writing this arena; 0 if none, -1 if the arena does not say. */
int pki_salvage_writer(const char *path);

/* Is the file an arena, by its first bytes? */
bool pki_salvage_recognise(const char *path);

/* Has nothing been written into it yet, not even who it belongs to? */
bool pki_salvage_is_blank(const char *path);

/* Of an arena whose process ended before pk_start had returned. */
#define PKI_SALVAGE_UNFINISHED "the run ended within pk_start: nothing had been recorded"

/* Is it one of a span of names, and does it end within what is left of that? */
bool pki_salvage_name_is_whole(const pki_names_entry *entry, uint64_t left);

/* Text of the trace that was formatted and not yet in the file. */
const char *pki_salvage_buffer(const pki_salvage *salvage, size_t *bytes);

/* Each further event, preceded by ",\n": names of threads, what is in the rings, and what was open
 * when the process ended. */
typedef bool pki_salvage_sink(void *user, const char *event, size_t bytes);
bool pki_salvage_events(pki_salvage *salvage, pki_salvage_sink *sink, void *user);

/* The head of the trace with the counts of now; call it behind pki_salvage_events. */
size_t pki_salvage_head(const pki_salvage *salvage, char out[PKI_HEAD_BYTES]);
