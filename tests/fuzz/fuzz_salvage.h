/* fuzz_salvage.h - the form of a patch: area, offset (two bytes, low first), kind, and for kinds
 * below 128 up to 16 bytes; for others one of FUZZ_VALUES, (kind - 128) / 2, as 4 or (odd) 8 bytes.
 * An input that starts with FUZZ_CUT and two bytes first cuts the file; one that starts with
 * FUZZ_SAME first makes all blocks that an arena can have the first one.
 */
#ifndef TESTS_FUZZ_FUZZ_SALVAGE_H
#define TESTS_FUZZ_FUZZ_SALVAGE_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_VALUES 16
#define FUZZ_CUT 0xC0
#define FUZZ_SAME 0xC1

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
