#include "session/backend.h"

#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/log.h"

extern const pki_backend pki_backend_cuda, pki_backend_cupti, pki_backend_nvtx, pki_backend_nccl,
    pki_backend_nvml;

const pki_backend *const pki_backends[] = {&pki_backend_cuda, &pki_backend_cupti, &pki_backend_nvtx,
                                           &pki_backend_nccl, &pki_backend_nvml};
const size_t pki_backend_count = PKI_COUNT_OF(pki_backends);

/* Who asks for the status may do so while a session starts. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char wanted_list[sizeof((pki_config *)0)->backends];
static bool in_use[PKI_COUNT_OF(pki_backends)]; /* in the running or the last session */
static bool any_session;                        /* in this process */
static bool live[PKI_COUNT_OF(pki_backends)];
static uint64_t stopped_cpu; /* of those that are no longer live */

pthread_mutex_t pki_asking_lock = PTHREAD_MUTEX_INITIALIZER;

/* +1: named, -1: named with a minus, 0: not named. */
static int named(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; *p; p += *p == ',') {
        int sign = *p == '-' ? -1 : 1;
        p += *p == '-';
        size_t length = strcspn(p, ",");
        if (length == n && memcmp(p, name, n) == 0)
            return sign;
        p += length;
    }
    return 0;
}

/* A list of names asks for those, a list of names with a minus for all default ones but those. */
bool pki_backend_wanted(const pki_backend *b, const char *list)
{
    if (strcmp(list, "none") == 0)
        return false;
    int sign = named(list, b->name);
    bool only_without = !*list || *list == '-';
    return sign > 0 || (sign == 0 && only_without && b->by_default);
}

static bool is_requested(const pki_backend *b, const pki_config *config)
{
    const char *list = config->backends;
    if (pki_backend_wanted(b, list))
        return true;
    return b->requested && strcmp(list, "none") != 0 && named(list, b->name) == 0 &&
           b->requested(config);
}

/* Those who asked for it hear of regions from here on. */
static void open_mirrors(void)
{
    const pki_mirror *mirrors[PKI_COUNT_OF(pki_backends)];
    unsigned count = 0;
    for (size_t i = 0; i < pki_backend_count; i++)
        if (live[i] && pki_backends[i]->mirror && pki_backends[i]->mirror->begin)
            mirrors[count++] = pki_backends[i]->mirror;
    if (count)
        pki_mirrors_open(mirrors, count);
}

static void remember(const pki_config *config)
{
    pthread_mutex_lock(&lock);
    memcpy(wanted_list, config->backends, sizeof wanted_list);
    any_session = true;
    for (size_t i = 0; i < pki_backend_count; i++)
        in_use[i] = is_requested(pki_backends[i], config);
    pthread_mutex_unlock(&lock);
}

void pki_backends_foresee(const pki_config *config)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_backends[i]->foresee && is_requested(pki_backends[i], config))
            pki_backends[i]->foresee();
}

void pki_backends_start(const pki_config *config)
{
    remember(config);
    pki_store(&stopped_cpu, 0);
    for (size_t i = 0; i < pki_backend_count; i++)
        pki_store_release(&live[i],
                          in_use[i] && pki_backends[i]->start && pki_backends[i]->start(config));
    open_mirrors();
}

void pki_backends_flush(pki_flush why)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load_acquire(&live[i]) && /* pairs with the release in pki_backends_start */
            pki_backends[i]->flush)
            pki_backends[i]->flush(why);
}

void pki_backends_ask(void)
{
    pthread_mutex_lock(&pki_asking_lock);
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load_acquire(&live[i]) && /* pairs with the release in pki_backends_start */
            pki_backends[i]->ask)
            pki_backends[i]->ask();
    pthread_mutex_unlock(&pki_asking_lock);
}

bool pki_backends_asking(void)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load(&live[i]) && (pki_backends[i]->ask || pki_backends[i]->flush))
            return true;
    return false;
}

bool pki_backends_collecting(void)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load(&live[i]) && pki_backends[i]->collect)
            return true;
    return false;
}

bool pki_backends_tell_of_devices(const pki_backend *but)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load(&live[i]) && pki_backends[i]->devices && pki_backends[i] != but)
            return true;
    return false;
}

void pki_backends_collect(void)
{
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load_acquire(&live[i]) && /* pairs with the release in pki_backends_start */
            pki_backends[i]->collect)
            pki_backends[i]->collect();
}

static uint64_t cpu_of(size_t i)
{
    return pki_backends[i]->cpu ? pki_backends[i]->cpu() : 0;
}

uint64_t pki_backends_cpu(void)
{
    uint64_t ns = pki_load(&stopped_cpu);
    for (size_t i = 0; i < pki_backend_count; i++)
        if (pki_load_acquire(&live[i])) /* pairs with the release in pki_backends_start */
            ns += cpu_of(i);
    return ns;
}

void pki_backends_halt(void)
{
    pki_mirrors_close();
    pthread_mutex_lock(&pki_asking_lock);
    for (size_t i = 0; i < pki_backend_count; i++)
        if (live[i] && pki_backends[i]->halt)
            pki_backends[i]->halt();
    pthread_mutex_unlock(&pki_asking_lock);
}

void pki_backends_stop(void)
{
    for (size_t i = 0; i < pki_backend_count; i++) {
        if (live[i] && pki_backends[i]->stop)
            pki_backends[i]->stop();
        pki_bump(&stopped_cpu, live[i] ? cpu_of(i) : 0);
        pki_store(&live[i], false);
    }
}

void pki_backends_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&pki_asking_lock, NULL);
    any_session = false;
    for (size_t i = 0; i < pki_backend_count; i++) {
        live[i] = false;
        if (pki_backends[i]->after_fork)
            pki_backends[i]->after_fork();
    }
}

/* Its place in the table; pki_backend_count: there is none. */
static size_t find(const char *name)
{
    size_t i = 0;
    while (i < pki_backend_count && (!name || strcmp(pki_backends[i]->name, name) != 0))
        i++;
    return i;
}

pk_status(pk_backend_status)(const char *name, pk_backend_info *info)
{
    size_t i = find(name);
    pk_backend_info full;
    if (i == pki_backend_count)
        return pki_fail(PK_ENOENT, "there is no backend %.40s: cuda, cupti, nvtx, nccl and nvml",
                        name ? name : "NULL");
    if (!info || info->size < 8 || info->size > sizeof *info)
        return pki_fail(PK_EINVAL, "pk_backend_info.size has to be sizeof(pk_backend_info)");
    memset(&full, 0, sizeof full);
    pthread_mutex_lock(&lock);
    bool wanted = in_use[i] || pki_backend_wanted(pki_backends[i], wanted_list), any = any_session;
    pthread_mutex_unlock(&lock);
    if (wanted || !any) /* a session without a backend leaves its library alone */
        pki_backends[i]->probe(&full);
    full.size = info->size;
    if (!full.reason[0] && !wanted)
        strcpy(full.reason, "not asked for");
    memcpy(info, &full, info->size);
    return PK_OK;
}
