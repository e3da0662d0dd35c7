/* lib/out/report/paragraph.c - what the sections of the text report consist of. */
#include <stdarg.h>
#include <stdlib.h>

#include "out/report/sections.h"

#define MARGIN 2
#define HANGING 4

/* This thread's report lacks a sentence for want of memory. */
static _Thread_local bool memory_failed;

void pki_report_begin(void)
{
    memory_failed = false;
}

bool pki_report_is_whole(void)
{
    return !memory_failed;
}

static void put_words(FILE *file, size_t margin, const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0) {
        memory_failed = true;
        return;
    }
    pki_put_paragraph(file, text, margin, margin);
    free(text);
}

void pki_report_heading(FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_words(file, 0, format, args);
    va_end(args);
}

void pki_report_title(FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputc('\n', file);
    vfprintf(file, format, args);
    fputc('\n', file);
    va_end(args);
}

void pki_report_say(FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pki_put_times(file, ' ', MARGIN);
    put_words(file, MARGIN, format, args);
    va_end(args);
}

void pki_report_item(FILE *file, char mark, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(file, "%*s%c ", MARGIN, "", mark);
    put_words(file, HANGING, format, args);
    va_end(args);
}
