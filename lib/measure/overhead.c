#include "measure/overhead.h"

#include "base/compiler.h"
#include "measure/figure.h"

#include <stdio.h>

#define TIME(ns) (pki_figure_time(ns).text)

/* A point (a counter's value, a step, a mark, an operation) takes about what a region does. */
static double recording(const pki_toll *toll, const pk_counts *counts)
{
    double untimed = (double)counts->untimed;
    return toll->region_ns * ((double)counts->begun - untimed + (double)counts->points) +
           toll->counted_ns * untimed;
}

/* Nobody has had more than there was. */
static pki_processor known_of(const pki_processor *p)
{
    uint64_t running = PKI_MIN(p->running, p->observed);
    if (p->observed < PKI_PROCESSOR_LEAST_NS)
        return (pki_processor){0, 0, 0};
    return (pki_processor){p->observed, running, PKI_MIN(p->ready, p->observed - running)};
}

void pki_overhead_fill(const pki_toll *toll, pki_summary *out)
{
    pki_overhead *o = &out->overhead;
    out->run.cpu = toll->process;
    double base = toll->process ? (double)toll->process : (double)out->run.wall;
    *o = (pki_overhead){.region_ns = toll->region_ns,
                        .recording = recording(toll, &out->counts),
                        .collector = (double)toll->collector,
                        .callers = (double)toll->callers,
                        .captures = (double)toll->captures,
                        .readings = (double)toll->readings,
                        .backends = (double)toll->backends,
                        .counted_ns = toll->counted_ns};
    o->total = o->recording + o->collector + o->callers + o->captures + o->readings + o->backends;
    o->share = base > 0 ? o->total / base : 0;
    if (out->steps.count)
        out->steps.processor = known_of(&toll->stepper);
}

pki_overhead_text pki_overhead_parts(const pki_overhead *o)
{
    const struct {
        double ns;
        const char *where;
    } parts[] = {{o->collector, "in its collector thread"},
                 {o->callers, "in the program's threads in pk_flush, in pk_stop and as they ended"},
                 {o->captures, "writing captures"},
                 {o->readings, "in the program's threads reading what `costs` asks for"},
                 {o->backends, "in threads of backends"}};
    pki_overhead_text out;
    size_t n = (size_t)snprintf(out.text, sizeof out.text, "%s recording (%s per region)",
                                TIME(o->recording), TIME(o->region_ns));
    for (size_t i = 0; i < PKI_COUNT_OF(parts); i++)
        if (parts[i].ns > 0 && n < sizeof out.text)
            n += (size_t)snprintf(out.text + n, sizeof out.text - n, ", %s %s", TIME(parts[i].ns),
                                  parts[i].where);
    return out;
}
