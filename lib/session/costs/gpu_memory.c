#include "session/costs/gpu_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/counter.h>

#include "base/loader.h"
#include "core/names.h"
#include "session/activity.h"
#include "session/session.h"

#define CLOSE_NS 50000u /* samples of a counter that are no new peak */

static struct {
    bool wanted, recorded;
    uint64_t dropped, lost;
    pki_gpu_account account;
    struct emitted {
        uint64_t ns, most;    /* of the last sample, which has been emitted */
        uint64_t last, value; /* of the last change, which... */
        bool unreported;      /* ...is in no sample yet */
        uint64_t reserved;
    } emitted[PKI_GPU_PLACES];
    uint64_t totals[PKI_GPU_PLACES];
    bool asked_total[PKI_GPU_PLACES];
} x;

/* A counter's name has to stay: so each place has one. */
#define ALLOCATED(n) PK_COUNTER("gpu" #n ".allocated", "bytes")
#define RESERVED(n) PK_COUNTER("gpu" #n ".pool_reserved", "bytes")
#define SIXTEEN(of)                                                                                \
    of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12),  \
        of(13), of(14), of(15)
static pk_counter allocated[PKI_GPU_PLACES] = {SIXTEEN(ALLOCATED),
                                               PK_COUNTER("memory.pinned", "bytes")};
static pk_counter reserved[PKI_GPU_DEVICES] = {SIXTEEN(RESERVED)};

/* Who never asks for it never touches its pages. */
static void reset(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    if (x.wanted) {
        pki_gpu_account_finish(&x.account);
        memset(&x, 0, sizeof x);
    }
    pthread_mutex_unlock(&pki_drain_lock);
}

/* Nothing is known of the session that begins. */
static pk_status open_account(pki_session *s)
{
    pthread_mutex_lock(&pki_drain_lock);
    if (s->config.costs_memory)
        x.wanted = true;
    pthread_mutex_unlock(&pki_drain_lock);
    return PK_OK;
}

/* ---- counters ---- */

static void emit_sample(uint32_t place, uint64_t ns, uint64_t value)
{
    struct emitted *t = &x.emitted[place];
    pki_activity_counter_at(&allocated[place], (double)value, ns);
    t->ns = PKI_MAX(t->ns, ns);
    t->unreported = false;
}

/* Each new peak, and of the rest what was last, some microseconds apart. */
static void follow(uint32_t place, uint64_t ns)
{
    const pki_gpu_place *p = &x.account.places[place];
    struct emitted *t = &x.emitted[place];
    if (p->all.live == t->value && p->all.live <= t->most)
        return;
    bool far = ns >= t->ns + CLOSE_NS || t->ns == 0;
    if (t->unreported && far)
        emit_sample(place, t->last, t->value);
    bool peak = p->all.live > t->most; /* the same again is emitted at its turn */
    t->most = PKI_MAX(t->most, p->all.live);
    t->last = ns;
    t->value = p->all.live;
    if (peak || far)
        emit_sample(place, ns, t->value);
    else
        t->unreported = true;
}

/* Asked once, where the driver is in use anyway. */
static void learn_total(uint32_t place)
{
    pki_driver_device device;
    if (x.asked_total[place] || place == PKI_GPU_HOST)
        return;
    x.asked_total[place] = true;
    bool of_others = place == PKI_GPU_DEVICES - 1 && pki_driver_devices() > PKI_GPU_DEVICES;
    if (!of_others && place < pki_driver_devices() && pki_driver_device_get(place, &device))
        x.totals[place] = device.memory_bytes;
}

void pki_gpu_memory_do(const pki_gpu_operation *o)
{
    uint32_t place = pki_gpu_account_do(&x.account, o);
    learn_total(place);
    follow(place, o->ns);
}

void pki_gpu_memory_pool(uint32_t device, uint64_t address, uint64_t size, uint64_t used, bool gone,
                         uint64_t ns)
{
    uint32_t place = pki_gpu_account_pool(&x.account, device, address, size, used, gone);
    uint64_t now = x.account.places[place].reserved;
    if (now == x.emitted[place].reserved)
        return;
    x.emitted[place].reserved = now;
    pki_activity_counter_at(&reserved[place], (double)now, ns);
}

void pki_gpu_memory_complete(uint64_t dropped, uint64_t lost)
{
    x.recorded = true;
    x.dropped = dropped;
    x.lost = lost;
    for (uint32_t i = 0; i < PKI_GPU_PLACES; i++)
        if (x.emitted[i].unreported)
            emit_sample(i, x.emitted[i].last, x.emitted[i].value);
}

void pki_gpu_memory_poll(uint64_t steps, bool early)
{
    if (x.wanted)
        pki_gpu_account_see(&x.account, steps, early, pki_activity_ns(pki_monotonic_ns()));
}

/* ---- the summary ---- */

static const char *name_of(uint32_t id)
{
    const pki_name *name = pki_name_at(id);
    return name ? name->name : NULL;
}

static char *why_not(const pki_summary *out)
{
    char text[256] = "cupti has no records of it";
    for (size_t i = 0; i < out->backend_count; i++)
        if (strcmp(out->backends[i].name, "cupti") == 0 && !out->backends[i].live)
            snprintf(text, sizeof text, "cupti: %s", out->backends[i].reason);
    return strdup(x.recorded ? "" : text);
}

/* What NVML has seen, of the same device, by all processes. */
static uint64_t most_in_use(const pki_summary *out, const char *place)
{
    char counter[32];
    snprintf(counter, sizeof counter, "%s.memory", place);
    for (size_t i = 0; i < out->counter_count; i++)
        if (strcmp(out->counters[i].name, counter) == 0)
            return (uint64_t)out->counters[i].value.max;
    return 0;
}

/* When backends, counters and the process's memory are in it. False without memory. */
static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    pki_gpu_memory_summary *m = &out->gpu_memory;
    if (!x.wanted)
        return true;
    m->asked = 1;
    m->dropped = x.dropped;
    m->why_not = why_not(out);
    if (!m->why_not || !pki_gpu_account_fill(&x.account, name_of, out->memory.steady_steps, m))
        return false;
    m->lost += x.lost;
    for (size_t i = 0; i < m->place_count; i++) {
        pki_gpu_memory_place *p = &m->places[i];
        unsigned device;
        p->in_use = most_in_use(out, p->place);
        if (sscanf(p->place, "gpu%u", &device) == 1 && device < PKI_GPU_DEVICES)
            p->total = x.totals[device];
    }
    return true;
}

bool pki_gpu_memory_so_far(pki_gpu_memory_sums *out)
{
    if (!x.wanted)
        return true;
    out->asked = 1;
    out->why_not = strdup(x.recorded ? "" : "nothing has been recorded so far");
    out->dropped = x.dropped;
    if (!out->why_not || !pki_gpu_account_sums(&x.account, out))
        return false;
    out->lost += x.lost;
    return true;
}

void pki_gpu_memory_cut(void)
{
    if (x.wanted)
        pki_gpu_account_cut(&x.account);
}

/* The collector may have been amid it: nothing of it is trusted, or freed. */
static void after_fork(void)
{
    memset(&x, 0, sizeof x);
}

const pki_service pki_service_gpu_memory = {
    .name = "gpu_memory",
    .reset = reset,
    .open = open_account,
    .summarise = summarise,
    .after_fork = after_fork,
};
