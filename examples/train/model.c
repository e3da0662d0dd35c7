#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "layers.h"

/* ---- all that is learned ---- */

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
    tensor product = {.spread = (real)spread, .decays = true};
    linear n = {.in = in, .out = out};
    n.weight = place(l, weight, in * out, product);
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

/* ---- a decoder-only transformer over bytes ---- */

/* Layers time themselves by kind (attention.c, mlp.c, ...), so that the report can say "attention:
 * 31 %". A variant per block adds where: "block[layer=2]". Each variant is a region with its own
 * distribution. The look-up costs a hash, so model_create() does it once and keeps the pointers. */
static pk_region block_forward_region = PK_REGION_OF(PK_COMPUTE, "block");
static pk_region block_backward_region = PK_REGION_OF(PK_COMPUTE, "block.backward");
static pk_region head_region = PK_REGION_OF(PK_COMPUTE, "head");
static pk_region head_backward_region = PK_REGION_OF(PK_COMPUTE, "head.backward");

static norm_cache take_norm(pool *p, size_t tokens)
{
    norm_cache n;
    n.mean = pool_take(p, tokens);
    n.scale = pool_take(p, tokens);
    return n;
}

static void model_place_block(pool *p, const shape *s, size_t batch, block_activations *b)
{
    size_t tokens = batch * s->seq, vectors = tokens * s->dim;
    b->stream = pool_take(p, vectors);
    b->middle = pool_take(p, vectors);
    b->normed_attention = pool_take(p, vectors);
    b->normed_mlp = pool_take(p, vectors);
    b->norm_attention = take_norm(p, tokens);
    b->norm_mlp = take_norm(p, tokens);
    b->attention.qkv = pool_take(p, 3 * vectors);
    b->attention.probabilities = pool_take(p, tokens * s->heads * s->seq);
    b->attention.mixed = pool_take(p, vectors);
    b->mlp.active = pool_take(p, 4 * vectors);
    b->mlp.slope = pool_take(p, 4 * vectors);
}

static void model_place_all(pool *p, model *m)
{
    const shape *s = &m->shape;
    size_t tokens = m->batch * s->seq, vectors = tokens * s->dim;
    for (size_t i = 0; i < s->layers; i++)
        model_place_block(p, s, m->batch, &m->blocks[i]);
    m->stream = pool_take(p, vectors);
    m->normed = pool_take(p, vectors);
    m->logits = pool_take(p, tokens * VOCABULARY);
    m->last = take_norm(p, tokens);
    m->scratch.stream = pool_take(p, vectors);
    m->scratch.normed = pool_take(p, vectors);
    m->scratch.hidden = pool_take(p, 4 * vectors);
    m->scratch.attention.qkv = pool_take(p, 3 * vectors);
    m->scratch.attention.mixed = pool_take(p, vectors);
    m->scratch.attention.scores = pool_take(p, s->seq * s->seq);
}

static void name_blocks(model *m)
{
    for (size_t i = 0; i < m->shape.layers; i++) {
        m->forward[i] = pk_region_variant(&block_forward_region, "layer", (int64_t)i);
        m->backward[i] = pk_region_variant(&block_backward_region, "layer", (int64_t)i);
    }
}

static bool model_allocate(model *m)
{
    size_t layers = m->shape.layers;
    m->blocks = calloc(layers, sizeof(*m->blocks));
    m->forward = calloc(layers, sizeof(*m->forward));
    m->backward = calloc(layers, sizeof(*m->backward));
    if (!m->blocks || !m->forward || !m->backward || !parameters_init(&m->parameters, &m->shape))
        return false;
    pool counting = {0};
    model_place_all(&counting, m);
    m->memory = calloc(counting.used, sizeof(real));
    return m->memory != NULL;
}

model *model_create(const shape *s, size_t batch)
{
    model *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->shape = *s;
    m->batch = batch;
    if (!model_allocate(m)) {
        model_destroy(m);
        return NULL;
    }
    model_place_all(&(pool){.base = m->memory}, m);
    name_blocks(m);
    return m;
}

void model_destroy(model *m)
{
    if (!m)
        return;
    parameters_finish(&m->parameters);
    free(m->memory);
    free(m->blocks);
    free(m->forward);
    free(m->backward);
    free(m);
}

static void block_forward(const block *w, const block_activations *a, size_t batch, size_t seq,
                          real *out)
{
    size_t tokens = batch * seq, bytes = tokens * w->attention.dim * sizeof(real);
    norm_forward(&w->before_attention, &a->norm_attention, tokens, a->stream, a->normed_attention);
    memcpy(a->middle, a->stream, bytes);
    attention_forward(&w->attention, &a->attention, batch, seq, a->normed_attention, a->middle);
    norm_forward(&w->before_mlp, &a->norm_mlp, tokens, a->middle, a->normed_mlp);
    memcpy(out, a->middle, bytes);
    mlp_forward(&w->mlp, &a->mlp, tokens, a->normed_mlp, out);
}

double model_forward(model *m, const uint8_t *input, const uint8_t *target)
{
    const weights *w = &m->parameters.value;
    size_t layers = m->shape.layers, seq = m->shape.seq, tokens = m->batch * seq;
    embedding_forward(&w->embedding, m->batch, seq, input, m->blocks[0].stream);
    for (size_t i = 0; i < layers; i++) {
        PK_REGION_SCOPE(*m->forward[i]);
        real *out = i + 1 < layers ? m->blocks[i + 1].stream : m->stream;
        block_forward(&w->blocks[i], &m->blocks[i], m->batch, seq, out);
    }
    norm_forward(&w->last, &m->last, tokens, m->stream, m->normed);
    {
        PK_REGION_SCOPE(head_region);
        memset(m->logits, 0, tokens * VOCABULARY * sizeof(real));
        linear_forward(&head_region, &w->head, tokens, m->normed, m->logits);
    }
    return loss_forward_backward(tokens, VOCABULARY, target, m->logits);
}

/* scratch.stream holds the gradient of what the block gave, and then of what it got. */
static void block_backward(model *m, size_t index)
{
    const block *w = &m->parameters.value.blocks[index], *g = &m->parameters.gradient.blocks[index];
    const block_activations *a = &m->blocks[index];
    const model_scratch *s = &m->scratch;
    size_t seq = m->shape.seq, tokens = m->batch * seq;
    mlp_backward(&w->mlp, &g->mlp, &a->mlp, tokens, a->normed_mlp, s->stream, s->normed, s->hidden);
    norm_backward(&w->before_mlp, &g->before_mlp, &a->norm_mlp, tokens, a->middle, s->normed,
                  s->stream);
    attention_backward(&w->attention, &g->attention, &a->attention, &s->attention, m->batch, seq,
                       a->normed_attention, s->stream, s->normed);
    norm_backward(&w->before_attention, &g->before_attention, &a->norm_attention, tokens, a->stream,
                  s->normed, s->stream);
}

void model_backward(model *m, const uint8_t *input)
{
    const weights *w = &m->parameters.value, *g = &m->parameters.gradient;
    const model_scratch *s = &m->scratch;
    size_t tokens = m->batch * m->shape.seq;
    {
        PK_REGION_SCOPE(head_backward_region);
        linear_backward(&head_backward_region, &w->head, &g->head, tokens, m->normed, m->logits,
                        s->normed);
    }
    memset(s->stream, 0, tokens * m->shape.dim * sizeof(real));
    norm_backward(&w->last, &g->last, &m->last, tokens, m->stream, s->normed, s->stream);
    for (size_t i = m->shape.layers; i-- > 0;) {
        PK_REGION_SCOPE(*m->backward[i]);
        block_backward(m, i);
    }
    embedding_backward(&g->embedding, m->batch, m->shape.seq, input, s->stream);
}

/* ---- the optimiser ---- */

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
    {
        PK_REGION_SCOPE(clip_region);
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
    {
        PK_REGION_SCOPE(update_region);
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
