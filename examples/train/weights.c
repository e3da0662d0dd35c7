#include "weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "random.h"

/* A walk over all tensors in their order, which binds the views of one array. */
typedef struct layout {
    pool pool;
    tensor *tensors; /* NULL: not listed this time */
    size_t listed;
    char prefix[32];
} layout;

static real *place(layout *l, const char *name, size_t count, tensor as)
{
    if (l->tensors) {
        snprintf(as.name, sizeof(as.name), "%s%s", l->prefix, name);
        as.offset = l->pool.used;
        as.count = count;
        l->tensors[l->listed] = as;
    }
    l->listed++;
    return pool_take(&l->pool, count);
}

static const tensor zero = {.spread = 0};
static const tensor one = {.center = 1};

static norm place_norm(layout *l, const char *gain, const char *bias, size_t dim)
{
    norm n = {.dim = dim};
    n.gain = place(l, gain, dim, one);
    n.bias = place(l, bias, dim, zero);
    return n;
}

static linear place_linear(layout *l, const char *weight, const char *bias, size_t in, size_t out,
                           double spread)
{
    tensor matrix = {.spread = (real)spread, .decays = true};
    linear n = {.in = in, .out = out};
    n.weight = place(l, weight, in * out, matrix);
    if (bias)
        n.bias = place(l, bias, out, zero);
    return n;
}

/* Matrices begin such that a vector keeps its length; what is added to the residual stream begins
 * smaller the more layers add to it. */
static void place_block(layout *l, const shape *s, block *b)
{
    double in = 1 / sqrt((double)s->dim), out = in / sqrt(2 * (double)s->layers);
    b->before_attention = place_norm(l, "attention.norm.gain", "attention.norm.bias", s->dim);
    b->attention.dim = s->dim;
    b->attention.heads = s->heads;
    b->attention.qkv = place_linear(l, "qkv.weight", "qkv.bias", s->dim, 3 * s->dim, in);
    b->attention.out = place_linear(l, "out.weight", "out.bias", s->dim, s->dim, out);
    b->before_mlp = place_norm(l, "mlp.norm.gain", "mlp.norm.bias", s->dim);
    b->mlp.up = place_linear(l, "up.weight", "up.bias", s->dim, 4 * s->dim, in);
    b->mlp.down = place_linear(l, "down.weight", "down.bias", 4 * s->dim, s->dim, out / 2);
}

static void place_all(layout *l, const shape *s, weights *w)
{
    tensor vector = {.spread = (real)0.1};
    w->embedding.dim = s->dim;
    w->embedding.byte = place(l, "embedding.byte", VOCABULARY * s->dim, vector);
    w->embedding.position = place(l, "embedding.position", s->seq * s->dim, vector);
    for (size_t i = 0; i < s->layers; i++) {
        snprintf(l->prefix, sizeof(l->prefix), "block.%zu.", i);
        place_block(l, s, &w->blocks[i]);
    }
    l->prefix[0] = '\0';
    w->last = place_norm(l, "norm.gain", "norm.bias", s->dim);
    w->head = place_linear(l, "head.weight", NULL, s->dim, VOCABULARY, 0.02);
}

static bool allocate(parameters *p)
{
    p->values = calloc(p->count, sizeof(real));
    p->gradients = calloc(p->count, sizeof(real));
    p->first_moment = calloc(p->count, sizeof(real));
    p->second_moment = calloc(p->count, sizeof(real));
    p->tensors = calloc(p->tensor_count, sizeof(*p->tensors));
    return p->values && p->gradients && p->first_moment && p->second_moment && p->tensors;
}

bool parameters_init(parameters *p, const shape *s)
{
    *p = (parameters){0};
    p->value.blocks = calloc(s->layers, sizeof(block));
    p->gradient.blocks = calloc(s->layers, sizeof(block));
    if (!p->value.blocks || !p->gradient.blocks)
        return false;
    layout counting = {0};
    place_all(&counting, s, &p->value);
    p->count = counting.pool.used;
    p->tensor_count = counting.listed;
    if (!allocate(p))
        return false;
    place_all(&(layout){.pool.base = p->values, .tensors = p->tensors}, s, &p->value);
    place_all(&(layout){.pool.base = p->gradients}, s, &p->gradient);
    return true;
}

void parameters_finish(parameters *p)
{
    free(p->values);
    free(p->gradients);
    free(p->first_moment);
    free(p->second_moment);
    free(p->tensors);
    free(p->value.blocks);
    free(p->gradient.blocks);
    *p = (parameters){0};
}

void parameters_randomise(parameters *p, uint64_t seed)
{
    random_source source = {.state = random_mix(seed)};
    for (size_t i = 0; i < p->tensor_count; i++) {
        const tensor *t = &p->tensors[i];
        for (size_t j = 0; j < t->count; j++)
            p->values[t->offset + j] = t->center + t->spread * (real)random_normal(&source);
    }
}

void parameters_clear_gradients(parameters *p)
{
    memset(p->gradients, 0, p->count * sizeof(real));
}
