/* bench/by_hand.h - Chrome trace events written without perfkit, five fields each, for comparison.
 * Both return the bytes made of all records, so many times over. */
#ifndef BENCH_BY_HAND_H
#define BENCH_BY_HAND_H

#include <stdint.h>

#include "core/record.h"

uint64_t bench_write_bare(int fd, const pki_record *records, unsigned count, unsigned times);
uint64_t bench_write_fprintf(int fd, const pki_record *records, unsigned count, unsigned times);

#endif
