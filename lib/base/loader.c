#include "base/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "base/compiler.h"

/* ---- libraries that may be absent, opened while the program runs ---- */

/* ---- rounds through the objects that are loaded ---- */

static pthread_mutex_t rounds = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool holds_rounds; /* from before a fork until after it */

int pki_dl_each(int (*visit)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    pthread_mutex_lock(&rounds);
    int result = dl_iterate_phdr(visit, arg);
    pthread_mutex_unlock(&rounds);
    return result;
}

void pki_dl_before_fork(void)
{
    const struct timespec pause = {0, 50000};
    int saved = errno; /* a signal interrupts the pause */
    for (int i = 0; i < 2000 && !holds_rounds; i++) {
        holds_rounds = pthread_mutex_trylock(&rounds) == 0;
        if (!holds_rounds)
            nanosleep(&pause, NULL);
    }
    errno = saved;
}

void pki_dl_after_fork_in_parent(void)
{
    if (holds_rounds)
        pthread_mutex_unlock(&rounds);
    holds_rounds = false;
}

void pki_dl_after_fork(void)
{
    if (!holds_rounds) /* then a thread that is not here may have it */
        rounds = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pki_dl_after_fork_in_parent();
}

/* ---- libraries ---- */

/* In a namespace of dlmopen the first one is what was loaded into that. */
static int has_loader(struct dl_phdr_info *program, size_t size, void *found)
{
    (void)size;
    for (unsigned i = 0; i < program->dlpi_phnum; i++)
        if (program->dlpi_phdr[i].p_type == PT_INTERP)
            *(bool *)found = true;
    return 1;
}

/* The kernel says where it has put the loader, unless that was started by its own name; then the
 * program, which comes first, names it. */
bool pki_dl_possible(void)
{
    bool found = getauxval(AT_BASE) != 0;
    if (!found)
        pki_dl_each(has_loader, &found);
    return found;
}

static void *open_one(const char *name, char *reason, size_t size)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();
    if (!library)
        snprintf(reason, size, "%s", why ? why : "it cannot be opened");
    return library;
}

void *pki_dl_open(const char *variable, const char *const names[], char *reason, size_t size)
{
    const char *given = secure_getenv(variable);
    if (!pki_dl_possible()) {
        snprintf(reason, size, "%s", PKI_DL_STATIC);
        return NULL;
    }
    if (given && *given)
        return open_one(given, reason, size);
    void *library = NULL;
    for (size_t i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; names[i] && !library; i++)
        library = open_one(names[i], reason, size);
    return library;
}

bool pki_dl_bind(void *library, const pki_dl_function functions[], size_t count, void *table,
                 char *reason, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function && !functions[i].optional) {
            snprintf(reason, size, "the library has no %s", functions[i].name);
            return false;
        }
        memcpy((char *)table + functions[i].offset, &function, sizeof function);
    }
    return true;
}

/* ---- driver ---- */

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

static const pki_dl_function driver_functions[] = {
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
           pki_dl_bind(library, driver_functions, PKI_COUNT_OF(driver_functions), &driver, why_not,
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

static int attribute_of(int device, int which)
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
    d->major = attribute_of(handle, MAJOR);
    d->minor = attribute_of(handle, MINOR);
    d->processors = attribute_of(handle, PROCESSORS);
    d->warp = attribute_of(handle, WARP);
    d->block_threads = attribute_of(handle, BLOCK_THREADS);
    d->processor_threads = attribute_of(handle, PROCESSOR_THREADS);
    d->block_registers = attribute_of(handle, BLOCK_REGISTERS);
    d->processor_registers = attribute_of(handle, PROCESSOR_REGISTERS);
    d->block_shared = attribute_of(handle, BLOCK_SHARED);
    d->block_shared_most = attribute_of(handle, BLOCK_SHARED_MOST);
    d->processor_shared = attribute_of(handle, PROCESSOR_SHARED);
    return true;
}

/* ---- NVIDIA's libraries in Python's packages, where no loader looks ---- */

#define PACKAGES "/site-packages/nvidia/"
#define DEBIAN_PACKAGES "/dist-packages/nvidia/"
#define MOST_ROOTS 12

/* Folders called nvidia, or patterns for them. */
typedef struct roots {
    char paths[MOST_ROOTS][PATH_MAX];
    size_t count;
} roots;

static bool has_room(const roots *r)
{
    return r->count < MOST_ROOTS;
}

static bool is_known(const roots *r, const char *path, size_t length)
{
    for (size_t i = 0; i < r->count; i++)
        if (strlen(r->paths[i]) == length && memcmp(r->paths[i], path, length) == 0)
            return true;
    return false;
}

/* What is loaded from a package tells where the packages are. */
static int add_root(struct dl_phdr_info *object, size_t size, void *to)
{
    roots *r = to;
    const char *path = object->dlpi_name, *at = path ? strstr(path, PACKAGES) : NULL;
    (void)size;
    if (path && !at)
        at = strstr(path, DEBIAN_PACKAGES);
    if (!at)
        return 0;
    size_t length = (size_t)(at - path) + strlen(PACKAGES); /* both are as long */
    if (length < PATH_MAX && has_room(r) && !is_known(r, path, length)) {
        memcpy(r->paths[r->count], path, length);
        r->paths[r->count++][length] = 0;
    }
    return 0;
}

static void add(roots *r, const char *prefix)
{
    static const char *const kinds[] = {PACKAGES, DEBIAN_PACKAGES};
    for (size_t i = 0; prefix && *prefix && i < PKI_COUNT_OF(kinds); i++)
        if (has_room(r) && snprintf(r->paths[r->count], PATH_MAX, "%s/lib/python3*%s", prefix,
                                    kinds[i]) < PATH_MAX)
            r->count++;
}

static void *open_in(const char *root, const char *package, const char *file)
{
    char pattern[PATH_MAX];
    glob_t found = {.gl_pathc = 0};
    void *library = NULL;
    int length = snprintf(pattern, sizeof pattern, "%s%s/lib/%s", root, package, file);
    if (length < 0 || (size_t)length >= sizeof pattern || glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = found.gl_pathc; i-- > 0 && !library;) /* the newest Python's first */
        library = dlopen(found.gl_pathv[i], RTLD_LAZY | RTLD_LOCAL);
    globfree(&found);
    return library;
}

static void *open_any(const roots *r, const char *file, const char *const packages[])
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t p = 0; packages[p]; p++) {
            void *library = open_in(r->paths[i], packages[p], file);
            if (library)
                return library;
        }
    return NULL;
}

void *pki_wheel_open(const char *const files[], const char *const packages[], char *reason,
                     size_t size)
{
    roots *r = calloc(1, sizeof *r);
    void *library = NULL;
    if (r && pki_dl_possible()) {
        pki_dl_each(add_root, r);
        add(r, secure_getenv("VIRTUAL_ENV"));
        add(r, secure_getenv("CONDA_PREFIX"));
        add(r, "/usr/local");
        add(r, "/usr");
        for (size_t i = 0; files[i] && !library; i++)
            library = open_any(r, files[i], packages);
    }
    free(r);
    if (!library)
        snprintf(reason, size, "%s is neither where the loader looks nor in Python's packages",
                 files[0]);
    return library;
}
