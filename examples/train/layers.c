#include "layers.h"

#include <math.h>
#include <string.h>
#include <tgmath.h>

/* ---- random numbers that are the same on every machine for a seed ---- */

uint64_t random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t random_bits(random_source *source)
{
    source->state += 0x9e3779b97f4a7c15u;
    return random_mix(source->state);
}

/* In (0, 1): never 0, whose logarithm would be infinite. */
static double unit(random_source *source)
{
    return ((double)(random_bits(source) >> 11) + 0.5) * 0x1p-53;
}

double random_normal(random_source *source)
{
    double radius = sqrt(-2 * log(unit(source)));
    return radius * cos(6.283185307179586 * unit(source));
}

/* A Feistel network permutes the numbers of 2 * half bits, whatever its round function is. */
static uint64_t permute(uint64_t key, uint64_t x, unsigned half)
{
    uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < 4; round++) {
        uint64_t next = left ^ (random_mix(key ^ random_mix(right + (round << 56))) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t random_order(uint64_t key, uint64_t place, uint64_t count)
{
    unsigned half = 1;
    while (half < 31 && (uint64_t)1 << (2 * half) < count)
        half++;
    /* The network's domain is at most four times too large: walk its cycle until back inside. */
    do
        place = permute(key, place, half);
    while (place >= count);
    return place;
}

/* ---- the matrix product, where a step spends most of its time ---- */

/* A tile of ROWS x COLUMNS sums stays in vector registers while it walks DEPTH columns of a and
 * rows of b; the panel of b that it walks is packed so that it lies in the first-level cache.
 * Vectors of 16 bytes are what every x86-64 and aarch64 has. */
enum { ROWS = 4, COLUMNS = 8, DEPTH = 256 };
enum { LANES = 16 / sizeof(real), VECTORS = COLUMNS / LANES };

typedef real lanes __attribute__((vector_size(16)));

typedef union panel {
    real element[DEPTH][COLUMNS];
    lanes vector[DEPTH][VECTORS];
} panel;

/* Where in the product a tile is. */
typedef struct place {
    size_t row, column;  /* of c */
    size_t depth, count; /* the columns of a that it walks */
} place;

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Columns beyond the edge are zero, so that the tile needs no edge case. */
static void pack(extent e, matrix b, place at, panel *to)
{
    size_t width = lesser(COLUMNS, e.n - at.column);
    for (size_t l = 0; l < at.count; l++) {
        const real *row = b.data + (at.depth + l) * b.row + at.column * b.column;
        for (size_t j = 0; j < COLUMNS; j++)
            to->element[l][j] = j < width ? row[j * b.column] : 0;
    }
}

static void store(extent e, place at, lanes sum[ROWS][VECTORS], real *c, size_t c_row)
{
    size_t rows = lesser(ROWS, e.m - at.row), columns = lesser(COLUMNS, e.n - at.column);
    for (size_t i = 0; i < rows; i++) {
        real *row = c + (at.row + i) * c_row + at.column;
        for (size_t j = 0; j < columns; j++)
            row[j] += sum[i][j / LANES][j % LANES];
    }
}

static void multiply_tile(extent e, matrix a, const panel *b, place at, real *c, size_t c_row)
{
    lanes sum[ROWS][VECTORS] = {{{0}}};
    const real *row[ROWS];
    /* Rows beyond the edge repeat the last one; store() leaves them out. */
    for (size_t i = 0; i < ROWS; i++)
        row[i] = a.data + lesser(at.row + i, e.m - 1) * a.row + at.depth * a.column;
    for (size_t l = 0; l < at.count; l++)
        for (size_t i = 0; i < ROWS; i++)
            for (size_t v = 0; v < VECTORS; v++)
                sum[i][v] += row[i][l * a.column] * b->vector[l][v];
    store(e, at, sum, c, c_row);
}

void matmul_add(pk_region *charge, extent e, matrix a, matrix b, real *c, size_t c_row)
{
    panel packed;
    place at;
    for (at.depth = 0; at.depth < e.k; at.depth += DEPTH) {
        at.count = lesser(DEPTH, e.k - at.depth);
        for (at.column = 0; at.column < e.n; at.column += COLUMNS) {
            pack(e, b, at, &packed);
            for (at.row = 0; at.row < e.m; at.row += ROWS)
                multiply_tile(e, a, &packed, at, c, c_row);
        }
    }
    pk_region_add(charge, (e.m * e.k + e.k * e.n + e.m * e.n) * sizeof(real),
                  2 * (uint64_t)e.m * e.n * e.k);
}

void matmul(pk_region *charge, extent e, matrix a, matrix b, real *c, size_t c_row)
{
    for (size_t i = 0; i < e.m; i++)
        memset(c + i * c_row, 0, e.n * sizeof(real));
    matmul_add(charge, e, a, b, c, c_row);
}

/* ---- y = x W + b, and its derivative ---- */

void linear_forward(pk_region *charge, const linear *values, size_t tokens, const real *x, real *y)
{
    size_t in = values->in, out = values->out;
    if (values->bias)
        for (size_t t = 0; t < tokens; t++)
            for (size_t j = 0; j < out; j++)
                y[t * out + j] += values->bias[j];
    matmul_add(charge, (extent){tokens, out, in}, plain(x, in), plain(values->weight, out), y, out);
}

/* dW += transposed x, times dy; db += the sum of dy's rows. */
static void add_gradients(pk_region *charge, const linear *gradients, size_t tokens, const real *x,
                          const real *dy)
{
    size_t in = gradients->in, out = gradients->out;
    if (gradients->bias)
        for (size_t t = 0; t < tokens; t++)
            for (size_t j = 0; j < out; j++)
                gradients->bias[j] += dy[t * out + j];
    matmul_add(charge, (extent){in, out, tokens}, transposed(x, in), plain(dy, out),
               gradients->weight, out);
}

void linear_backward(pk_region *charge, const linear *values, const linear *gradients,
                     size_t tokens, const real *x, const real *dy, real *dx)
{
    size_t in = values->in, out = values->out;
    add_gradients(charge, gradients, tokens, x, dy);
    /* dx = dy, times transposed W */
    matmul(charge, (extent){tokens, in, out}, plain(dy, out), transposed(values->weight, out), dx,
           in);
}

/* ---- layer normalisation ---- */

static pk_region norm_region = PK_REGION_OF(PK_COMPUTE, "layernorm");
static pk_region norm_back_region = PK_REGION_OF(PK_COMPUTE, "layernorm.backward");

static real mean_of(size_t n, const real *x)
{
    real sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (real)n;
}

static real variance_of(size_t n, const real *x, real mean)
{
    real sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum / (real)n;
}

void norm_forward(const norm *values, const norm_cache *cache, size_t tokens, const real *x,
                  real *y)
{
    size_t dim = values->dim;
    PK_REGION_SCOPE(norm_region);
    for (size_t t = 0; t < tokens; t++, x += dim, y += dim) {
        real mean = mean_of(dim, x);
        real scale = 1 / sqrt(variance_of(dim, x, mean) + (real)1e-5);
        for (size_t i = 0; i < dim; i++)
            y[i] = (x[i] - mean) * scale * values->gain[i] + values->bias[i];
        cache->mean[t] = mean;
        cache->scale[t] = scale;
    }
}

static void token_backward(const norm *values, const norm *gradients, real mean, real scale,
                           const real *x, const real *dy, real *dx)
{
    size_t dim = values->dim;
    real sum = 0, product = 0;
    for (size_t i = 0; i < dim; i++) {
        real unit = (x[i] - mean) * scale, d = dy[i] * values->gain[i];
        gradients->gain[i] += dy[i] * unit;
        gradients->bias[i] += dy[i];
        sum += d;
        product += d * unit;
    }
    /* Mean and variance depend on every x: their part is taken off what came straight down. */
    sum /= (real)dim;
    product /= (real)dim;
    for (size_t i = 0; i < dim; i++) {
        real unit = (x[i] - mean) * scale;
        dx[i] += (dy[i] * values->gain[i] - sum - unit * product) * scale;
    }
}

void norm_backward(const norm *values, const norm *gradients, const norm_cache *cache,
                   size_t tokens, const real *x, const real *dy, real *dx)
{
    size_t dim = values->dim;
    PK_REGION_SCOPE(norm_back_region);
    for (size_t t = 0; t < tokens; t++)
        token_backward(values, gradients, cache->mean[t], cache->scale[t], x + t * dim,
                       dy + t * dim, dx + t * dim);
}

/* ---- from bytes to vectors ---- */

static pk_region embedding_region = PK_REGION_OF(PK_COMPUTE, "embedding");
static pk_region embedding_back_region = PK_REGION_OF(PK_COMPUTE, "embedding.backward");

void embedding_forward(const embedding *values, size_t batch, size_t seq, const uint8_t *bytes,
                       real *y)
{
    size_t dim = values->dim;
    PK_REGION_SCOPE(embedding_region);
    for (size_t t = 0; t < batch * seq; t++) {
        const real *byte = values->byte + bytes[t] * dim;
        const real *position = values->position + t % seq * dim;
        for (size_t i = 0; i < dim; i++)
            y[t * dim + i] = byte[i] + position[i];
    }
}

void embedding_backward(const embedding *gradients, size_t batch, size_t seq, const uint8_t *bytes,
                        const real *dy)
{
    size_t dim = gradients->dim;
    PK_REGION_SCOPE(embedding_back_region);
    for (size_t t = 0; t < batch * seq; t++) {
        real *byte = gradients->byte + bytes[t] * dim;
        real *position = gradients->position + t % seq * dim;
        for (size_t i = 0; i < dim; i++) {
            byte[i] += dy[t * dim + i];
            position[i] += dy[t * dim + i];
        }
    }
}

/* ---- causal self-attention with several heads ---- */

static pk_region attention_region = PK_REGION_OF(PK_COMPUTE, "attention");
static pk_region attention_back_region = PK_REGION_OF(PK_COMPUTE, "attention.backward");

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
    matmul(&attention_region, (extent){seq, seq, size}, plain(q, h->qkv_row),
           transposed(k, h->qkv_row), scores, seq);
    causal_softmax(seq, 1 / sqrt((real)size), scores);
    matmul(&attention_region, (extent){seq, size, seq}, plain(scores, seq), plain(v, h->qkv_row),
           cache->mixed + h->mixed, h->row);
}

void attention_forward(const attention *values, const attention_cache *cache, size_t batch,
                       size_t seq, const real *x, real *y)
{
    size_t tokens = batch * seq;
    PK_REGION_SCOPE(attention_region);
    memset(cache->qkv, 0, tokens * 3 * values->dim * sizeof(real));
    linear_forward(&attention_region, &values->qkv, tokens, x, cache->qkv);
    for (size_t s = 0; s < batch; s++)
        for (size_t i = 0; i < values->heads; i++) {
            head h = head_at(values, seq, s, i);
            head_forward(&h, cache);
        }
    linear_forward(&attention_region, &values->out, tokens, cache->mixed, y);
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
    matmul(&attention_back_region, (extent){seq, size, seq},
           transposed(cache->probabilities + h->probabilities, seq), plain(dmixed, h->row), dv,
           h->qkv_row);
    matmul(&attention_back_region, (extent){seq, seq, size}, plain(dmixed, h->row),
           transposed(v, h->qkv_row), scratch->scores, seq);
}

/* scores = q, times transposed k */
static void scores_backward(const head *h, const attention_cache *cache,
                            const attention_scratch *scratch)
{
    size_t seq = h->seq, size = h->size;
    const real *q = cache->qkv + h->qkv, *k = q + h->row;
    real *dq = scratch->qkv + h->qkv, *dk = dq + h->row;
    matmul(&attention_back_region, (extent){seq, size, seq}, plain(scratch->scores, seq),
           plain(k, h->qkv_row), dq, h->qkv_row);
    matmul(&attention_back_region, (extent){seq, size, seq}, transposed(scratch->scores, seq),
           plain(q, h->qkv_row), dk, h->qkv_row);
}

void attention_backward(const attention *values, const attention *gradients,
                        const attention_cache *cache, const attention_scratch *scratch,
                        size_t batch, size_t seq, const real *x, const real *dy, real *dx)
{
    size_t tokens = batch * seq;
    PK_REGION_SCOPE(attention_back_region);
    linear_backward(&attention_back_region, &values->out, &gradients->out, tokens, cache->mixed, dy,
                    scratch->mixed);
    for (size_t s = 0; s < batch; s++)
        for (size_t i = 0; i < values->heads; i++) {
            head h = head_at(values, seq, s, i);
            values_backward(&h, cache, scratch);
            softmax_backward(seq, 1 / sqrt((real)h.size), cache->probabilities + h.probabilities,
                             scratch->scores);
            scores_backward(&h, cache, scratch);
        }
    linear_backward(&attention_back_region, &values->qkv, &gradients->qkv, tokens, x, scratch->qkv,
                    dx);
}

/* ---- the block's two-layer network ---- */

static pk_region mlp_region = PK_REGION_OF(PK_COMPUTE, "mlp");
static pk_region mlp_back_region = PK_REGION_OF(PK_COMPUTE, "mlp.backward");

/* x (1 + tanh(z / 2)) / 2 with z = 2 sqrt(2 / pi) (x + 0.044715 x^3), in the form x sigmoid(z),
 * which takes one exponential. Replaces x by its value. */
static void gelu(size_t n, real *x, real *slope)
{
    const real a = (real)1.5957691216057308, b = (real)0.044715;
    for (size_t i = 0; i < n; i++) {
        real u = x[i];
        real gate = 1 / (1 + exp(-a * (u + b * u * u * u)));
        x[i] = u * gate;
        slope[i] = gate + u * gate * (1 - gate) * a * (1 + 3 * b * u * u);
    }
}

void mlp_forward(const mlp *values, const mlp_cache *cache, size_t tokens, const real *x, real *y)
{
    size_t hidden = tokens * values->up.out;
    PK_REGION_SCOPE(mlp_region);
    memset(cache->active, 0, hidden * sizeof(real));
    linear_forward(&mlp_region, &values->up, tokens, x, cache->active);
    gelu(hidden, cache->active, cache->slope);
    linear_forward(&mlp_region, &values->down, tokens, cache->active, y);
}

void mlp_backward(const mlp *values, const mlp *gradients, const mlp_cache *cache, size_t tokens,
                  const real *x, const real *dy, real *dx, real *hidden)
{
    PK_REGION_SCOPE(mlp_back_region);
    linear_backward(&mlp_back_region, &values->down, &gradients->down, tokens, cache->active, dy,
                    hidden);
    for (size_t i = 0; i < tokens * values->up.out; i++)
        hidden[i] *= cache->slope[i];
    linear_backward(&mlp_back_region, &values->up, &gradients->up, tokens, x, hidden, dx);
}

/* ---- cross-entropy ---- */

static pk_region loss_region = PK_REGION_OF(PK_COMPUTE, "loss");

/* Softmax in place; returns the logarithm of the target's probability. */
static double predict(size_t classes, size_t target, real *logits)
{
    real most = logits[0], sum = 0;
    for (size_t i = 1; i < classes; i++)
        most = logits[i] > most ? logits[i] : most;
    real wanted = logits[target] - most;
    for (size_t i = 0; i < classes; i++) {
        logits[i] = exp(logits[i] - most);
        sum += logits[i];
    }
    for (size_t i = 0; i < classes; i++)
        logits[i] /= sum;
    return (double)(wanted - log(sum));
}

double loss_forward_backward(size_t tokens, size_t classes, const uint8_t *target, real *logits)
{
    double sum = 0;
    {
        PK_REGION_SCOPE(loss_region);
        for (size_t t = 0; t < tokens; t++) {
            real *row = logits + t * classes;
            sum -= predict(classes, target[t], row);
            row[target[t]] -= 1;
            for (size_t i = 0; i < classes; i++)
                row[i] /= (real)tokens;
        }
    }
    return sum / (double)tokens;
}
