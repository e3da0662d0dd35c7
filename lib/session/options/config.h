/* lib/session/options/config.h - pk_options and the environment, checked and resolved */
#pragma once

#include <pk/session.h>
#include <pk/status.h>

#include <limits.h>
#include <sched.h>
#include <stdbool.h>

#include "base/process.h"
#include "capture/capture.h"
#include "measure/machine/roofline.h"

/* ---- options that are text ---- */

/* An option's text, NULL for none, and what it is called. */
typedef struct pki_config_text {
    const char *text, *source;
} pki_config_text;

/* ---- pk_options and the environment, checked and resolved ---- */

#define PKI_MEMORY_DEFAULT ((uint64_t)1 << 30)
#define PKI_MEMORY_LEAST ((uint64_t)4 << 20)
#define PKI_RING_RECORDS 65536u
#define PKI_WINDOW_SECONDS 60u /* where neither steps nor seconds are asked for */

typedef struct pki_config {
    uint32_t ring_records;
    bool spares; /* a full ring may reach further (session/collector/drain.h) */
    uint64_t
        memory_bytes; /* 0: PKI_MEMORY_DEFAULT, or less where the process may not have as much */
    uint64_t trace_max_bytes;
    uint64_t trace_rotate_bytes; /* 0: one file */
    uint32_t trace_keep;         /* 0: all of them */
    uint32_t flush_ms;
    bool report_threads;
    uint32_t warmup_steps;
    uint32_t monotonic;       /* the clock */
    const char *clock_reason; /* why the cycle counter is not trusted: the clock is CLOCK_MONOTONIC
                                 although nobody asked for that, or the counter because somebody
                                 did; static text or NULL */
    pki_world world;
    char trace[PATH_MAX]; /* "" for none */
    bool compressed;
    char report[PATH_MAX]; /* "" for none, "-" for stderr */
    bool report_json;
    char arena[PATH_MAX]; /* "" for the default, "none" for memory only */
    uint32_t history_steps;
    uint32_t samples;   /* a second, of threads; 0: none... */
    bool samples_asked; /* ...if this is what was asked for */
    uint64_t history_bytes;
    pki_clauses capture;
    char capture_path[PATH_MAX]; /* %s is still in it; "" without a history */
    bool capture_compressed;
    uint32_t captures_per_hour;
    uint64_t capture_bytes_per_hour;
    char history[PATH_MAX]; /* what a killed run's history becomes, where there is no trace; "":
                               there is one, or no history */
    char backends[256];     /* "" for the default */
    bool cupti_window;      /* for these steps only */
    uint64_t cupti_first, cupti_last;
    bool cupti_armed; /* captures say when it records */
    bool cupti_graph_nodes;
    bool cupti_sync_events;
    bool nvtx_consume;
    char nvtx_shim[PATH_MAX]; /* "" for the default */
    bool gpu_graphs;          /* spans are put into them while they are captured */
    bool environment_off;
    double overhead_max; /* of the process's CPU time; 0: no bound */
    bool collector_placed;
    cpu_set_t collector_cpus; /* if so */
    char windows[PATH_MAX];   /* "" for none */
    bool windows_compressed;
    uint32_t window_steps, window_seconds; /* 0: not by that; one of them is set if there are any */
    uint64_t windows_max_bytes;
    char metrics[PATH_MAX]; /* "" for none */
    uint32_t metrics_seconds;
    char goodput[PATH_MAX];      /* "" for none */
    bool goodput_of_each;        /* a file for each rank */
    bool costs_io, costs_energy; /* what the run costs beside time */
    bool costs_hardware, costs_software, costs_topdown;
    bool costs_memory;           /* of devices */
    uint32_t hang_seconds;       /* 0: no watchdog */
    char hang_command[PATH_MAX]; /* "" for none */
    char machine[PATH_MAX];      /* "" for the usual place, "none" */
    pki_peak_wish peak;
    char job[PATH_MAX]; /* "" for none */
} pki_config;

/* Also sets where messages go. PK_EINVAL names the option or variable and what is wrong with it. */
pk_status pki_config_read(pki_config *config, const pk_options *options);
