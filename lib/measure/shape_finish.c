/* lib/measure/shape_finish.c - what a pki_summary points to, given back. */
#include "measure/shape.h"

#include <stdlib.h>
#include <string.h>

static void finish_member(const pki_member *member, char *object)
{
    void *at = object + member->offset, *block;
    size_t count;
    switch (member->type) {
    case PKI_TEXT:
    case PKI_NUMBERS:
    case PKI_TABLE:
        memcpy(&block, at, sizeof block);
        free(block);
        break;
    case PKI_OBJECT:
        pki_shape_finish(member->shape, at);
        break;
    case PKI_ROWS:
        memcpy(&block, at, sizeof block);
        memcpy(&count, object + member->count, sizeof count);
        pki_shape_finish_rows(member->shape, block, count);
        break;
    default:
        break;
    }
}

void pki_shape_finish(const pki_shape *shape, void *object)
{
    for (size_t i = 0; i < shape->count; i++)
        finish_member(&shape->members[i], object);
}

void pki_shape_finish_rows(const pki_shape *shape, void *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pki_shape_finish(shape, (char *)rows + i * shape->size);
    free(rows);
}

void pki_step_summary_finish(pki_step_summary *steps)
{
    pki_shape_finish(&pki_steps_shape, steps);
    *steps = (pki_step_summary){0};
}

void pki_stage_summary_finish(pki_stage_summary *stages)
{
    pki_shape_finish(&pki_stages_shape, stages);
    *stages = (pki_stage_summary){0};
}

void pki_gpu_finish(pki_summary *summary)
{
    pki_shape_finish_rows(&pki_kernel_shape, summary->kernels, summary->kernel_count);
    pki_shape_finish_rows(&pki_gpu_shape, summary->gpus, summary->gpu_count);
    summary->kernels = NULL;
    summary->gpus = NULL;
    summary->gpu_count = summary->kernel_count = 0;
}

void pki_comm_finish(pki_summary *summary)
{
    pki_shape_finish(&pki_comm_shape, &summary->comm);
    summary->comm = (pki_comm_summary){0};
}

void pki_summary_clear_verdicts(pki_summary *summary)
{
    pki_shape_finish_rows(&pki_verdict_shape, summary->verdicts, summary->verdict_count);
    summary->verdicts = NULL;
    summary->verdict_count = 0;
}

void pki_summary_finish(pki_summary *summary)
{
    pki_shape_finish(&pki_summary_shape, summary);
    pki_summary_init(summary);
}
