#include "inner.h"

#include <pk/pk.h>

static pk_region region = PK_REGION_OF(PK_DATA, "in C");

void inner_work(void (*back)(void))
{
    PK_SCOPE(region) {
        if (back)
            back();
    }
}
