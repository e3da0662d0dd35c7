#include "out/emit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char pki_digit_pairs[201] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

/* A locale may spell the decimal point in several bytes; everything that is not part of a number in
 * C is it. */
static size_t with_point(char *out, const char *in)
{
    size_t n = 0;
    for (; *in; in++) {
        if (strchr("+-0123456789e", *in))
            out[n++] = *in;
        else if (n == 0 || out[n - 1] != '.')
            out[n++] = '.';
    }
    return n;
}

/* Perfetto adds up a number's decimals in 64 bits and overflows at 20 of them, which 17 digits have
 * without an exponent from here down to where %g writes one anyway. */
#define TOO_MANY_DECIMALS 1e-3

char *pki_put_double(char *p, double value)
{
    char text[48];
    int digits = 15;
    snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtod(text, NULL) != value && digits < 17)
        snprintf(text, sizeof text, "%.*g", ++digits, value);
    if (digits == 17 && fabs(value) < TOO_MANY_DECIMALS)
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
    return p + with_point(p, text);
}
