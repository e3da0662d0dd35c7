#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "loss.h"
#include "pool.h"

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

static void place_block(pool *p, const shape *s, size_t batch, block_activations *b)
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

static void place_all(pool *p, model *m)
{
    const shape *s = &m->shape;
    size_t tokens = m->batch * s->seq, vectors = tokens * s->dim;
    for (size_t i = 0; i < s->layers; i++)
        place_block(p, s, m->batch, &m->blocks[i]);
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

static bool allocate(model *m)
{
    size_t layers = m->shape.layers;
    m->blocks = calloc(layers, sizeof(*m->blocks));
    m->forward = calloc(layers, sizeof(*m->forward));
    m->backward = calloc(layers, sizeof(*m->backward));
    if (!m->blocks || !m->forward || !m->backward || !parameters_init(&m->parameters, &m->shape))
        return false;
    pool counting = {0};
    place_all(&counting, m);
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
    if (!allocate(m)) {
        model_destroy(m);
        return NULL;
    }
    place_all(&(pool){.base = m->memory}, m);
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
    for (size_t i = 0; i < layers; i++)
        PK_SCOPE(*m->forward[i]) {
            real *out = i + 1 < layers ? m->blocks[i + 1].stream : m->stream;
            block_forward(&w->blocks[i], &m->blocks[i], m->batch, seq, out);
        }
    norm_forward(&w->last, &m->last, tokens, m->stream, m->normed);
    PK_SCOPE(head_region) {
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
    PK_SCOPE(head_backward_region) {
        linear_backward(&head_backward_region, &w->head, &g->head, tokens, m->normed, m->logits,
                        s->normed);
    }
    memset(s->stream, 0, tokens * m->shape.dim * sizeof(real));
    norm_backward(&w->last, &g->last, &m->last, tokens, m->stream, s->normed, s->stream);
    for (size_t i = m->shape.layers; i-- > 0;)
        PK_SCOPE(*m->backward[i]) {
            block_backward(m, i);
        }
    embedding_backward(&g->embedding, m->batch, m->shape.seq, input, s->stream);
}
