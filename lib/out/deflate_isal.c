/* lib/out/deflate_isal.c - by ISA-L. */
#include "out/deflate.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* Of events 1 is as small as zlib's 3, and the next steps cost more than they save. */
#define LEVEL 1

struct pki_deflate {
    struct isal_zstream stream;
    uint8_t level[ISAL_DEF_LVL1_DEFAULT];
};

static void set_up(pki_deflate *s)
{
    isal_deflate_init(&s->stream);
    s->stream.level = LEVEL;
    s->stream.level_buf = s->level;
    s->stream.level_buf_size = sizeof s->level;
    s->stream.gzip_flag = IGZIP_DEFLATE;
    s->stream.flush = SYNC_FLUSH;
}

pki_deflate *pki_deflate_create(void)
{
    pki_deflate *s =
        aligned_alloc(PKI_LINE, (sizeof *s + PKI_LINE - 1) / PKI_LINE * PKI_LINE); /* it asks */
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    set_up(s);
    return s;
}

void pki_deflate_destroy(pki_deflate *s)
{
    free(s);
}

void pki_deflate_restart(pki_deflate *s)
{
    set_up(s);
}

bool pki_deflate_run(pki_deflate *s, pki_deflated *out, const char *data, size_t n)
{
    struct isal_zstream *z = &s->stream;
    z->next_in = (uint8_t *)(uintptr_t)data;
    z->avail_in = (uint32_t)n;
    do {
        if (!pki_deflated_fit(out, 4096))
            return false;
        size_t room = out->room - out->used;
        z->next_out = (uint8_t *)out->bytes + out->used;
        z->avail_out = (uint32_t)room;
        if (isal_deflate(z) != COMP_OK)
            return false;
        out->used += room - z->avail_out;
    } while (z->avail_out == 0 || z->avail_in > 0);
    return true;
}

uint32_t pki_deflate_checksum(uint32_t sum, const char *data, size_t n)
{
    return crc32_gzip_refl(sum, (const unsigned char *)data, n);
}
