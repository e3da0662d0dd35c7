#include "bench/fail.h"

#include <stdarg.h>
#include <stdio.h>

pk_status pki_bench_fail(pk_status status, const char *format, ...)
{
    char sentence[320];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return pk_fail_(status, sentence);
}
