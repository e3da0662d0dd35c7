/* tuning.h - pk_options.tuning with what a test knows only as it runs. */
#ifndef TESTS_TUNING_H
#define TESTS_TUNING_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Until the thread's next call, and so for one pk_start. */
__attribute__((format(printf, 1, 2))) static inline const char *kit_tuning(const char *format, ...)
{
    static __thread char text[8192];
    va_list values;
    va_start(values, format);
    int n = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (n < 0 || (size_t)n >= sizeof text)
        abort();
    return text;
}

#endif
