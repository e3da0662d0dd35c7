#include "backend/nvml/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"

#define LONG 1000000000u /* ns that no call should take */
#define RARE 400000000u  /* ns between two readings, if that is worth a line */
#define LISTED 4u        /* devices by number; more are counted */

typedef struct sentence {
    char text[1024];
    size_t used;
} sentence;

static void PKI_PRINTF(2, 3) add(sentence *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(w->text + w->used, sizeof w->text - w->used, format, list);
    va_end(list);
    if (n > 0)
        w->used = PKI_MIN(w->used + (size_t)n, sizeof w->text - 1);
}

static void add_devices(sentence *w, const pki_nvml_state *s)
{
    if (s->device_count > LISTED)
        add(w, "%u devices", s->device_count);
    for (unsigned i = 0; s->device_count <= LISTED && i < s->device_count; i++)
        add(w, "%sgpu%u", i ? ", " : "", s->devices[i].ordinal);
    if (s->visible.seen > s->device_count)
        add(w, " of %u (the node's ranks share them)", s->visible.seen);
}

static void add_stuck(sentence *w, const pki_nvml_state *s)
{
    uint64_t now = pki_monotonic_ns();
    if (s->calling && now - s->called_at > LONG)
        add(w, "; %s has not returned for %.0f s", s->calling, (double)(now - s->called_at) / 1e9);
}

static void add_lost(sentence *w, const pki_nvml_state *s)
{
    for (unsigned i = 0; i < s->device_count; i++)
        if (s->devices[i].lost)
            add(w, "; gpu%u was given up: %s", s->devices[i].ordinal,
                pki_nvml_text(s->nvml, s->devices[i].lost));
}

static void add_held(sentence *w, const pki_nvml_device *d)
{
    for (unsigned bit = 0; bit < PKI_COUNT_OF(d->held); bit++)
        if (d->held[bit] && (1u << bit & PKI_NVML_HELD_DOWN))
            add(w, "; gpu%u: clocks held down by %s in %.0f %% of %llu samples", d->ordinal,
                pki_nvml_reason_text(1u << bit), 100.0 * (double)d->held[bit] / (double)d->looked,
                (unsigned long long)d->looked);
}

static void add_missing(sentence *w, const pki_nvml_state *s, const pki_nvml_device *d)
{
    const char *before = "; ";
    for (unsigned i = 0; i < PKI_NVML_READINGS; i++)
        if (d->slots[i].off) {
            if (*before == ';')
                add(w, "%sgpu%u%s: no ", before, d->ordinal,
                    d->mig    ? " (MIG)"
                    : d->vgpu ? " (vGPU)"
                              : "");
            else
                add(w, "%s", before);
            before = ", ";
            add(w, "%s (%s)", pki_nvml_readings[i].values[0].name,
                pki_nvml_text(s->nvml, d->slots[i].code));
        }
}

static void add_rare(sentence *w, const pki_nvml_state *s, const pki_nvml_device *d)
{
    for (unsigned i = 0; i < PKI_NVML_READINGS; i++) {
        const pki_nvml_slot *slot = &d->slots[i];
        if (slot->off || slot->period < RARE)
            continue;
        add(w, "; gpu%u.%s every %.1f s: ", d->ordinal, pki_nvml_readings[i].values[0].name,
            (double)slot->period / 1e9);
        if (slot->failures)
            add(w, "%s", pki_nvml_text(s->nvml, slot->code));
        else
            add(w, "a call takes %.1f ms", (double)slot->took / 1e6);
    }
}

static void add_all(sentence *w, const pki_nvml_state *s)
{
    add_devices(w, s);
    add_stuck(w, s);
    add_lost(w, s);
    for (unsigned i = 0; i < s->device_count; i++)
        add_held(w, &s->devices[i]);
    for (unsigned i = 0; i < s->device_count; i++)
        add_missing(w, s, &s->devices[i]);
    for (unsigned i = 0; i < s->device_count; i++)
        add_rare(w, s, &s->devices[i]);
    if (s->visible.doubtful)
        add(w, "; devices differ: CUDA may number them otherwise (CUDA_DEVICE_ORDER=PCI_BUS_ID)");
}

static void add_none(sentence *w, const pki_nvml_state *s)
{
    if (s->failed)
        add(w, "%s: %s", s->failed, pki_nvml_text(s->nvml, s->code));
    else if (s->visible.seen)
        add(w, "the %u devices are left to other ranks of this node", s->visible.seen);
    else if (s->visible.machine)
        add(w, "CUDA_VISIBLE_DEVICES names none of %u devices", s->visible.machine);
    else
        add(w, "there is no device");
}

/* Some of it may not fit: it ends in three dots then. */
static void cut(const sentence *w, pk_backend_info *info)
{
    size_t room = sizeof info->reason;
    snprintf(info->reason, room, "%.*s", (int)room - 1, w->text);
    if (w->used >= room)
        memcpy(info->reason + room - 4, "...", 4);
}

void pki_nvml_state_describe(const pki_nvml_state *s, pk_backend_info *info)
{
    sentence w = {.used = 0};
    bool any = false;
    for (unsigned i = 0; i < s->device_count; i++)
        any = any || !s->devices[i].lost;
    info->live = any;
    memcpy(info->version, s->version, sizeof info->version);
    if (s->device_count) {
        add_all(&w, s);
    } else if (s->ready) {
        add_none(&w, s);
    } else {
        info->live = 1;
        add(&w, "NVML is starting");
        add_stuck(&w, s);
    }
    cut(&w, info);
}
