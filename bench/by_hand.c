#include "by_hand.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "out/emit.h"

#include "harness.h"

enum { BUFFER = 1 << 20, EVENT = 256 };

static const char *const names[] = {"forward", "attention", "layer_norm", "mlp"};

/* Ticks are taken for nanoseconds: no clock is converted here. */
static char *put_event(char *p, const pki_record *r)
{
    const char *name = names[pki_what_id(r->what) % 4];
    p = PKI_PUT(p, "{\"name\":\"");
    p = pki_put(p, name, strlen(name));
    p = PKI_PUT(p, "\",\"ph\":\"X\",\"pid\":4242,\"tid\":12345,\"ts\":");
    p = pki_put_us(p, r->start);
    p = PKI_PUT(p, ",\"dur\":");
    p = pki_put_us(p, r->value);
    return PKI_PUT(p, "},\n");
}

static void write_all(int fd, const char *data, size_t n)
{
    if (write(fd, data, n) != (ssize_t)n)
        bench_fail("write");
}

uint64_t bench_write_bare(int fd, const pki_record *records, unsigned count, unsigned times)
{
    static char buffer[BUFFER];
    uint64_t bytes = 0;
    char *p = buffer;
    for (unsigned i = 0; i < count * times; i++) {
        if (buffer + BUFFER - p < EVENT) {
            write_all(fd, buffer, (size_t)(p - buffer));
            bytes += (uint64_t)(p - buffer);
            p = buffer;
        }
        p = put_event(p, &records[i % count]);
    }
    write_all(fd, buffer, (size_t)(p - buffer));
    return bytes + (uint64_t)(p - buffer);
}

uint64_t bench_write_fprintf(int fd, const pki_record *records, unsigned count, unsigned times)
{
    uint64_t bytes = 0;
    FILE *f = fdopen(dup(fd), "w");
    if (!f)
        bench_fail("fdopen");
    for (unsigned i = 0; i < count * times; i++) {
        const pki_record *r = &records[i % count];
        int n = fprintf(
            f, "{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f},\n",
            names[pki_what_id(r->what) % 4], 4242, 12345, (double)r->start / 1000,
            (double)r->value / 1000);
        bytes += (uint64_t)n;
    }
    if (fclose(f) != 0)
        bench_fail("fclose");
    return bytes;
}
