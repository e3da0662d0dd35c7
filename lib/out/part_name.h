/* lib/out/part_name.h - what the files of a trace are called that is cut into several.
 *
 * run.json is written; once it is full it becomes run.part1.json, the next one run.part2.json.
 * Tools find them by these names.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* "run.part3.json" of "run.json" and 3. False: it is longer than a path can be. */
bool pki_part_name(const char *path, uint32_t part, char name[PATH_MAX]);

/* 3 of "run.part3.json" beside "run.json"; 0: it is no part of that. Both without folders. */
uint32_t pki_part_of(const char *name, const char *of);

/* Is it a part's name, whatever it is of? */
bool pki_part_is_one(const char *path);
