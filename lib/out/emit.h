/* lib/out/emit.h - numbers into a buffer, fast and independent of the locale. Each function writes
 * at p, where there must be room, and returns the end. */
#pragma once

#include <stdint.h>
#include <string.h>

extern const char pki_digit_pairs[201]; /* "000102...99" */

static inline char *pki_put(char *p, const char *text, size_t n)
{
    memcpy(p, text, n);
    return p + n;
}

static inline char *pki_put_string(char *p, const char *text)
{
    return pki_put(p, text, strlen(text));
}

#define PKI_PUT(p, literal) pki_put((p), "" literal, sizeof(literal) - 1)

static inline char *pki_put_pair(char *p, uint32_t pair)
{
    return pki_put(p, pki_digit_pairs + 2 * pair, 2);
}

/* Exactly three digits. */
static inline char *pki_put_three(char *p, uint32_t n)
{
    *p = (char)('0' + n / 100);
    return pki_put_pair(p + 1, n % 100);
}

static inline char *pki_put_u64(char *p, uint64_t n)
{
    char digits[20];
    char *at = digits + sizeof digits;
    while (n >= 100) {
        at -= 2;
        pki_put_pair(at, (uint32_t)(n % 100));
        n /= 100;
    }
    if (n >= 10) {
        at -= 2;
        pki_put_pair(at, (uint32_t)n);
    } else {
        *--at = (char)('0' + n);
    }
    size_t length = (size_t)(digits + sizeof digits - at);
    return pki_put(p, at, length);
}

static inline char *pki_put_i64(char *p, int64_t n)
{
    if (n < 0)
        *p++ = '-';
    return pki_put_u64(p, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

/* Nanoseconds as microseconds with exactly three decimals: "12.345". */
static inline char *pki_put_us(char *p, uint64_t ns)
{
    p = pki_put_u64(p, ns / 1000);
    *p++ = '.';
    return pki_put_three(p, (uint32_t)(ns % 1000));
}

/* A finite double in the fewest of 15, 16 or 17 digits that read back the same, and in at most 19
 * decimals: more than those are misread (emit.c). At most 25 bytes. */
char *pki_put_double(char *p, double value);

/* Perfetto shows integers beyond 63 bits as -1. */
static inline char *pki_put_count(char *p, uint64_t value)
{
    return value > INT64_MAX ? pki_put_double(p, (double)value) : pki_put_u64(p, value);
}

/* One more member of an object. */
static inline char *pki_put_field(char *p, const char *key, uint64_t value)
{
    p = pki_put_string(PKI_PUT(p, ",\""), key);
    return pki_put_count(PKI_PUT(p, "\":"), value);
}
