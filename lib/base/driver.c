#include "base/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/dl.h"

/* As cuda.h numbers them: part of the driver's ABI. */
enum {
    BLOCK_THREADS = 1,
    BLOCK_SHARED = 8,
    WARP = 10,
    BLOCK_REGISTERS = 12,
    PROCESSORS = 16,
    PROCESSOR_THREADS = 39,
    MAJOR = 75,
    MINOR = 76,
    PROCESSOR_SHARED = 81,
    PROCESSOR_REGISTERS = 82,
    BLOCK_SHARED_MOST = 97
};

typedef struct table {
    int (*init)(unsigned flags);
    int (*count)(int *devices);
    int (*get)(int *device, int ordinal);
    int (*name)(char *name, int size, int device);
    int (*memory)(size_t *bytes, int device);
    int (*attribute)(int *value, int which, int device);
} table;

static const pki_dl_function functions[] = {
    {"cuInit", offsetof(table, init), false},
    {"cuDeviceGetCount", offsetof(table, count), false},
    {"cuDeviceGet", offsetof(table, get), true},
    {"cuDeviceGetName", offsetof(table, name), true},
    {"cuDeviceTotalMem_v2", offsetof(table, memory), true},
    {"cuDeviceGetAttribute", offsetof(table, attribute), true},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool asked, live;
static char why_not[192];
static int device_count;
static table driver;

void pki_driver_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    asked = live = false;
    device_count = 0;
}

static bool initialise(void)
{
    int error = driver.init(0);
    if (error)
        snprintf(why_not, sizeof why_not, "the CUDA driver does not start: cuInit says %d", error);
    else if ((error = driver.count(&device_count)) != 0)
        snprintf(why_not, sizeof why_not, "the CUDA driver does not count its devices: error %d",
                 error);
    else if (device_count <= 0)
        snprintf(why_not, sizeof why_not, "the CUDA driver shows no device");
    else
        return true;
    return false;
}

static bool open_driver(void)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    void *library = pki_dl_open("PK_CUDA_LIBRARY", names, why_not, sizeof why_not);
    return library &&
           pki_dl_bind(library, functions, PKI_COUNT_OF(functions), &driver, why_not,
                       sizeof why_not) &&
           initialise();
}

/* Asked once; why_not does not change afterwards. */
static bool is_live(void)
{
    pthread_mutex_lock(&lock);
    if (!asked) {
        live = open_driver();
        asked = true;
    }
    bool is = live;
    pthread_mutex_unlock(&lock);
    return is;
}

bool pki_driver_live(char *reason, size_t size)
{
    bool is = is_live();
    if (!is)
        snprintf(reason, size, "%s", why_not);
    return is;
}

unsigned pki_driver_devices(void)
{
    return is_live() ? (unsigned)device_count : 0;
}

static int attribute(int device, int which)
{
    int value = 0;
    return driver.attribute && driver.attribute(&value, which, device) == 0 ? value : 0;
}

bool pki_driver_device_get(unsigned ordinal, pki_driver_device *d)
{
    int handle;
    size_t bytes;
    memset(d, 0, sizeof *d);
    if (ordinal >= pki_driver_devices() || !driver.get || driver.get(&handle, (int)ordinal) != 0)
        return false;
    if (driver.name && driver.name(d->name, sizeof d->name, handle) != 0)
        d->name[0] = 0;
    if (driver.memory && driver.memory(&bytes, handle) == 0)
        d->memory_bytes = bytes;
    d->major = attribute(handle, MAJOR);
    d->minor = attribute(handle, MINOR);
    d->processors = attribute(handle, PROCESSORS);
    d->warp = attribute(handle, WARP);
    d->block_threads = attribute(handle, BLOCK_THREADS);
    d->processor_threads = attribute(handle, PROCESSOR_THREADS);
    d->block_registers = attribute(handle, BLOCK_REGISTERS);
    d->processor_registers = attribute(handle, PROCESSOR_REGISTERS);
    d->block_shared = attribute(handle, BLOCK_SHARED);
    d->block_shared_most = attribute(handle, BLOCK_SHARED_MOST);
    d->processor_shared = attribute(handle, PROCESSOR_SHARED);
    return true;
}
