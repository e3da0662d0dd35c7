/* tools/read/scan.h - times of a trace event, exactly.
 *
 * Traces give times in microseconds with three decimals. No double is in between here: digits
 * become integer nanoseconds.
 */
#ifndef TOOLS_SCAN_H
#define TOOLS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCAN_MOST (INT64_MAX / 4) /* 73 years: times beyond are not believed */

/* The nanoseconds of a number of microseconds: "12.345", "7", "1.5e3". False if it is not one,
 * negative, or beyond SCAN_MOST. More decimals than three are rounded. */
bool scan_us(const char *text, size_t length, uint64_t *ns);

/* The same of the member `key` of the object on this line (valid JSON), not of objects inside it.
 * False also if there is no such member. */
bool scan_member_us(const char *text, size_t length, const char *key, uint64_t *ns);

#endif
