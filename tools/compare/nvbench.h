/* tools/compare/nvbench.h - files of nvbench */
#pragma once

#include <jansson.h>

#include "compare/compare.h"

bool nvbench_is_one(json_t *document);

/* False, and why. */
bool nvbench_read(json_t *document, bench_file *file, const char *run, complaint *why);
