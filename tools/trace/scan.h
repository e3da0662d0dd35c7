/* tools/trace/scan.h - times of a trace event, exactly.
 *
 * Traces give times in microseconds with three decimals. No double is in between here: digits
 * become integer nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCAN_MOST (INT64_MAX / 4) /* 73 years: times beyond are not believed */

/* The nanoseconds of a number of microseconds: "12.345", "7", "1.5e3". False if it is not one,
 * negative, or beyond SCAN_MOST. More decimals than three are rounded. */
bool scan_us(const char *text, size_t length, uint64_t *ns);

/* The picoseconds of such a number, if it has six decimals; else 0. */
uint32_t scan_ps(const char *text, size_t length);

/* What perfkit has taken off a duration, ns, so that viewers see a slice within the one around it
 * (docs/internals/trace-format.md): from the picoseconds of its start and of its duration. */
uint64_t scan_lack(uint32_t start_ps, uint32_t duration_ps);

/* The same of the member `key` of the object on this line (valid JSON), not of objects inside it.
 * False also if there is no such member. */
bool scan_member_us(const char *text, size_t length, const char *key, uint64_t *ns, uint32_t *ps);
