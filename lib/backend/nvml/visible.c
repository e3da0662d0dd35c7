#include "backend/nvml/visible.h"

#include <stdlib.h>
#include <string.h>

#define UUID_BYTES 96
#define NAME_BYTES 96

#define MACHINE_MOST 64 /* devices of one machine */

typedef struct machine {
    pki_nvml_handle devices[MACHINE_MOST];
    unsigned count, all; /* that can be opened; that there are */
} machine;

typedef struct entry {
    char text[UUID_BYTES];
    pki_nvml_handle handle;
    bool is_slice;
} entry;

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Those that this process may open: a cgroup hides the others from CUDA, which counts without
 * them, while NVML counts them too. */
static int find_machine(const pki_nvml *nvml, machine *m)
{
    m->count = m->all = 0;
    int code = nvml->count(&m->all);
    for (unsigned i = 0; code == PKI_NVML_OK && i < m->all && m->count < MACHINE_MOST; i++)
        m->count += nvml->by_index(i, &m->devices[m->count]) == PKI_NVML_OK;
    return code;
}

/* The one device whose UUID begins so. CUDA takes a beginning that fits two for nothing. */
static pki_nvml_handle by_uuid(const pki_nvml *nvml, const machine *m, const char *beginning)
{
    pki_nvml_handle found = NULL;
    for (unsigned i = 0; i < m->count && nvml->uuid; i++) {
        char uuid[UUID_BYTES] = "";
        if (nvml->uuid(m->devices[i], uuid, sizeof uuid) != PKI_NVML_OK ||
            !begins_with(uuid, beginning))
            continue;
        if (found)
            return NULL;
        found = m->devices[i];
    }
    return found;
}

static bool resolve(const pki_nvml *nvml, const machine *m, entry *e)
{
    char *end = e->text;
    unsigned long index = *e->text >= '0' && *e->text <= '9' ? strtoul(e->text, &end, 10) : 0;
    e->is_slice = begins_with(e->text, "MIG");
    e->handle = NULL;
    if (end != e->text && *end == 0)
        e->handle = index < m->count ? m->devices[index] : NULL;
    else if (e->is_slice && nvml->by_uuid && nvml->by_uuid(e->text, &e->handle) != PKI_NVML_OK)
        e->handle = NULL;
    else if (begins_with(e->text, "GPU-"))
        e->handle = by_uuid(nvml, m, e->text);
    return e->handle;
}

/* The next part of the list, without blanks; false at its end, or if it is too long to mean
 * anything. */
static bool next_part(const char **list, entry *e)
{
    const char *p = *list + strspn(*list, " ");
    size_t n = strcspn(p, ", ");
    if (n == 0 || n >= sizeof e->text)
        return false;
    memcpy(e->text, p, n);
    e->text[n] = 0;
    p += n;
    p += strspn(p, " ");
    *list = p + (*p == ',');
    return true;
}

static void add(pki_nvml_visible *out, const entry *e)
{
    unsigned ordinal = out->seen++;
    if (ordinal >= PKI_NVML_DEVICES)
        return;
    out->devices[ordinal].handle = e->handle;
    out->devices[ordinal].ordinal = ordinal;
    out->devices[ordinal].is_slice = e->is_slice;
    out->count++;
}

/* Who sees all devices of the machine is taken to be one of several who do. */
static void share(const pki_nvml_wish *wish, const machine *m, pki_nvml_visible *out)
{
    unsigned kept = 0;
    if (wish->local_size < 2 || out->seen != m->all || out->seen < wish->local_size)
        return;
    for (unsigned i = 0; i < out->count; i++)
        if (i % wish->local_size == wish->local_rank)
            out->devices[kept++] = out->devices[i];
    out->count = kept;
}

static bool same_models(const pki_nvml *nvml, const machine *m)
{
    char first[NAME_BYTES] = "";
    for (unsigned i = 0; i < m->count; i++) {
        char name[NAME_BYTES] = "";
        if (!nvml->name || nvml->name(m->devices[i], name, sizeof name) != PKI_NVML_OK)
            return false;
        if (i == 0)
            memcpy(first, name, sizeof first);
        if (strcmp(first, name) != 0)
            return false;
    }
    return true;
}

int pki_nvml_find(const pki_nvml *nvml, const pki_nvml_wish *wish, pki_nvml_visible *out)
{
    machine m;
    entry e = {.is_slice = false};
    memset(out, 0, sizeof *out);
    int code = find_machine(nvml, &m);
    out->machine = m.count;
    for (unsigned i = 0; !wish->list && i < m.count; i++) {
        e.handle = m.devices[i];
        add(out, &e);
    }
    for (const char *p = wish->list; p && next_part(&p, &e) && resolve(nvml, &m, &e);)
        add(out, &e);
    share(wish, &m, out);
    bool by_address = wish->order && strcmp(wish->order, "PCI_BUS_ID") == 0;
    bool by_name =
        wish->list && (begins_with(wish->list, "GPU-") || begins_with(wish->list, "MIG"));
    out->doubtful = m.count > 1 && !by_address && !by_name && !same_models(nvml, &m);
    return code;
}
