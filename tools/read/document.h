/* tools/read/document.h - JSON as one document in memory: from a text, or from a file piece by
 * piece. */
#pragma once

#include "read/lines.h"

#include <jansson.h>

/* NULL if it is not JSON, and why; also without memory or beyond a bound, and then *too_large is
 * set. */
json_t *document_from_text(const char *text, size_t length, bool *too_large, complaint *why);

/* The same of what is left of a file, with this text (NULL: none) before it: in the memory of the
 * document, not of its text. */
json_t *document_from_lines(const char *before, size_t length, lines *in, bool *too_large,
                            complaint *why);

/* Is the line one whole object? *too_large as above. */
bool document_is_object(line l, bool *too_large);
