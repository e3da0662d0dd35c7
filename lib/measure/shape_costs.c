/* lib/measure/shape_costs.c - what the run cost beside time, in the report file. */
#include "measure/shape_words.h"

static const pki_member io_members[] = {
    PLAINS(pki_io_summary, asked, why_not, observed, read_chars, write_chars, read_calls,
           write_calls, read_device, write_device, best_read, best_write, exposed, hidden,
           blocked_known, blocked),
    PLAINS(pki_io_summary, saves, save_time, save_bytes),
};
const pki_shape pki_io_shape = {SHAPE(pki_io_summary, io_members)};
