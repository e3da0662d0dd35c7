/* lib/out/deflate_isal.c - by ISA-L. */
#include "out/deflate.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/loader.h"

/* Of events 1 is as small as zlib's 3, and the next steps cost more than they save. */
#define LEVEL 1

typedef struct isal_stream {
    pki_deflate deflate;
    uint8_t level[ISAL_DEF_LVL1_DEFAULT];
    struct isal_zstream stream;
} isal_stream;

typedef struct functions {
    void (*init)(struct isal_zstream *stream);
    int (*deflate)(struct isal_zstream *stream);
    uint32_t (*crc)(uint32_t sum, const unsigned char *data, uint64_t n);
} functions;

static functions isal;

static void set_up(isal_stream *s)
{
    isal.init(&s->stream);
    s->stream.level = LEVEL;
    s->stream.level_buf = s->level;
    s->stream.level_buf_size = sizeof s->level;
    s->stream.gzip_flag = IGZIP_DEFLATE;
    s->stream.flush = SYNC_FLUSH;
}

static pki_deflate *create(void)
{
    isal_stream *s = aligned_alloc(PKI_LINE, (sizeof *s + PKI_LINE - 1) / PKI_LINE * PKI_LINE);
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    set_up(s);
    return &s->deflate;
}

static void destroy(pki_deflate *s)
{
    free(s);
}

static void restart(pki_deflate *s)
{
    set_up((isal_stream *)s);
}

static bool run(pki_deflate *s, pki_deflated *out, const char *data, size_t n)
{
    struct isal_zstream *z = &((isal_stream *)s)->stream;
    z->next_in = (uint8_t *)(uintptr_t)data;
    z->avail_in = (uint32_t)n;
    do {
        if (!pki_deflated_fit(out, 4096))
            return false;
        size_t room = out->room - out->used;
        z->next_out = (uint8_t *)out->bytes + out->used;
        z->avail_out = (uint32_t)room;
        if (isal.deflate(z) != COMP_OK)
            return false;
        out->used += room - z->avail_out;
    } while (z->avail_out == 0 || z->avail_in > 0);
    return true;
}

static uint32_t checksum(uint32_t sum, const char *data, size_t n)
{
    return isal.crc(sum, (const unsigned char *)data, n);
}

static const pki_deflate_kind kind = {create, destroy, run, restart, checksum};

#define FUNCTION(member, name) PKI_DL_FUNCTION(functions, member, name, false)

static const pki_dl_function wanted[] = {
    FUNCTION(init, "isal_deflate_init"),
    FUNCTION(deflate, "isal_deflate"),
    FUNCTION(crc, "crc32_gzip_refl"),
};

/* For the process's life. No lock: a child that was forked amid one would wait for ever. */
const pki_deflate_kind *pki_deflate_isal(void)
{
    static const char *const names[] = {"libisal.so.2", NULL};
    static uint32_t known; /* 1: it is there, 2: it is not */
    char reason[256];
    uint32_t answer = pki_load_acquire(&known);
    if (!answer) {
        functions found;
        void *library = pki_dl_open("PK_ISAL_LIBRARY", names, reason, sizeof reason);
        bool bound = library && pki_dl_bind(library, wanted, PKI_COUNT_OF(wanted), &found, reason,
                                            sizeof reason);
        if (bound)
            isal = found; /* whoever comes meanwhile writes the same */
        answer = bound ? 1 : 2;
        pki_store_release(&known, answer);
    }
    return answer == 1 ? &kind : NULL;
}
