/* lib/core/function.h - what PK_FUNCTION's regions are called. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pk/region.h>

/* Is it PK_FUNCTION's? Then its name is its function's, or in C++ its function's signature. */
static inline bool pki_is_function(const pk_region *region)
{
    return (region->spare[0] & PK_REGION_FUNCTION_) != 0;
}

/* "a::b::f" of "int a::b::f(char) const [with T = int]", as compilers write signatures; what is
 * none stays as it is. Writes at most size - 1 bytes and a NUL. */
void pki_function_name(const char *signature, char *out, size_t size);

/* Is it called by its name alone? A lambda is not: those of one function have the same name. */
bool pki_function_has_name(const char *name);

/* Where it is, as a number that is not 0: the same for the same file and line. */
uint64_t pki_function_place(const pk_region *region);

/* Appends " (file.c:12)" to the name, which is cut if there is no room. */
void pki_function_append_place(const pk_region *region, char *name, size_t size);
