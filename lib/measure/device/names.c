/* lib/measure/device/names.c - distributions by kernel, and by the region that launched. */
#include "measure/device/state.h"

#include "base/memory.h"
#include "base/compiler.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 1000 /* that tell kernels apart; templates make long ones */

/* ---- regions ---- */

static pki_device_region *region_of(pki_device *d, uint32_t id)
{
    if (id >= PKI_STEPS_IDS ||
        !pki_array_fit(&d->regions, &d->region_room, id + (size_t)1, sizeof *d->regions))
        return NULL;
    return &d->regions[id];
}

void pki_device_count_span(pki_device *d, const pki_activity *a, uint64_t ns)
{
    pki_device_region *region = a->region ? region_of(d, a->region) : NULL;
    if (a->region)
        d->without_room += !region || !pki_tally_add(&region->spans, (double)ns, 1);
}

static const pki_device_region *known_region(const pki_device *d, uint32_t id)
{
    static const pki_device_region none;
    return d && id < d->region_room ? &d->regions[id] : &none;
}

bool pki_device_has_region(const pki_device *d, uint32_t region)
{
    const pki_device_region *known = known_region(d, region);
    return known->spans.moments.count + known->kernels.moments.count > 0;
}

pki_dist pki_device_region_spans(const pki_device *d, uint32_t region)
{
    return pki_tally_dist(&known_region(d, region)->spans);
}

pki_dist pki_device_region_kernels(const pki_device *d, uint32_t region)
{
    return pki_tally_dist(&known_region(d, region)->kernels);
}

/* ---- kernels ---- */

static bool is_named(const pki_device_kernel *k, uint32_t hash, const char *name, size_t length)
{
    return k->hash == hash && strlen(k->name) == length && memcmp(k->name, name, length) == 0;
}

/* NULL if it is one too many, or without memory. */
static pki_device_kernel *make_kernel(pki_device *d, uint32_t hash, const char *name, size_t length)
{
    if (d->kernel_count == PKI_DEVICE_KERNELS)
        return NULL;
    pki_device_kernel *k = calloc(1, sizeof *k);
    char *copy = k ? strndup(name, length) : NULL;
    if (!copy) {
        free(k);
        return NULL;
    }
    k->name = copy;
    k->hash = hash;
    d->kernel_count++;
    return k;
}

static pki_device_kernel *kernel_of(pki_device *d, const pki_activity *a)
{
    const char *name = a->name ? a->name : "";
    size_t length = strnlen(name, PKI_MIN(a->name_length, NAME_BYTES));
    uint32_t hash = pki_hash(name, length, 0), at = hash % PKI_COUNT_OF(d->kernels);
    while (d->kernels[at] && !is_named(d->kernels[at], hash, name, length))
        at = (at + 1) % PKI_COUNT_OF(d->kernels);
    if (!d->kernels[at])
        d->kernels[at] = make_kernel(d, hash, name, length);
    return d->kernels[at] ? d->kernels[at] : &d->other_kernels;
}

/* Regions beyond those that there is room for have no share in the kernel's time: the one that is
 * named has the most of the first ones. */
static void credit(pki_device_kernel *k, uint32_t region, uint64_t ns)
{
    size_t i = 0;
    while (i < k->launcher_count && k->launchers[i].region != region)
        i++;
    if (i == PKI_COUNT_OF(k->launchers))
        return;
    if (i == k->launcher_count)
        k->launchers[k->launcher_count++].region = region;
    k->launchers[i].ns += ns;
}

void pki_device_count_kernel(pki_device *d, const pki_activity *a, uint64_t ns)
{
    pki_device_kernel *k = kernel_of(d, a);
    pki_device_region *region = a->region ? region_of(d, a->region) : NULL;
    credit(k, a->region, ns);
    bool fits = pki_tally_add(&k->time, (double)ns, 1) &&
                (!a->region || (region && pki_tally_add(&region->kernels, (double)ns, 1)));
    d->without_room += !fits;
}

void pki_device_free_names(pki_device *d)
{
    for (size_t i = 0; i < PKI_COUNT_OF(d->kernels); i++)
        if (d->kernels[i]) {
            pki_tally_finish(&d->kernels[i]->time);
            free(d->kernels[i]->name);
            free(d->kernels[i]);
        }
    pki_tally_finish(&d->other_kernels.time);
    for (size_t i = 0; i < d->region_room; i++) {
        pki_tally_finish(&d->regions[i].spans);
        pki_tally_finish(&d->regions[i].kernels);
    }
    free(d->regions);
}
