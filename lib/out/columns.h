/* lib/out/columns.h - text laid out in columns of a terminal: cells of a table, paragraphs.
 *
 * Everything that is put here is made safe for a terminal first: control characters become '?',
 * bytes that are not UTF-8 become U+FFFD. Widths are columns, not bytes: combining marks take none,
 * East Asian wide characters and emoji two.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#define PKI_PAGE_WIDTH 80

/* A text's width once made safe. */
size_t pki_width(const char *text);

/* All of it, on one line. */
void pki_put_text(FILE *file, const char *text);

/* Left- or right-aligned; too long: the middle becomes "...". */
void pki_put_left(FILE *file, const char *text, size_t width);
void pki_put_right(FILE *file, const char *text, size_t width);

/* Two blanks, then right-aligned: a cell behind another one. */
void pki_put_cell(FILE *file, const char *text, size_t width);

/* Words, filled to the page's width from column `at` on; further lines are indented by `indent`. A
 * word that is longer than a line is broken. Ends with a newline. */
void pki_put_paragraph(FILE *file, const char *text, size_t at, size_t indent);

/* The same character so many times. */
void pki_put_times(FILE *file, char c, size_t times);
