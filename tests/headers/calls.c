/* The C part: all of calls.h. */
#include "calls.h"
