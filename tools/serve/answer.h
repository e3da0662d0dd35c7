/* tools/serve/answer.h - the page of pk serve --metrics: files, and folders of them, as one. */
#pragma once

#include <stddef.h>

/* The text, the caller's to free. What cannot be read is counted in it. */
char *serve_answer(const char *const *paths, size_t count, size_t *length);
