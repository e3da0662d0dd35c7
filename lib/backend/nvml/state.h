/* lib/backend/nvml/state.h - what the sampling thread knows, and that in words. Under its lock, but
 * for what only the thread reads. */
#pragma once

#include <pthread.h>

#include <pk/counter.h>
#include <pk/session.h>

#include "backend/nvml/reading.h"
#include "backend/nvml/visible.h"

typedef struct pki_nvml_slot { /* one reading of one device */
    pk_counter *counters[PKI_NVML_VALUES];
    uint64_t due, period, took; /* ns */
    unsigned failures;          /* in a row */
    int code;                   /* of the last failure */
    bool off;
} pki_nvml_slot;

typedef struct pki_nvml_device {
    pki_nvml_handle handle;
    unsigned ordinal, mig;
    bool vgpu;
    int lost; /* NVML's code, after which there are no more calls; 0: it is there */
    pki_nvml_slot slots[PKI_NVML_READINGS];
    uint64_t looked, held[9]; /* times that there were reasons to be read, and each bit was set */
} pki_nvml_device;

typedef struct pki_nvml_state {
    pthread_mutex_t lock;
    const pki_nvml *nvml;
    pki_nvml_wish wish;
    char list[1024], order[32]; /* its strings */
    pki_nvml_visible visible;
    pki_nvml_device devices[PKI_NVML_DEVICES];
    unsigned device_count;
    char version[32];
    bool running, ready, stopping; /* the thread is there; has looked for devices; is to end */
    const char *calling;           /* function of NVML that it is in */
    uint64_t called_at;
    const char *failed; /* the last one that failed while looking for devices, and its code */
    int code;
    uint64_t cpu; /* of the thread, ns */
} pki_nvml_state;

void pki_nvml_state_describe(const pki_nvml_state *state, pk_backend_info *info);
