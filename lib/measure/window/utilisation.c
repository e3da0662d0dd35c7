#include "measure/window/utilisation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/machine/roofline.h"
#include "measure/shape.h"

void pki_window_work(pki_window_steps *steps)
{
    pki_step_work all = steps->exact.tail.work;
    for (size_t i = 0; i < steps->exact.head_count; i++)
        pki_step_work_add(&all, &steps->exact.head[i].step.work);
    steps->utilisation = (pki_utilisation){
        .steps = all.steps, .time = all.time, .model = all.model, .hardware = all.hardware};
}

bool pki_peak_update(pki_utilisation *kept, const pki_window *window)
{
    const pki_utilisation *u = &window->steps.utilisation;
    if (!u->steps || !u->source || !u->precision)
        return true;
    pki_shape_finish(&pki_utilisation_shape, kept);
    *kept = (pki_utilisation){
        .peak = u->peak, .precision = strdup(u->precision), .source = strdup(u->source)};
    return kept->precision && kept->source;
}

bool pki_peak_apply(const pki_utilisation *kept, pki_utilisation *sums)
{
    pki_peak peak = {.flops = kept->peak};
    if (!kept->source)
        return true;
    snprintf(peak.precision, sizeof peak.precision, "%s", kept->precision);
    snprintf(peak.source, sizeof peak.source, "%s", kept->source);
    return pki_utilisation_fill(sums, &peak);
}
