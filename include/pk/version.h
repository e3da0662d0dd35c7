/* pk/version.h - which perfkit this is.
 *
 *     #if PK_VERSION >= PK_VERSION_OF(0, 2, 0)
 *     ...
 *     #endif
 *     printf("%s\n", pk_version());            // the library that was linked, perhaps another one
 *
 * The build reads the numbers from this file; nothing else repeats them.
 */
#ifndef PK_VERSION_H
#define PK_VERSION_H

#define PK_VERSION_MAJOR 0
#define PK_VERSION_MINOR 1
#define PK_VERSION_PATCH 0

/* The number in libpk.so.1. A program works with any library of the number that it was linked
 * against, in the same version or a later one; tests/abi checks that this stays so. */
#define PK_ABI 1

#define PK_VERSION_OF(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define PK_VERSION PK_VERSION_OF(PK_VERSION_MAJOR, PK_VERSION_MINOR, PK_VERSION_PATCH)

#endif
