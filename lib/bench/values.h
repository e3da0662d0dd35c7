/* lib/bench/values.h - times and shares as people write them on a command line. The locale has to
 * be plain. */
#pragma once

#include <stdbool.h>

/* "0.5", "0.5s", "500ms", "5min": in ns, above 0. Without a unit: seconds. */
bool pki_bench_read_time(const char *text, double *ns);

/* "1%" or "0.01": below 1; as a percentage below 1000 %. */
bool pki_bench_read_share(const char *text, double *share);
