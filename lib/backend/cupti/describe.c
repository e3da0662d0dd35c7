#include "backend/cupti/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/driver.h"
#include "base/text.h"
#include "session/trace/tail.h"

#define DEVICES_MOST 16 /* of a process; those beyond are not described */
#define DEVICE_BYTES 1536

static size_t describe(unsigned ordinal, const pki_driver_device *d, char *out, size_t size)
{
    char name[6 * sizeof d->name + 1];
    pki_json_escape(name, sizeof name, d->name, strnlen(d->name, sizeof d->name));
    int n = snprintf(out, size,
                     "%s{\"id\":%u,\"name\":\"%s\",\"totalGlobalMem\":%" PRIu64
                     ",\"computeMajor\":%d,\"computeMinor\":%d,\"maxThreadsPerBlock\":%d,"
                     "\"maxThreadsPerMultiprocessor\":%d,\"regsPerBlock\":%d,\"warpSize\":%d,"
                     "\"sharedMemPerBlock\":%d,\"numSms\":%d,\"regsPerMultiprocessor\":%d,"
                     "\"sharedMemPerBlockOptin\":%d,\"sharedMemPerMultiprocessor\":%d}",
                     ordinal ? "," : "", ordinal, name, d->memory_bytes, d->major, d->minor,
                     d->block_threads, d->processor_threads, d->block_registers, d->warp,
                     d->block_shared, d->processors, d->processor_registers, d->block_shared_most,
                     d->processor_shared);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

void pki_cupti_describe_devices(void)
{
    static char text[DEVICES_MOST * DEVICE_BYTES];
    size_t at = 0;
    text[at++] = '[';
    for (unsigned i = 0; i < DEVICES_MOST && i < pki_driver_devices(); i++) {
        pki_driver_device device;
        if (pki_driver_device_get(i, &device))
            at += describe(i, &device, text + at, sizeof text - at - 2);
    }
    text[at++] = ']';
    text[at] = 0;
    pki_tail_set("deviceProperties", text);
}

void pki_cupti_describe_counts(const pki_cupti_counts *c, uint64_t dropped, uint64_t refused)
{
    char text[640];
    snprintf(text, sizeof text,
             "{\"version\":%" PRIu32 ",\"records\":%" PRIu64 ",\"dropped_by_cupti\":%" PRIu64
             ",\"buffers_refused\":%" PRIu64 ",\"unknown\":%" PRIu64 ",\"bad_time\":%" PRIu64
             ",\"other_clock\":%" PRIu64 ",\"broken_buffers\":%" PRIu64 ",\"outside\":%" PRIu64
             ",\"covered\":%" PRIu64 ",\"unlinked\":%" PRIu64 ",\"lost\":%" PRIu64 "}",
             pki_cupti_version(), c->records, dropped, refused, c->unknown, c->bad_time,
             c->other_clock, c->broken, c->outside, c->covered, c->unlinked, c->lost);
    pki_tail_set("cupti", text);
}
