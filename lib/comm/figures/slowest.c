/* lib/comm/figures/slowest.c - the steps that the slowest operations began in. */
#include "comm/figures/cells.h"

#include "base/compiler.h"

static bool put(pki_timed_operation *op, const pki_comm_step *step)
{
    if (op->in_step || op->start < step->start || op->start >= step->end)
        return false;
    op->in_step = 1;
    op->step = step->index;
    return true;
}

void pki_comm_figures_find_step(const pki_comm_figures *c, pki_timed_operation *op)
{
    uint64_t known = PKI_MIN(c->step_count, (uint64_t)PKI_COMM_FIGURES_STEPS);
    for (uint64_t i = 1; i <= known; i++)
        if (put(op, &c->steps[(c->step_count - i) % PKI_COMM_FIGURES_STEPS]))
            return;
}

void pki_comm_figures_step(pki_comm_figures *c, uint64_t index, uint64_t start, uint64_t end)
{
    if (!c)
        return;
    pki_comm_step *step = &c->steps[c->step_count++ % PKI_COMM_FIGURES_STEPS];
    *step = (pki_comm_step){index, start, end};
    for (size_t i = 0; i < c->slow_count; i++)
        put(&c->slow[i], step);
}
