/* lib/bench/forms/json_context.h - the machine and the circumstances, in a benchmark file. Only
 * bench/forms/json.c includes it. */
#ifndef PKI_BENCH_JSON_CONTEXT_H
#define PKI_BENCH_JSON_CONTEXT_H

#include "bench/forms/document.h"
#include "out/json_write.h"

/* "context":{...} */
void pki_bench_json_context(pki_json *json, const pki_bench_document *document);

#endif
