/* lib/base/cpu_files.h - what the kernel's files say of processors and of who had them.
 *
 * `root` stands before each path, "" for the machine itself: tests have trees of their own. What a
 * file does not say, or is not there, is 0 or false. Each call reads some small files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKI_CPUS_MOST 1024u
#define PKI_NODES_MOST 64u

/* Processors, by number. */
typedef struct pki_cpus {
    uint64_t bits[PKI_CPUS_MOST / 64];
} pki_cpus;

/* What /proc/cpuinfo says behind this word, of the first processor. */
bool pki_cpu_info(const char *root, const char *key, char *out, size_t size);

/* The processor's name: a model, or of ARM's, whose kernels give no name, the numbers of who has
 * made it and of which part it is. */
bool pki_cpu_name(const char *root, char *out, size_t size);

/* "0-3,8" */
pki_cpus pki_cpus_in(const char *list);
unsigned pki_cpus_count(const pki_cpus *set);
bool pki_cpus_have(const pki_cpus *set, unsigned number);
void pki_cpus_add(pki_cpus *into, const pki_cpus *more);
bool pki_cpus_meet(const pki_cpus *a, const pki_cpus *b);

/* What a thread of this process had, since it began. */
typedef struct pki_thread_cpu {
    uint64_t running, ready; /* ns on a processor; ready to run and without one */
    uint64_t forced, own;    /* switches away from it: taken from it, and given up by itself */
    pki_cpus allowed;
} pki_thread_cpu;

/* with_status: forced, own and allowed, too. */
bool pki_thread_cpu_read(const char *root, uint32_t tid, bool with_status, pki_thread_cpu *out);

/* The process's threads; how many of them have found room. */
size_t pki_thread_ids(const char *root, uint32_t *tids, size_t room);

/* The tightest bound on CPU time of the cgroups that the process is in, version 1 or 2. */
typedef struct pki_quota {
    double processors;           /* 0: there is none */
    uint64_t periods, throttled; /* so many have passed in which it ran, and it was stopped in */
    uint64_t throttled_ns;
} pki_quota;

bool pki_quota_read(const char *root, pki_quota *out);

#define PKI_CLOCKS_MOST 16u /* processors whose clock is looked at */

/* kHz, the mean of these processors (or the first of them) now, and the most that they can do;
 * false if not known. */
bool pki_clock_rates_read(const char *root, const pki_cpus *of, double *now, double *most);

/* How often these have held their clock down for heat. */
uint64_t pki_heat_read(const char *root, const pki_cpus *of);

/* Bytes of the process's own memory on each node, and which of these its processors belong to. */
typedef struct pki_nodes {
    unsigned count;
    uint64_t bytes[PKI_NODES_MOST];
    bool ours[PKI_NODES_MOST];
} pki_nodes;

/* On a machine of one node nothing is read: false. A large process takes the kernel a while. */
bool pki_nodes_read(const char *root, const pki_cpus *allowed, pki_nodes *out);
