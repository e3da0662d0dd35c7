/* tools/html/none.c - where uPlot was not there when pk was built. */
#include "html/html.h"

#include <errno.h>

const bool html_is_there = false;

int html_write(const html_run *run, const html_run *against, FILE *file)
{
    (void)run;
    (void)against;
    (void)file;
    return -ENOSYS;
}
