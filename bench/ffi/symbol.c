/* C as a language that cannot inline it: the two symbols of libpk.so, without the header that has
 * them inline. */
#include "module.h"

struct pk_region;
struct pk_region *pk_region_named(const char *name);
void pk_region_begin(struct pk_region *region);
void pk_region_end(struct pk_region *region);

void ffi_pairs(uint64_t n)
{
    struct pk_region *region = pk_region_named("C, symbols");
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(region);
        pk_region_end(region);
    }
}
