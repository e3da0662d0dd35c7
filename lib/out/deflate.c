#include "out/deflate.h"

pki_deflate *pki_deflate_create(void)
{
    const pki_deflate_kind *kind = pki_deflate_isal();
    kind = kind ? kind : &pki_deflate_zlib;
    pki_deflate *stream = kind->create();
    if (stream)
        stream->kind = kind;
    return stream;
}

void pki_deflate_destroy(pki_deflate *stream)
{
    if (stream)
        stream->kind->destroy(stream);
}

bool pki_deflate_run(pki_deflate *stream, pki_deflated *out, const char *data, size_t n)
{
    return stream->kind->run(stream, out, data, n);
}

void pki_deflate_restart(pki_deflate *stream)
{
    stream->kind->restart(stream);
}

uint32_t pki_deflate_checksum(pki_deflate *stream, uint32_t sum, const char *data, size_t n)
{
    return stream->kind->checksum(sum, data, n);
}
