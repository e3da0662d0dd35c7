/* lib/out/deflate_isal_none.c - built without ISA-L's headers. */
#include "out/deflate.h"

const pki_deflate_kind *pki_deflate_isal(void)
{
    return NULL;
}
