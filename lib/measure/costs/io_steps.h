/* lib/measure/costs/io_steps.h - what the process read and wrote in each step,
 * reading by reading.
 *
 * A reading has what was done since the one before, and how many steps ended
 * meanwhile: each of them has their mean. No clock, no file.
 */
#pragma once

#include "measure/costs/rows.h"
#include "stats/tally.h"

enum {
    PKI_IO_READ,
    PKI_IO_WRITTEN,
    PKI_IO_DEVICE_READ,
    PKI_IO_DEVICE_WRITTEN,
    PKI_IO_OPERATIONS,
    PKI_IO_FIGURES
};

typedef struct pki_io_reading {
    uint64_t last, steps; /* the last of its steps, and how many; 0: it is of none */
    double values[PKI_IO_FIGURES];
} pki_io_reading;

typedef struct pki_io_most {
    double value;
    uint64_t step, steps; /* the last of its reading, and how many that has */
} pki_io_most;

/* All zero is an empty one. */
typedef struct pki_io_course {
    uint64_t readings, steps, alone, device;
    pki_tally each[PKI_IO_FIGURES]; /* by steps */
    pki_io_most most[PKI_IO_FIGURES];
} pki_io_course;

void pki_io_course_finish(pki_io_course *course);
void pki_io_course_add(pki_io_course *course, const pki_io_reading *reading);
pki_io_steps pki_io_course_summary(const pki_io_course *course);
