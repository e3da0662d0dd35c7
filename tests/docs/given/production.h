/* production.md's program has a loss. */
#include <pk/pk.h>

static double loss;
