#include "out/metrics/write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "out/emit.h"
#include "stats/buckets.h"

/* A label's value: backslashes, quotes and line ends escaped, and valid UTF-8. */
static void put_text(FILE *to, const char *text)
{
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        n = pki_utf8_length(text, left);
        if (n == 0) {
            fputs("\xEF\xBF\xBD", to);
            n = 1;
        } else if (*text == '\n') {
            fputs("\\n", to);
        } else {
            if (*text == '"' || *text == '\\')
                fputc('\\', to);
            fwrite(text, 1, n, to);
        }
    }
}

void pki_prom_family(pki_prom *w, const char *name, const char *type, const char *help)
{
    w->family = name;
    fprintf(w->to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void pki_prom_label(pki_prom *w, const char *key, const char *value)
{
    fprintf(w->to, ",%s=\"", key);
    put_text(w->to, value);
    fputc('"', w->to);
}

void pki_prom_sample(pki_prom *w, const char *suffix)
{
    fprintf(w->to, "%s%s{program=\"", w->family, suffix);
    put_text(w->to, w->metrics->program);
    fprintf(w->to, "\",rank=\"%" PRId32 "\"", w->metrics->rank);
}

void pki_prom_count(pki_prom *w, uint64_t value)
{
    fprintf(w->to, "} %" PRIu64 "\n", value);
}

static void put_seconds(FILE *to, uint64_t ns)
{
    fprintf(to, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

void pki_prom_seconds(pki_prom *w, uint64_t ns)
{
    fputs("} ", w->to);
    put_seconds(w->to, ns);
    fputc('\n', w->to);
}

void pki_prom_real(pki_prom *w, double value)
{
    char text[32];
    *pki_put_double(text, value) = '\0';
    fprintf(w->to, "} %s\n",
            isnan(value)   ? "NaN"
            : isinf(value) ? value > 0 ? "+Inf" : "-Inf"
                           : text);
}

void pki_prom_one_count(pki_prom *w, const char *name, const char *type, const char *help,
                        uint64_t value)
{
    pki_prom_family(w, name, type, help);
    pki_prom_sample(w, "");
    pki_prom_count(w, value);
}

void pki_prom_one_time(pki_prom *w, const char *name, const char *type, const char *help,
                       uint64_t ns)
{
    pki_prom_family(w, name, type, help);
    pki_prom_sample(w, "");
    pki_prom_seconds(w, ns);
}

void pki_prom_joules(pki_prom *w, uint64_t microjoules)
{
    fprintf(w->to, "} %" PRIu64 ".%06" PRIu64 "\n", microjoules / 1000000, microjoules % 1000000);
}

void pki_prom_one_real(pki_prom *w, const char *name, const char *type, const char *help,
                       double value)
{
    pki_prom_family(w, name, type, help);
    pki_prom_sample(w, "");
    pki_prom_real(w, value);
}

/* ---- histograms ---- */

/* The first bucket that lies behind the edge, and the edge itself, ns. */
static uint64_t edge_at(unsigned i)
{
    unsigned octave = PKI_METRICS_FIRST_OCTAVE + i / 2;
    return ((uint64_t)1 << octave) + (i % 2 ? (uint64_t)1 << (octave - 1) : 0);
}

static void put_bucket(pki_prom *w, uint64_t last_ns, uint64_t count)
{
    pki_prom_sample(w, "_bucket");
    fputs(",le=\"", w->to);
    put_seconds(w->to, last_ns);
    fprintf(w->to, "\"} %" PRIu64 "\n", count);
}

void pki_prom_histogram(pki_prom *w, const char *name, const char *help, const pk_stats *s,
                        pki_prom_edges e)
{
    uint64_t count = 0;
    uint32_t bucket = 0;
    pki_prom_family(w, name, "histogram", help);
    for (unsigned i = e.first; i < e.end; i += e.stride) {
        for (; bucket < pki_bucket(edge_at(i)); bucket++)
            count += s ? s->buckets[bucket] : 0;
        put_bucket(w, edge_at(i) - 1, count);
    }
    for (; s && bucket < PK_STATS_BUCKETS; bucket++)
        count += s->buckets[bucket];
    pki_prom_sample(w, "_bucket");
    fprintf(w->to, ",le=\"+Inf\"} %" PRIu64 "\n", count);
    pki_prom_sample(w, "_sum");
    pki_prom_seconds(w, s ? s->sum : 0);
    pki_prom_sample(w, "_count");
    pki_prom_count(w, count);
}
