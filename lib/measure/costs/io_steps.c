#include "measure/costs/io_steps.h"

void pki_io_course_finish(pki_io_course *c)
{
    for (int i = 0; i < PKI_IO_FIGURES; i++)
        pki_tally_finish(&c->each[i]);
    *c = (pki_io_course){0};
}

/* The first that had so much. */
static void see_most(pki_io_most *most, const pki_io_reading *r, double value)
{
    if (most->steps && value <= most->value)
        return;
    *most = (pki_io_most){value, r->last, r->steps};
}

void pki_io_course_add(pki_io_course *c, const pki_io_reading *r)
{
    if (!r->steps)
        return;
    c->readings++;
    c->steps += r->steps;
    c->alone += r->steps == 1;
    if (r->values[PKI_IO_DEVICE_READ] > 0 || r->values[PKI_IO_DEVICE_WRITTEN] > 0)
        c->device += r->steps;
    for (int i = 0; i < PKI_IO_FIGURES; i++) {
        double each = r->values[i] / (double)r->steps;
        (void)pki_tally_add(&c->each[i], each, r->steps); /* or it is not in it */
        see_most(&c->most[i], r, each);
    }
}

static pki_io_step_figure figure(const pki_io_course *c, int i)
{
    return (pki_io_step_figure){pki_tally_dist(&c->each[i]), c->most[i].step, c->most[i].steps};
}

pki_io_steps pki_io_course_summary(const pki_io_course *c)
{
    return (pki_io_steps){.steps = c->steps,
                          .readings = c->readings,
                          .alone = c->alone,
                          .device = c->device,
                          .read = figure(c, PKI_IO_READ),
                          .written = figure(c, PKI_IO_WRITTEN),
                          .device_read = figure(c, PKI_IO_DEVICE_READ),
                          .device_written = figure(c, PKI_IO_DEVICE_WRITTEN),
                          .operations = figure(c, PKI_IO_OPERATIONS)};
}
