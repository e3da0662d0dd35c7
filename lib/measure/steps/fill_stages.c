/* lib/measure/steps/fill_stages.c - the stages of the loop, for the summary and from a window. */
#include "measure/steps/state.h"

typedef struct source {
    const pki_steps *steps;
    pki_steps_name *name;
    void *user;
} source;

static bool region_of(void *user, uint32_t id, const char **name, uint32_t *kind)
{
    const source *s = user;
    const pki_step_region *region = id < s->steps->region_room ? s->steps->regions[id] : NULL;
    *name = region ? s->name(s->user, id) : NULL;
    *kind = region ? region->kind : PK_OTHER;
    return *name;
}

bool pki_steps_fill_stages(const pki_steps *steps, uint64_t warmup, pki_steps_name *name,
                           void *user, pki_stage_summary *out)
{
    source s = {steps, name, user};
    pki_stages_of all[1 + PKI_STEP_KINDS] = {{NULL, &steps->stages}};
    size_t count = 1;
    for (size_t i = 0; i < steps->other_count; i++)
        all[count++] = (pki_stages_of){steps->others[i].kind, &steps->others[i].stages};
    *out = (pki_stage_summary){0};
    if (!pki_stages_fill(all, count, region_of, &s, out))
        return false;
    out->warmup = warmup;
    return true;
}
