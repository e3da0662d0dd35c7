/* lib/out/metrics/write.h - the words of Prometheus' text: families, their samples, labels and
 * values. For the files beside this one.
 *
 *     pki_prom_family(w, "pk_records_total", "counter", "Regions and points ...");
 *     pki_prom_sample(w, "");
 *     pki_prom_label(w, "what", "region");
 *     pki_prom_count(w, 17);
 */
#pragma once

#include "out/metrics/metrics.h"

typedef struct pki_prom {
    const pki_metrics *metrics;
    FILE *to;
    const char *family;
} pki_prom;

void pki_prom_family(pki_prom *w, const char *name, const char *type, const char *help);

/* The family's name, the suffix and the labels that all samples have. Its own follow, and a value.
 */
void pki_prom_sample(pki_prom *w, const char *suffix);
void pki_prom_label(pki_prom *w, const char *key, const char *value);

void pki_prom_count(pki_prom *w, uint64_t value);
void pki_prom_seconds(pki_prom *w, uint64_t ns);         /* to the nanosecond */
void pki_prom_joules(pki_prom *w, uint64_t microjoules); /* to that */
void pki_prom_real(pki_prom *w, double value);

/* A family of one sample. */
void pki_prom_one_count(pki_prom *w, const char *name, const char *type, const char *help,
                        uint64_t value);
void pki_prom_one_time(pki_prom *w, const char *name, const char *type, const char *help,
                       uint64_t ns);
void pki_prom_one_real(pki_prom *w, const char *name, const char *type, const char *help,
                       double value);

/* The edges from the first one on, each or every other one. */
typedef struct pki_prom_edges {
    unsigned first, end, stride;
} pki_prom_edges;

/* stats NULL: nothing yet. */
void pki_prom_histogram(pki_prom *w, const char *name, const char *help, const pk_stats *stats,
                        pki_prom_edges edges);

/* What the process costs beside time: families of what was measured, and no others. */
void pki_prom_costs(pki_prom *w);
