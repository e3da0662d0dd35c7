/* lib/base/loader.c in a namespace of its own: what it says there. */
#include "base/loader.h"

__attribute__((visibility("default"))) bool possible(void);

bool possible(void)
{
    return pki_dl_possible();
}
