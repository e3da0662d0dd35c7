/* lib/base/loader.h - libraries that are opened at run time */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- libraries that may be absent, opened while the program runs ---- */

/* A backend never links its library: absence is a reason in words, not a loader's error. An
 * environment variable can name another file than the usual one (read with secure_getenv): a copy
 * in an unusual place, or a test's double, which the loader's search path must not carry since
 * other libraries would take it, too. */

struct dl_phdr_info;

/* What dl_iterate_phdr does. While another thread is in one, glibc's fork leaves a child in which
 * every such call waits for ever, exceptions of C++ and backtraces included; so ours do not happen
 * while somebody forks (the functions below). */
int pki_dl_each(int (*visit)(struct dl_phdr_info *object, size_t size, void *arg), void *arg);

/* For pthread_atfork. The first waits for a round that is under way, microseconds, and gives up
 * after 100 ms: a round itself waits for the loader. */
void pki_dl_before_fork(void);
void pki_dl_after_fork_in_parent(void);
void pki_dl_after_fork(void);

/* False in a program of -static: what dlopen brings into it has a second C library in tow. */
bool pki_dl_possible(void);

#define PKI_DL_STATIC "the program is linked with -static: no library can be opened"

/* The file that the variable names, else the first of the NULL-terminated names that the process
 * has loaded already, since two copies of a library do not agree, else the first that can be
 * opened. NULL: none, and why in words. Never closed again by anybody: its threads may be inside.
 */
void *pki_dl_open(const char *variable, const char *const names[], char *reason, size_t size);

/* A function of the library, and where in a table its pointer goes. */
typedef struct pki_dl_function {
    const char *name;
    size_t offset;
    bool optional; /* NULL in the table if it is not there */
} pki_dl_function;

/* The entry of one in a list. */
#define PKI_DL_FUNCTION(table, member, name, optional)                                             \
    {                                                                                              \
        name, offsetof(table, member), optional                                                    \
    }

/* False if one that is not optional is missing, with its name in the reason. */
bool pki_dl_bind(void *library, const pki_dl_function functions[], size_t count, void *table,
                 char *reason, size_t size);

/* ---- driver ---- */

/* Is there a CUDA driver with a device? The one answer that all who would use
 * CUDA's libraries go by.
 *
 * Many of those libraries say "success" where there is no driver, and look for it again at each
 * call that fails. cuInit and cuDeviceGetCount do not lie; they are called once per process, at the
 * first question. libcuda.so.1 is opened while the program runs, or the file that PK_CUDA_LIBRARY
 * names.
 *
 * Threads: any. Fork: a child asks again, since the driver does not survive one. */

/* If not, why not. */
bool pki_driver_live(char *reason, size_t size);

/* Devices that the driver shows to this process; 0 if it is not live. */
unsigned pki_driver_devices(void);

typedef struct pki_driver_device {
    char name[128];
    uint64_t memory_bytes;
    int major, minor; /* compute capability */
    int processors, warp, block_threads, processor_threads;
    int block_registers, processor_registers;
    int block_shared, block_shared_most, processor_shared; /* bytes */
} pki_driver_device;

/* False if the driver does not know it. What it does not tell is 0. */
bool pki_driver_device_get(unsigned ordinal, pki_driver_device *device);

void pki_driver_after_fork(void);

/* ---- NVIDIA's libraries in Python's packages, where no loader looks ---- */

/* Pip installs them as .../site-packages/nvidia/PACKAGE/lib/FILE. Looked through, in this order:
 * the packages that this process has loaded something from already, which suit it best; those of
 * $VIRTUAL_ENV and $CONDA_PREFIX; those of /usr/local and /usr. */

/* Opens the first of the files, each sought in all of the packages before the next one; both lists
 * end with NULL. NULL if there is none, and why in words. Never closed again. */
void *pki_wheel_open(const char *const files[], const char *const packages[], char *reason,
                     size_t size);
