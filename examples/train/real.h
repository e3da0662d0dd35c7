/* real.h - the number that the model computes with.
 *
 * float for training. The gradient check is built with TRAIN_DOUBLE, where a central difference is
 * exact enough to tell a wrong term of a derivative from rounding.
 */
#ifndef TRAIN_REAL_H
#define TRAIN_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef TRAIN_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#endif
