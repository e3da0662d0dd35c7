#include "adamw.h"

#include <pk/pk.h>
#include <tgmath.h>

static pk_region clip_region = PK_REGION_OF(PK_COMPUTE, "clip");
static pk_region update_region = PK_REGION_OF(PK_COMPUTE, "adamw");

static double norm_of(size_t count, const real *x)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* Returns by what the gradient is to be multiplied. */
static double clip(const adamw *o, const parameters *p, double *length)
{
    PK_SCOPE(clip_region) {
        *length = norm_of(p->count, p->gradients);
        pk_region_add(&clip_region, p->count * sizeof(real), 2 * p->count);
    }
    return o->clip > 0 && *length > o->clip ? o->clip / *length : 1;
}

/* What is the same for all numbers of a step. */
typedef struct step_size {
    real scale, beta1, beta2, correction1, correction2, epsilon, rate, shrink;
} step_size;

static void update(const step_size *s, size_t count, real *restrict value,
                   const real *restrict gradient, real *restrict first, real *restrict second)
{
    for (size_t i = 0; i < count; i++) {
        real g = gradient[i] * s->scale;
        first[i] = s->beta1 * first[i] + (1 - s->beta1) * g;
        second[i] = s->beta2 * second[i] + (1 - s->beta2) * g * g;
        real mean = first[i] * s->correction1, square = second[i] * s->correction2;
        value[i] = value[i] * s->shrink - s->rate * mean / (sqrt(square) + s->epsilon);
    }
}

double adamw_update(const adamw *o, parameters *p, double learning_rate, uint64_t step)
{
    double length = 0, t = (double)step + 1;
    step_size s = {.scale = (real)clip(o, p, &length),
                   .beta1 = (real)o->beta1,
                   .beta2 = (real)o->beta2,
                   /* The moments begin at 0: without this they would be too small at first. */
                   .correction1 = (real)(1 / (1 - pow(o->beta1, t))),
                   .correction2 = (real)(1 / (1 - pow(o->beta2, t))),
                   .epsilon = (real)o->epsilon,
                   .rate = (real)learning_rate};
    PK_SCOPE(update_region) {
        for (size_t i = 0; i < p->tensor_count; i++) {
            const tensor *w = &p->tensors[i];
            s.shrink = w->decays ? (real)(1 - learning_rate * o->decay) : 1;
            update(&s, w->count, p->values + w->offset, p->gradients + w->offset,
                   p->first_moment + w->offset, p->second_moment + w->offset);
        }
        /* Four arrays read, three written. */
        pk_region_add(&update_region, 7 * p->count * sizeof(real), 14 * p->count);
    }
    return length;
}

double learning_rate_at(double peak, uint64_t warmup, uint64_t steps, uint64_t step)
{
    if (step < warmup)
        return peak * (double)(step + 1) / (double)warmup;
    if (step >= steps)
        return peak * 0.1;
    double way = (double)(step - warmup) / (double)(steps - warmup);
    return peak * (0.1 + 0.45 * (1 + cos(3.141592653589793 * way)));
}
