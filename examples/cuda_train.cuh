// cuda_train.cuh - the kernels of cuda_train.cu: plain ones, in the order in which a step needs
// them.
#ifndef CUDA_TRAIN_CUH
#define CUDA_TRAIN_CUH

#include <cstddef>
#include <cstdint>

constexpr int WIDTH = 512, HIDDEN = 2048, LAYERS = 4, CLASSES = 64;
constexpr int TILE = 64, DEPTH = 16, SIDE = 16, EACH = TILE / SIDE;

// A matrix in memory, by its strides: a transposed one has them exchanged.
struct matrix {
    const float *data;
    int row, column;
    __device__ float at(int i, int j) const { return data[(size_t)i * row + (size_t)j * column]; }
};

static matrix rows(const float *data, int columns)
{
    return {data, columns, 1};
}
static matrix transposed(const float *data, int columns)
{
    return {data, 1, columns};
}

// to = a b + add (or without), where a is m x k and b is k x n.
__global__ void matmul(float *to, matrix a, matrix b, const float *add, int m, int n, int k)
{
    __shared__ float left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    const int i0 = blockIdx.y * TILE, j0 = blockIdx.x * TILE, me = threadIdx.y * SIDE + threadIdx.x;
    float sums[EACH][EACH] = {};
    for (int k0 = 0; k0 < k; k0 += DEPTH) {
        for (int t = me; t < TILE * DEPTH; t += SIDE * SIDE) {
            int i = a.column == 1 ? t / DEPTH : t % TILE, p = a.column == 1 ? t % DEPTH : t / TILE;
            int j = b.column == 1 ? t % TILE : t / DEPTH, q = b.column == 1 ? t / TILE : t % DEPTH;
            left[p][i] = i0 + i < m && k0 + p < k ? a.at(i0 + i, k0 + p) : 0;
            right[q][j] = j0 + j < n && k0 + q < k ? b.at(k0 + q, j0 + j) : 0;
        }
        __syncthreads();
        for (int p = 0; p < DEPTH; p++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    sums[i][j] +=
                        left[p][threadIdx.y * EACH + i] * right[p][threadIdx.x * EACH + j];
        __syncthreads();
    }
    for (int i = i0 + threadIdx.y * EACH, di = 0; di < EACH; i++, di++)
        for (int j = j0 + threadIdx.x * EACH, dj = 0; dj < EACH; j++, dj++)
            if (i < m && j < n)
                to[(size_t)i * n + j] = sums[di][dj] + (add ? add[(size_t)i * n + j] : 0);
}

__device__ float gelu_inner(float x)
{
    return 0.7978845608f * (x + 0.044715f * x * x * x);
}

__global__ void gelu(float *h, const float *z, const float *bias, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = z[i] + bias[i % HIDDEN];
        h[i] = 0.5f * x * (1 + tanhf(gelu_inner(x)));
    }
}

// dz = dh gelu'(z + bias), in place of dh.
__global__ void gelu_backward(float *dh, const float *z, const float *bias, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = z[i] + bias[i % HIDDEN], t = tanhf(gelu_inner(x));
        float inner = 0.7978845608f * (1 + 3 * 0.044715f * x * x);
        dh[i] *= 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
    }
}

__global__ void column_sums(float *to, const float *from, int rows, int columns)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int i = 0; j < columns && i < rows; i++)
        sum += from[(size_t)i * columns + j];
    if (j < columns)
        to[j] = sum;
}

// One thread per sample: its loss, and the gradient in place of its scores.
__global__ void softmax_loss(float *scores, float *losses, const int *labels, int samples)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= samples)
        return;
    float *mine = scores + (size_t)i * CLASSES, most = mine[0], sum = 0;
    for (int c = 1; c < CLASSES; c++)
        most = fmaxf(most, mine[c]);
    for (int c = 0; c < CLASSES; c++)
        sum += expf(mine[c] - most);
    losses[i] = logf(sum) + most - mine[labels[i]];
    for (int c = 0; c < CLASSES; c++)
        mine[c] = (expf(mine[c] - most) / sum - (c == labels[i])) / samples;
}

// One thread in all: it counts the steps, too.
__global__ void finish_loss(float *loss, int *step, const float *losses, int samples)
{
    float sum = 0;
    for (int i = 0; i < samples; i++)
        sum += losses[i];
    *loss = sum / samples;
    ++*step;
}

__global__ void adamw(float *w, float *m, float *v, const float *g, const int *step, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float t = (float)*step, b1 = 0.9f, b2 = 0.999f;
    m[i] = b1 * m[i] + (1 - b1) * g[i];
    v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
    float mean = m[i] / (1 - powf(b1, t)), variance = v[i] / (1 - powf(b2, t));
    w[i] -= 1e-3f * (mean / (sqrtf(variance) + 1e-8f) + 0.01f * w[i]);
}

__global__ void fill(float *w, size_t n, float scale, uint32_t seed)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t x = (uint32_t)i * 2654435761u ^ seed;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    if (i < n)
        w[i] = scale * ((float)(x >> 8) / 8388608.0f - 1);
}

#endif
