/* lib/out/window/write.h - a window as a line of JSON, in pieces: it may have thousands of regions,
 * and who writes it has rings to empty meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "measure/window/window.h"
#include "out/json_write.h"

typedef struct pki_window_line {
    pki_window *window;
    FILE *memory;
    char *text; /* once it is done, ending in a newline */
    size_t bytes;
    pki_json json;
    size_t member, row; /* next */
    bool failed;
    pk_stats stats; /* scratch */
} pki_window_line;

/* A completed window (measure/window/window.h), which has to stay until the line is done. False
 * without memory. */
bool pki_window_line_begin(pki_window_line *line, pki_window *window);

/* The next piece, of some microseconds. True once there is no more. */
bool pki_window_line_advance(pki_window_line *line);

/* The text is there. False without memory. */
bool pki_window_line_end(pki_window_line *line);

void pki_window_line_finish(pki_window_line *line);
