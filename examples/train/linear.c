#include "linear.h"

#include "matmul.h"

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
