/* tests/unit/costs_fixture.c - what the runs of the fixtures cost beside time. */
#include "report_fixture.h"

#include <stdlib.h>
#include <string.h>

static char *text(const char *hostile, const char *usual)
{
    return strdup(hostile ? hostile : usual);
}

static pki_dist in_steps(double mean, double p50, double p99, double max)
{
    return (pki_dist){100, 100 * mean, 0, max, mean, max / 10, p50, p50, p50, p99};
}

static pki_io_steps io_steps(void)
{
    return (pki_io_steps){.steps = 100,
                          .readings = 90,
                          .alone = 84,
                          .device = 12,
                          .read = {in_steps(6e6, 6e6, 6.2e6, 6.3e6), 17, 1},
                          .written = {in_steps(2e5, 0, 1e7, 1.1e7), 49, 1},
                          .device_read = {in_steps(5e6, 5e6, 6e6, 6e6), 17, 1},
                          .device_written = {in_steps(1.6e5, 0, 8e6, 9e6), 99, 3},
                          .operations = {in_steps(48.9, 48, 60, 61), 49, 1}};
}

static pki_io_summary io(const char *hostile)
{
    return (pki_io_summary){.asked = 1,
                            .why_not = text(hostile, ""),
                            .observed = 1900000000,
                            .read_chars = 600 << 20,
                            .write_chars = 20 << 20,
                            .read_calls = 4800,
                            .write_calls = 90,
                            .read_device = 512 << 20,
                            .write_device = 16 << 20,
                            .best_read = 4.2e8,
                            .best_write = 9e7,
                            .exposed = 30000000,
                            .hidden = 400000000,
                            .saves = 2,
                            .save_time = 250000000,
                            .save_bytes = 16 << 20,
                            .steps = io_steps()};
}

static void fill_energy(pki_energy_summary *e, const char *hostile)
{
    const pki_energy_row rows[] = {{.joules = 380,
                                    .watts = 200,
                                    .per_step = 3.8,
                                    .per_item = 0.11875,
                                    .error = 5,
                                    .time = 1900000000,
                                    .steps = 100,
                                    .items = 3200,
                                    .period = 100000000},
                                   {.refused = true,
                                    .time = 300000000,
                                    .steps = 2,
                                    .items = 64,
                                    .period = 100000000,
                                    .resets = 1}};
    *e = (pki_energy_summary){.asked = 1,
                              .why_not = text(hostile, ""),
                              .held_by = text(hostile, ""),
                              .free_steps = 98,
                              .free_time = 1640000000,
                              .row_count = 2,
                              .rows = calloc(2, sizeof *e->rows)};
    memcpy(e->rows, rows, sizeof rows);
    e->rows[0].counter = text(hostile, "package-0");
    e->rows[0].step_kind = text(hostile, "(run)");
    e->rows[1].counter = text(hostile, "package-0");
    e->rows[1].step_kind = text(hostile, "evaluation");
}

static pki_goodput_summary goodput(void)
{
    return (pki_goodput_summary){.up = 2300000000,
                                 .parts = {[PKI_PART_PRODUCTIVE] = 1400000000,
                                           [PKI_PART_RECOMPUTED] = 100000000,
                                           [PKI_PART_DATA] = 150000000,
                                           [PKI_PART_STARTUP] = 400000000,
                                           [PKI_PART_CHECKPOINT] = 240000000,
                                           [PKI_PART_OTHER] = 10000000},
                                 .steps = 98,
                                 .recomputed = 7};
}

void fixture_costs(pki_summary *s, const char *hostile)
{
    s->io = io(hostile);
    fill_energy(&s->energy, hostile);
    s->goodput = goodput();
}
