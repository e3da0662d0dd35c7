/* tools/html/file.h - the file of a page: what can be one, and writing it. */
#pragma once

#include "complaint.h"

#include <stdio.h>

/* 0, or -errno. */
typedef int html_page(const void *of, FILE *file);

/* Before long work: can a page be made, and be there? "-" is the standard output. */
bool html_can_write(const char *path, complaint *why);

bool html_write_file(const char *path, html_page *write, const void *of, complaint *why);
