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

int html_write_job(html_page *job, html_page *drawn, const void *of, FILE *file)
{
    (void)job;
    (void)drawn;
    (void)of;
    (void)file;
    return -ENOSYS;
}
