/* costs.md says what a region does. */
#include <pk/pk.h>
