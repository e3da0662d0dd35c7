/* lib/measure/figure.h - numbers as people read them: three digits and a unit that suits.
 *
 *     printf("%s per call", pki_figure_time(41234567).text);         "41.2 ms per call"
 *
 * The same in every locale: no digit here comes from printf's %f. A figure that is not finite is
 * "-".
 */
#pragma once

#include <stdint.h>

typedef struct pki_figure {
    char text[40];
} pki_figure;

/* "950 ns", "41.2 ms", "12.3 s", "2 min 14 s", "3 h 05 min", "2 d 04 h" */
pki_figure pki_figure_time(double ns);

/* The same without blanks, at most seven columns: "41.2ms", "2m14s", "3h05m", "2d04h" */
pki_figure pki_figure_time_tight(double ns);

/* "12345", "1.23M": whole numbers; scaled from 100,000 on */
pki_figure pki_figure_count(uint64_t count);

/* "1.23 GB/s" for unit "B/s"; "0.250", "3.00e-4" for "": any number */
pki_figure pki_figure_scaled(double value, const char *unit);

/* 0.612: "61.2 %"; "2.3 %", "0.34 %", "<0.01 %" */
pki_figure pki_figure_percent(double share);

/* 2.26: "2.26 x" */
pki_figure pki_figure_ratio(double ratio);
