/* tools/recover/cut_none.c - mending cut traces where jansson was not there when pk was built. */
#include "recover/recover.h"

bool recover_cut(const char *path, const char *out, recovery *done, complaint *why)
{
    (void)path, (void)out, (void)done;
    return complaint_set(why,
                         "not an arena, and this pk was built without jansson, which reads traces");
}
