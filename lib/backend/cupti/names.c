#include "backend/cupti/names.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define IDENTIFIER_BYTES 512

/* ---- kernels ---- */

typedef struct entry {
    struct entry *next;
    uint64_t hash;
    char *name; /* as shown */
    char mangled[];
} entry;

static entry **buckets;
static size_t bucket_count, entry_count;

static uint64_t hash_of(const char *s)
{
    uint64_t h = 14695981039346656037u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 1099511628211u;
    return h;
}

static bool make_buckets(void)
{
    size_t more = bucket_count ? 2 * bucket_count : 64;
    if (entry_count < bucket_count)
        return true;
    entry **fresh = calloc(more, sizeof *fresh);
    if (!fresh)
        return bucket_count > 0;
    for (size_t i = 0; i < bucket_count; i++)
        for (entry *e = buckets[i], *next; e; e = next) {
            next = e->next;
            e->next = fresh[e->hash & (more - 1)];
            fresh[e->hash & (more - 1)] = e;
        }
    free(buckets);
    buckets = fresh;
    bucket_count = more;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* _Z3fooi is foo, _ZN1a3fooE... is foo as well: the last of the names that follow each other. */
bool pki_cupti_identifier(const char *mangled, char *name, size_t size)
{
    if (strncmp(mangled, "_Z", 2) != 0)
        return false;
    const char *p = mangled + 2;
    bool nested = *p == 'N', any = false;
    p += nested;
    while (is_digit(*p)) {
        size_t n = 0;
        while (is_digit(*p) && n < IDENTIFIER_BYTES)
            n = 10 * n + (size_t)(*p++ - '0');
        if (n == 0 || n >= IDENTIFIER_BYTES || strnlen(p, n) < n)
            return any;
        snprintf(name, size, "%.*s", (int)n, p);
        any = true;
        p += n;
        if (!nested)
            break;
    }
    return any;
}

typedef char *demangler(const char *mangled, char *buffer, size_t *size, int *status);

/* The C++ library's, if the program has one; perfkit needs none itself. */
static demangler *find_demangler(void)
{
    demangler *found;
    void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    memcpy(&found, &symbol, sizeof found);
    return found;
}

static char *make_name(const char *mangled)
{
    char identifier[IDENTIFIER_BYTES];
    int status = 0;
    if (strncmp(mangled, "_Z", 2) != 0)
        return NULL;
    demangler *demangle = find_demangler();
    char *name = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;
    if (!name && pki_cupti_identifier(mangled, identifier, sizeof identifier))
        name = strdup(identifier);
    return name;
}

static entry *add(const char *mangled, uint64_t hash)
{
    size_t n = strlen(mangled) + 1;
    entry *e = make_buckets() ? malloc(sizeof *e + n) : NULL;
    if (!e)
        return NULL;
    memcpy(e->mangled, mangled, n);
    e->hash = hash;
    e->name = make_name(mangled);
    e->next = buckets[hash & (bucket_count - 1)];
    buckets[hash & (bucket_count - 1)] = e;
    entry_count++;
    return e;
}

const char *pki_cupti_kernel_name(const char *mangled)
{
    if (!mangled || !*mangled)
        return "(unnamed kernel)";
    uint64_t hash = hash_of(mangled);
    entry *e = bucket_count ? buckets[hash & (bucket_count - 1)] : NULL;
    while (e && (e->hash != hash || strcmp(e->mangled, mangled) != 0))
        e = e->next;
    e = e ? e : add(mangled, hash);
    if (!e)
        return "(no memory)";
    return e->name ? e->name : e->mangled;
}

void pki_cupti_names_after_fork(void)
{
    buckets = NULL;
    bucket_count = entry_count = 0;
}

void pki_cupti_names_forget(void)
{
    for (size_t i = 0; i < bucket_count; i++)
        for (entry *e = buckets[i], *next; e; e = next) {
            next = e->next;
            free(e->name);
            free(e);
        }
    free(buckets);
    pki_cupti_names_after_fork();
}

/* ---- calls ---- */

static size_t without_version(const char *name, size_t n)
{
    size_t i = n;
    while (i > 0 && is_digit(name[i - 1]))
        i--;
    return i >= 2 && i < n && name[i - 1] == 'v' && name[i - 2] == '_' ? i - 2 : n;
}

static size_t without_ending(const char *name, size_t n, const char *ending)
{
    size_t e = strlen(ending);
    return n > e && memcmp(name + n - e, ending, e) == 0 ? n - e : n;
}

void pki_cupti_plain_name(const char *name, char *plain, size_t size)
{
    while (*name == '_')
        name++;
    size_t n = without_version(name, strlen(name));
    n = without_ending(name, n, "_ptsz");
    n = without_ending(name, n, "_ptds");
    n = without_version(name, n); /* cuMemcpyHtoD_v2_ptds */
    snprintf(plain, size, "%.*s", (int)PKI_MIN(n, size - 1), name);
}

/* ---- all else ---- */

static const char *way_of(uint32_t copy)
{
    static const char *const ways[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                       "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    return copy < PKI_COUNT_OF(ways) ? ways[copy] : ways[0];
}

static const char *memory_of(unsigned kind)
{
    static const char *const kinds[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return kind < PKI_COUNT_OF(kinds) ? kinds[kind] : kinds[0];
}

static const char *wait_of(uint32_t type)
{
    static const char *const waits[] = {"Unknown Sync", "Event Sync", "Stream Wait Event",
                                        "Stream Sync", "Context Sync"};
    return type < PKI_COUNT_OF(waits) ? waits[type] : waits[0];
}

static const char *overhead_of(uint32_t kind)
{
    static const char *const cuptis[] = {"Unknown",
                                         "Activity Buffer Flush",
                                         "Instrumentation",
                                         "Resource",
                                         "Runtime Triggered Module Loading",
                                         "Lazy Function Loading",
                                         "Command Buffer Full",
                                         "Activity Buffer Request",
                                         "UVM Activity Init"};
    if (kind == CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER)
        return "Driver Compiler";
    return kind >> 16 < PKI_COUNT_OF(cuptis) ? cuptis[kind >> 16] : cuptis[0];
}

void pki_cupti_name(const pki_cupti_record *r, char *name, size_t size)
{
    switch (r->what) {
    case PKI_CUPTI_COPY:
        snprintf(name, size, "Memcpy %s (%s -> %s)", way_of(r->detail), memory_of(r->from),
                 memory_of(r->to));
        break;
    case PKI_CUPTI_SET:
        snprintf(name, size, "Memset (%s)", memory_of(r->to));
        break;
    case PKI_CUPTI_GRAPH:
        snprintf(name, size, "CUDA graph %" PRIu64, r->id);
        break;
    case PKI_CUPTI_SYNC:
        snprintf(name, size, "%s", wait_of(r->detail));
        break;
    case PKI_CUPTI_OVERHEAD:
        snprintf(name, size, "%s", overhead_of(r->detail));
        break;
    default:
        snprintf(name, size, "%s", r->name ? r->name : "");
    }
}
