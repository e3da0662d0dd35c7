#include "out/emit.h"

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

char *pki_put_double(char *p, double value)
{
    char text[48];
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    return p + with_point(p, text);
}
