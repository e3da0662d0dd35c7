/* tools/machine/measure.h - what `pk machine` finds out. */
#pragma once

#include "bench/environment.h"
#include "command_line.h"
#include "complaint.h"
#include "machine/storage.h"
#include "measure/machine/machine.h"

typedef struct machine_wish {
    const char *folder, *output;
    uint32_t rounds, memory_mib, storage_mib;
    bool json, show;
    operands none; /* it takes no files */
} machine_wish;

#define MACHINE_DEVICES 16u

typedef struct machine_found {
    pki_machine machine; /* what is kept */
    pki_bench_environment environment;
    unsigned processors;     /* that the process may use: as many threads are "all" */
    double clock_hz;         /* 0: not known */
    uint64_t cache_bytes;    /* largest caches of all of them together */
    bool cache_known;        /* else it is a guess */
    uint64_t array_bytes;    /* each of the three arrays, of all threads together */
    double on_processor;     /* share of the rounds' time that the threads had a processor */
    storage_figures storage; /* folder NULL: not asked for */
    unsigned device_count;
    char devices[MACHINE_DEVICES][96]; /* by NVML's names */
    char no_devices[160];              /* why there are none */
} machine_found;

/* Memory and arithmetic, on one processor and on all. False, and why. */
bool machine_measure(const machine_wish *wish, machine_found *found, complaint *why);

/* The devices' names. */
void machine_find_devices(machine_found *found);

/* For people; as JSON. What was not measured is left out. */
void machine_show_text(const machine_found *found);
void machine_show_json(const machine_found *found);
