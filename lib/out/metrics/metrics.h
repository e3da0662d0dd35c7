/* lib/out/metrics/metrics.h - a run's figures for Prometheus */
#pragma once

#include <stdio.h>

#include "core/overhead.h"
#include "measure/summary.h"

/* ---- a run's figures for Prometheus ---- */

/* The text that node exporter's textfile collector reads, and everything else that reads version
 * 0.0.4 of the text format.
 *
 * All names begin with pk_, end in their unit, and in _total where they only grow. Every sample has
 * the labels program and rank, so files of several ranks lie beside each other. The histogram of
 * the steps has edges of our own buckets (stats/buckets.h): its counts are exact. A bucket holds
 * values below its edge, and `le` means "or equal", so each `le` is the last nanosecond before one.
 *
 * At most PKI_METRICS_SERIES series, whatever the program does: regions have what costs that are
 * asked for leave of them. */

#define PKI_METRICS_SERIES 352 /* 102 of them are of requests */
#define PKI_METRICS_REGIONS 19 /* and one for all others; they give way to costs */
#define PKI_METRICS_ENERGY 12  /* counters */
#define PKI_METRICS_PLACES 9   /* devices, and the host's pinned memory */
#define PKI_METRICS_COUNTERS 16
#define PKI_METRICS_COMMS 8
#define PKI_METRICS_VERDICTS 8

/* Those of requests' stages: one in an octave, from 1 ms on to 8.6 s for tokens, and to 137 s for
 * what waits, as far as OpenTelemetry's conventions go. */
enum {
    PKI_METRICS_DURATION,
    PKI_METRICS_TTFT,
    PKI_METRICS_QUEUE,
    PKI_METRICS_TPOT, /* from here on of tokens */
    PKI_METRICS_ITL,
    PKI_METRICS_STAGES
};
#define PKI_METRICS_FIRST_STAGE 20
#define PKI_METRICS_LAST_STAGE 37
#define PKI_METRICS_LAST_TOKEN 33

typedef struct pki_metrics_region {
    const char *name;
    uint32_t kind;
    uint64_t calls, time, self, bytes; /* ns */
    uint64_t untimed;                  /* calls that were counted alone */
} pki_metrics_region;

typedef struct pki_metrics_counter {
    const char *name, *unit;
    double last;
} pki_metrics_counter;

typedef struct pki_metrics_verdict {
    char name[32];
    pki_severity severity;
} pki_metrics_verdict;

typedef struct pki_metrics_energy {
    char name[48];
    uint64_t microjoules;
} pki_metrics_energy;

/* Bytes of a device, or pinned of the host's. */
typedef struct pki_metrics_place {
    char name[16];
    uint64_t live, peak, pool_reserved, pool_used;
} pki_metrics_place;

/* What the process costs beside time; what was not measured is not known. */
typedef struct pki_metrics_costs {
    pki_memory_sum memory; /* looks 0: not known */
    bool io_known, allocated_known;
    uint64_t allocated; /* bytes alive */
    pki_io_counts io;
    size_t energy_count;
    pki_metrics_energy energy[PKI_METRICS_ENERGY];
    size_t place_count;
    pki_metrics_place places[PKI_METRICS_PLACES];
    pki_goodput_summary goodput;           /* up 0: not known */
    uint64_t saves, save_bytes, save_time; /* of checkpoints */
    uint64_t forced, own;                  /* switches of the thread that makes steps */
} pki_metrics_costs;

typedef struct pki_metrics {
    const char *program, *host, *version;
    int32_t rank, world_size;
    uint32_t pid;
    bool running;
    uint64_t now_unix, wall; /* ns */
    pk_counts counts;
    pki_toll toll;
    uint64_t items, kinds[PKI_SHARES];          /* of all steps, ns */
    pki_utilisation utilisation;                /* of the usual steps, warm-up included */
    const pk_stats *steps;                      /* NULL: none. Their durations */
    const pk_stats *stages[PKI_METRICS_STAGES]; /* of requests. NULL: none */
    uint64_t requests_good, outcomes[3], tokens, preemptions; /* by pk_request_outcome */
    pki_metrics_costs costs;
    size_t region_count, counter_count, comm_count, verdict_count;
    pki_metrics_region regions[PKI_METRICS_REGIONS + 1];
    pki_metrics_counter counters[PKI_METRICS_COUNTERS];
    const pki_comm_row *comms;
    pki_metrics_verdict verdicts[PKI_METRICS_VERDICTS];
} pki_metrics;

/* How many regions may have series of their own beside what is asked for. */
size_t pki_metrics_room(bool io, bool energy, bool goodput, bool devices);

/* Write errors stick to the stream. */
void pki_metrics_put(const pki_metrics *metrics, FILE *file);
