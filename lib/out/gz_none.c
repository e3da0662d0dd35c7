/* lib/out/gz_none.c - built without zlib. */
#include <errno.h>

#include "out/gz.h"

bool pki_gz_available(void)
{
    return false;
}

pki_gz *pki_gz_create(void)
{
    errno = ENOTSUP;
    return NULL;
}

void pki_gz_destroy(pki_gz *gz)
{
    (void)gz;
}

bool pki_gz_append(pki_gz *gz, const char *data, size_t n, const char *tail, size_t tail_bytes,
                   pki_gz_output *out)
{
    (void)gz, (void)data, (void)n, (void)tail, (void)tail_bytes, (void)out;
    errno = ENOTSUP;
    return false;
}

void pki_gz_commit(pki_gz *gz)
{
    (void)gz;
}

void pki_gz_undo(pki_gz *gz)
{
    (void)gz;
}
