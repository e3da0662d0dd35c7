/* lib/bench/forms/json_context.h - the machine and the circumstances, in a benchmark file. Only
 * bench/forms/json.c includes it. */
#pragma once

#include "bench/forms/document.h"
#include "out/json_write.h"

/* "context":{...} */
void pki_bench_json_context(pki_json *json, const pki_bench_document *document);
