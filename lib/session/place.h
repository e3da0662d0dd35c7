/* lib/session/place.h - where the arena and the trace go, and what to do when somebody is there
 * already.
 *
 * The arena's file is locked while its process lives. Found unlocked, it is what a killed run has
 * left: it and the trace it belongs to are kept under ".prev" names, for `pk recover`. Found
 * locked, another process is writing a trace of this name at this moment (ranks without %r in the
 * path, most often): this one takes a name with its pid in it.
 */
#ifndef PKI_SESSION_PLACE_H
#define PKI_SESSION_PLACE_H

#include "core/arena.h"
#include "session/config.h"

typedef struct pki_place {
    char trace[PATH_MAX]; /* "" for none */
    char arena[PATH_MAX]; /* "" for memory only */
} pki_place;

/* Decides on both paths and makes the arena. */
pk_status pki_place_open(const pki_config *config, pki_place *place, pki_arena **arena);

/* Makes a path mean the same after the program has changed its working directory. */
void pki_place_anchor(char path[PATH_MAX]);

/* After a clean stop: the arena's file has nothing more to tell. */
void pki_place_remove_arena(const pki_place *place);

#endif
