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

/* Texts of a column beside each other, so that a cut one keeps what tells it from them. */
typedef struct pki_column {
    const char *(*text)(const void *row);
    const char *rows;
    size_t count, stride;
} pki_column;

/* The rows around the one at `at`: those that a reader compares it with, so many at most that a
 * table takes no longer for being long. */
pki_column pki_column_near(const void *rows, size_t count, size_t stride, size_t at,
                           const char *(*text)(const void *row));

/* Left-aligned; too long: what it shares with other rows becomes "...", and what differs stays. A
 * text that is as different without it is cut in the middle. */
void pki_put_apart(FILE *file, const char *text, size_t width, const pki_column *column);

/* Two blanks, then right-aligned: a cell behind another one. */
void pki_put_cell(FILE *file, const char *text, size_t width);

/* Words, filled to the page's width from column `at` on; further lines are indented by `indent`. A
 * word that is longer than a line is broken. Ends with a newline. */
void pki_put_paragraph(FILE *file, const char *text, size_t at, size_t indent);

/* The same character so many times. */
void pki_put_times(FILE *file, char c, size_t times);
