/* lib/session/captures/capture_path.h - names of captures: a pattern in which %s is the first step
 * and %% a %. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* capture_path with %s kept for later, and all else for pki_path_expand. False: too long. */
bool pki_capture_path_prepare(const char *path, char out[PATH_MAX]);

/* Has it a %s? */
bool pki_capture_path_is_one(const char *pattern);

/* run.json.gz -> run-%s.json.gz */
bool pki_capture_path_derive(const char *trace, char out[PATH_MAX]);

/* False: too long. */
bool pki_capture_path_expand(const char *pattern, const char *step, char out[PATH_MAX]);

/* Makes it mean the same after the program has changed its working directory. */
void pki_capture_path_anchor(char pattern[PATH_MAX]);
