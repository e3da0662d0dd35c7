#include "backend/nvtx/nvtx.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "core/names.h"

#define DOMAINS_MAX 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* among those that add */
pki_nvtx_domain pki_nvtx_default_domain = {.name = ""};
static pki_nvtx_domain others = {.name = "(other domains)"};
static pki_nvtx_domain *all;
static unsigned count;

/* Libraries whose ranges are known to be something else than work. */
static pk_kind kind_of(const char *name)
{
    return strcmp(name, "NCCL") == 0 ? PK_COMM : PK_OTHER;
}

static pki_nvtx_domain *find(const char *name)
{
    pki_nvtx_domain *d = all;
    while (d && strcmp(d->name, name) != 0)
        d = d->next;
    return d;
}

static pki_nvtx_domain *make(const char *name)
{
    pki_nvtx_domain *d = count < DOMAINS_MAX ? calloc(1, sizeof *d + strlen(name) + 1) : NULL;
    if (!d)
        return &others;
    d->name = memcpy(d + 1, name, strlen(name) + 1);
    d->ours = strcmp(name, PKI_NVTX_OUR_DOMAIN) == 0;
    d->kind = kind_of(name);
    d->next = all;
    all = d;
    count++;
    return d;
}

pki_nvtx_domain *pki_nvtx_domain_create(const char *name)
{
    if (!name || !*name)
        return &pki_nvtx_default_domain;
    int saved = errno;
    pthread_mutex_lock(&lock);
    pki_nvtx_domain *d = find(name);
    d = d ? d : make(name);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return d;
}

/* ---- categories ---- */

bool pki_nvtx_contains(const char *text, const char *word)
{
    for (; text && *text; text++) {
        size_t n = 0;
        while (word[n] && (text[n] | 0x20) == word[n])
            n++;
        if (!word[n])
            return true;
    }
    return false;
}

static pki_nvtx_meaning meaning_of(const char *name)
{
    return pki_nvtx_contains(name, "byte")   ? PKI_NVTX_BYTES
           : pki_nvtx_contains(name, "flop") ? PKI_NVTX_FLOPS
                                             : PKI_NVTX_NUMBER;
}

/* The last name counts. */
static const pki_nvtx_category *category_of(const pki_nvtx_domain *d, uint32_t id)
{
    const pki_nvtx_category *c =
        pki_load_acquire(&d->categories); /* pairs with the release in pki_nvtx_name_category */
    while (c && c->id != id)
        c = c->next;
    return c;
}

void pki_nvtx_name_category(pki_nvtx_domain *d, uint32_t id, const char *name)
{
    int saved = errno;
    size_t n = name ? strnlen(name, PKI_NAME_BYTES) : 0;
    const pki_nvtx_category *before = category_of(d, id);
    pki_nvtx_category *c = NULL;
    if (n && !(before && strncmp(before->name, name, n + 1) == 0))
        c = calloc(1, sizeof *c + n + 1);
    if (c) {
        memcpy(c->name, name, n);
        c->id = id;
        c->meaning = meaning_of(c->name);
        pthread_mutex_lock(&lock);
        c->next = d->categories;
        pki_store_release(&d->categories, c);
        pthread_mutex_unlock(&lock);
        pki_nvtx_category_named();
    }
    errno = saved;
}

/* ---- schemas ---- */

void pki_nvtx_add_schema(pki_nvtx_domain *d, const pki_nvtx_schema *schema)
{
    pki_nvtx_schema *copy = malloc(sizeof *copy);
    if (!copy)
        return;
    *copy = *schema;
    pthread_mutex_lock(&lock);
    copy->next = d->schemas;
    pki_store_release(&d->schemas, copy);
    pthread_mutex_unlock(&lock);
}

const pki_nvtx_schema *pki_nvtx_schema_of(const pki_nvtx_domain *d, uint64_t id)
{
    const pki_nvtx_schema *s =
        pki_load_acquire(&d->schemas); /* pairs with the release in pki_nvtx_add_schema */
    while (s && s->id != id)
        s = s->next;
    return s;
}

/* ---- names of regions ---- */

static pk_region *tagged(const pki_nvtx_domain *d, const char *message, uint32_t category,
                         pki_nvtx_meaning *meaning)
{
    char tail[PKI_NAME_BYTES / 2], name[PKI_NAME_BYTES + 1];
    const pki_nvtx_category *c = category_of(d, category);
    *meaning = c ? c->meaning : PKI_NVTX_NUMBER;
    if (c)
        snprintf(tail, sizeof tail, "[%s]", c->name);
    else
        snprintf(tail, sizeof tail, "[category %u]", category);
    int room = (int)(sizeof name - 1 - strlen(tail)); /* a long message is cut, not the category */
    int n = snprintf(name, sizeof name, "%s%s%s", d->name, *d->name ? "/" : "", message);
    snprintf(name + PKI_MIN(n, room), strlen(tail) + 1, "%s", tail);
    return pki_region_tagged(d->kind, name, "category", category);
}

pk_region *pki_nvtx_region(const pki_nvtx_domain *d, const char *message, uint32_t category,
                           pki_nvtx_meaning *meaning)
{
    char name[PKI_NAME_BYTES + 1];
    *meaning = PKI_NVTX_NUMBER;
    if (!message || !*message)
        message = "(unnamed)";
    if (category)
        return tagged(d, message, category, meaning);
    if (!*d->name)
        return pk_region_named_of(d->kind, message);
    snprintf(name, sizeof name, "%s/%s", d->name, message);
    return pk_region_named_of(d->kind, name);
}

pk_region *pki_nvtx_registered(const pki_nvtx_domain *d, nvtxStringHandle_t handle,
                               uint32_t category, pki_nvtx_meaning *meaning)
{
    pk_region *plain = (pk_region *)handle;
    *meaning = PKI_NVTX_NUMBER;
    if (!plain)
        return pki_nvtx_region(d, NULL, category, meaning);
    if (!category)
        return plain;
    size_t domain = strlen(d->name);
    bool has_domain =
        domain && strncmp(plain->name, d->name, domain) == 0 && plain->name[domain] == '/';
    return tagged(d, plain->name + (has_domain ? domain + 1 : 0), category, meaning);
}

/* ---- wide text ---- */

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; --i > 0; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00u >> n) | c);
    return n;
}

void pki_nvtx_narrow(char *out, size_t size, const wchar_t *wide)
{
    size_t n = 0;
    for (; wide && *wide && n + 4 < size; wide++) {
        uint32_t c = (uint32_t)*wide;
        n += put_utf8(out + n, c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? 0xFFFD : c);
    }
    out[n] = '\0';
}

void pki_nvtx_domains_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}
