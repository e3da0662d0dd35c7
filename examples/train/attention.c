#include "attention.h"

#include <string.h>
#include <tgmath.h>

#include "matmul.h"

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "attention");
static pk_region backward = PK_REGION_OF(PK_COMPUTE, "attention.backward");

/* One head of one sequence: where its part of each matrix begins. */
typedef struct head {
    size_t seq, size;    /* tokens; numbers per token */
    size_t qkv_row, row; /* from one token to the next */
    size_t qkv, mixed, probabilities;
} head;

static head head_at(const attention *values, size_t seq, size_t sequence, size_t index)
{
    size_t dim = values->dim, size = dim / values->heads;
    return (head){.seq = seq,
                  .size = size,
                  .qkv_row = 3 * dim,
                  .row = dim,
                  .qkv = sequence * seq * 3 * dim + index * size,
                  .mixed = sequence * seq * dim + index * size,
                  .probabilities = (sequence * values->heads + index) * seq * seq};
}

/* Softmax of each row, over the tokens up to its own. */
static void causal_softmax(size_t seq, real scale, real *scores)
{
    for (size_t i = 0; i < seq; i++) {
        real *row = scores + i * seq, most = row[0], sum = 0;
        for (size_t j = 1; j <= i; j++)
            most = row[j] > most ? row[j] : most;
        for (size_t j = 0; j <= i; j++) {
            row[j] = exp((row[j] - most) * scale);
            sum += row[j];
        }
        for (size_t j = 0; j <= i; j++)
            row[j] /= sum;
        memset(row + i + 1, 0, (seq - i - 1) * sizeof(real));
    }
}

static void head_forward(const head *h, const attention_cache *cache)
{
    size_t seq = h->seq, size = h->size;
    const real *q = cache->qkv + h->qkv, *k = q + h->row, *v = k + h->row;
    real *scores = cache->probabilities + h->probabilities;
    matmul(&forward, (extent){seq, seq, size}, plain(q, h->qkv_row), transposed(k, h->qkv_row),
           scores, seq);
    causal_softmax(seq, 1 / sqrt((real)size), scores);
    matmul(&forward, (extent){seq, size, seq}, plain(scores, seq), plain(v, h->qkv_row),
           cache->mixed + h->mixed, h->row);
}

void attention_forward(const attention *values, const attention_cache *cache, size_t batch,
                       size_t seq, const real *x, real *y)
{
    size_t tokens = batch * seq;
    PK_SCOPE(forward) {
        memset(cache->qkv, 0, tokens * 3 * values->dim * sizeof(real));
        linear_forward(&forward, &values->qkv, tokens, x, cache->qkv);
        for (size_t s = 0; s < batch; s++)
            for (size_t i = 0; i < values->heads; i++) {
                head h = head_at(values, seq, s, i);
                head_forward(&h, cache);
            }
        linear_forward(&forward, &values->out, tokens, cache->mixed, y);
    }
}

/* From the gradient of the probabilities to that of the scores, in place. */
static void softmax_backward(size_t seq, real scale, const real *probabilities, real *gradient)
{
    for (size_t i = 0; i < seq; i++) {
        const real *p = probabilities + i * seq;
        real *d = gradient + i * seq, sum = 0;
        for (size_t j = 0; j <= i; j++)
            sum += p[j] * d[j];
        for (size_t j = 0; j < seq; j++)
            d[j] = p[j] * (d[j] - sum) * scale;
    }
}

/* mixed = probabilities v, hence dv = transposed probabilities, times dmixed, and so on. */
static void values_backward(const head *h, const attention_cache *cache,
                            const attention_scratch *scratch)
{
    size_t seq = h->seq, size = h->size;
    const real *v = cache->qkv + h->qkv + 2 * h->row, *dmixed = scratch->mixed + h->mixed;
    real *dv = scratch->qkv + h->qkv + 2 * h->row;
    matmul(&backward, (extent){seq, size, seq},
           transposed(cache->probabilities + h->probabilities, seq), plain(dmixed, h->row), dv,
           h->qkv_row);
    matmul(&backward, (extent){seq, seq, size}, plain(dmixed, h->row), transposed(v, h->qkv_row),
           scratch->scores, seq);
}

/* scores = q, times transposed k */
static void scores_backward(const head *h, const attention_cache *cache,
                            const attention_scratch *scratch)
{
    size_t seq = h->seq, size = h->size;
    const real *q = cache->qkv + h->qkv, *k = q + h->row;
    real *dq = scratch->qkv + h->qkv, *dk = dq + h->row;
    matmul(&backward, (extent){seq, size, seq}, plain(scratch->scores, seq), plain(k, h->qkv_row),
           dq, h->qkv_row);
    matmul(&backward, (extent){seq, size, seq}, transposed(scratch->scores, seq),
           plain(q, h->qkv_row), dk, h->qkv_row);
}

void attention_backward(const attention *values, const attention *gradients,
                        const attention_cache *cache, const attention_scratch *scratch,
                        size_t batch, size_t seq, const real *x, const real *dy, real *dx)
{
    size_t tokens = batch * seq;
    PK_SCOPE(backward) {
        linear_backward(&backward, &values->out, &gradients->out, tokens, cache->mixed, dy,
                        scratch->mixed);
        for (size_t s = 0; s < batch; s++)
            for (size_t i = 0; i < values->heads; i++) {
                head h = head_at(values, seq, s, i);
                values_backward(&h, cache, scratch);
                softmax_backward(seq, 1 / sqrt((real)h.size),
                                 cache->probabilities + h.probabilities, scratch->scores);
                scores_backward(&h, cache, scratch);
            }
        linear_backward(&backward, &values->qkv, &gradients->qkv, tokens, x, scratch->qkv, dx);
    }
}
