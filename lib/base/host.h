/* lib/base/host.h - the machine that the process runs on. What is not known is "" or 0. */
#pragma once

#include <stdint.h>

typedef struct pki_host {
    uint64_t memory_bytes, processors; /* processors: online */
    char cpu[128], architecture[32], kernel[96];
    char gpu[96], driver[96]; /* of NVIDIA's, the first; as its driver's files in /proc say */
} pki_host;

/* Reads files of /proc and asks uname: some 50 us. */
void pki_host_read(pki_host *m);
