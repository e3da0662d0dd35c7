/* tools/html/page.h - the pages without their data (made by pack.py). */
#pragma once

#include <stddef.h>

extern const unsigned char html_before[], html_behind[];
extern const size_t html_before_bytes, html_behind_bytes;
extern const unsigned char job_html_before[], job_html_behind[];
extern const size_t job_html_before_bytes, job_html_behind_bytes;
