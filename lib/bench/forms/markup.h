/* lib/bench/forms/markup.h - text that may hold any bytes, where some of them would mean something
 * else. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* The next character of a text, as valid UTF-8: what is not becomes U+FFFD, control characters a
 * blank. The bytes it took; *length of those at *out. */
size_t pki_bench_character(const char *text, const char **out, size_t *length);

/* In XML, also within an attribute's quotation marks. */
void pki_bench_put_xml(FILE *file, const char *text);

/* In Markdown, also within a table's cell. */
void pki_bench_put_markdown(FILE *file, const char *text);
