#include "complaint.h"

#include <stdarg.h>
#include <stdio.h>

bool complaint_set(complaint *c, const char *format, ...)
{
    va_list args;
    if (c->text[0])
        return false;
    va_start(args, format);
    vsnprintf(c->text, sizeof c->text, format, args);
    va_end(args);
    for (char *s = c->text; *s; s++)
        if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7F)
            *s = '?';
    return false;
}
