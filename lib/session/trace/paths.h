/* lib/session/trace/paths.h - where the arena and the trace go, and what to do when somebody is
 * there already.
 *
 * The files of the arena and of the trace are locked while they are in use (pki_own_lock). Found
 * unlocked, an arena is what a killed run has left: it and the trace it belongs to are kept under
 * ".prev" names, for `pk recover`. If one of the two is found locked, another process is writing a
 * trace of this name at this moment (ranks without %r in the path, most often): this one takes a
 * name with its pid in it.
 */
#pragma once

#include "core/arena.h"
#include "session/options/config.h"

typedef struct pki_paths {
    char trace[PATH_MAX];   /* "" for none */
    char arena[PATH_MAX];   /* "" for memory only */
    char capture[PATH_MAX]; /* pattern; %s is still in it; "" for none */
    bool renamed;           /* another process has the name that was asked for */
} pki_paths;

/* Decides on both paths and makes the arena. */
pk_status pki_paths_open(const pki_config *config, pki_paths *paths, pki_arena **arena);

/* Says why there can be no such file of a session ("trace run.json: ..."), and answers the status
 * of that error. nothing: as in pki_target_hints. */
pk_status pki_paths_fail(const char *what, const char *path, int error, const char *nothing);

/* The same of the trace. */
pk_status pki_paths_trace_error(const char *trace, int error);

/* Makes a path mean the same after the program has changed its working directory. */
void pki_paths_anchor(char path[PATH_MAX]);

/* For a session that could not begin: the arena's file is gone, *arena is NULL before anything else
 * happens to it (the child of a fork looks there), and what it was is left to destroy. */
pki_arena *pki_paths_undo(const pki_paths *paths, pki_arena **arena);

/* At a session's end: without keep the file is of no more use and goes, but not another that
 * has come to its name; else it is for `pk recover`, or for whoever takes the name next. */
void pki_paths_end(const pki_paths *paths, const pki_arena *arena, bool keep);
