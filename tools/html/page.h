/* tools/html/page.h - the page without its data (made by pack.py). */
#pragma once

#include <stddef.h>

extern const unsigned char html_before[], html_behind[];
extern const size_t html_before_bytes, html_behind_bytes;
