/* lib/out/report/paragraph.c - what the sections of the text report consist of. */
#include <math.h>
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

static void put_formatted(FILE *file, size_t margin, const char *format, va_list args)
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
    put_formatted(file, 0, format, args);
    va_end(args);
}

void pki_report_title(FILE *file, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    fputc('\n', file);
    if (vasprintf(&text, format, args) >= 0)
        pki_put_text(file, text);
    else
        memory_failed = true;
    free(text);
    fputc('\n', file);
    va_end(args);
}

void pki_report_print(FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pki_put_times(file, ' ', MARGIN);
    put_formatted(file, MARGIN, format, args);
    va_end(args);
}

void pki_report_item(FILE *file, char mark, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(file, "%*s%c ", MARGIN, "", mark);
    put_formatted(file, HANGING, format, args);
    va_end(args);
}

/* ---- cells ---- */

void pki_report_cell(FILE *file, const char *text, size_t width)
{
    fputc(' ', file);
    pki_put_right(file, text, width);
}

void pki_report_percent(FILE *file, double share)
{
    char text[32];
    double percent = isfinite(share) ? PKI_MIN(PKI_MAX(100 * share, 0), 999) : 0;
    long tenths = lround(10 * percent);
    snprintf(text, sizeof text, "%ld.%ld", tenths / 10, tenths % 10);
    pki_report_cell(file, text, 5);
}
