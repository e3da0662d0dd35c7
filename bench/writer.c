/* bench/writer.c - how fast one core writes a trace */
#include <pk/pk.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/record.h"
#include "harness.h"
#include "out/chrome/chrome.h"
#include "out/emit.h"
#include "out/file.h"

/* ---- Chrome trace events written without perfkit, five fields each, for comparison ---- */

/* Both return the bytes made of all records, so many times over. */

enum { BUFFER = 1 << 20, EVENT = 256 };

static const char *const by_hand_names[] = {"forward", "attention", "layer_norm", "mlp"};

/* Ticks are taken for nanoseconds: no clock is converted here. */
static char *put_event(char *p, const pki_record *r)
{
    const char *name = by_hand_names[pki_what_id(r->what) % 4];
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

static uint64_t bench_write_bare(int fd, const pki_record *records, unsigned count, unsigned times)
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

static uint64_t bench_write_fprintf(int fd, const pki_record *records, unsigned count,
                                    unsigned times)
{
    uint64_t bytes = 0;
    FILE *f = fdopen(dup(fd), "w");
    if (!f)
        bench_fail("fdopen");
    for (unsigned i = 0; i < count * times; i++) {
        const pki_record *r = &records[i % count];
        int n = fprintf(
            f, "{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f},\n",
            by_hand_names[pki_what_id(r->what) % 4], 4242, 12345, (double)r->start / 1000,
            (double)r->value / 1000);
        bytes += (uint64_t)n;
    }
    if (fclose(f) != 0)
        bench_fail("fclose");
    return bytes;
}

/* ---- How fast one core writes a trace ---- */

/* Perfkit's formatter and file, beside the two ways in which one would write the same events by
 * hand. Million events per second of CPU time, the kernel's included. */

enum { RING = 1 << 20, IN_RING = 1000000 };
enum {
    RECORDS = 65536,
    ROUNDS_OF_RING = 16,
    REPETITIONS = 9,
    WRITER_BUFFER = 1 << 20,
    TID = 12345
};

static pki_record writer_records[RECORDS];
static pki_clock_map map;
static char writer_buffer[WRITER_BUFFER];

static void fill(void)
{
    pki_clock_sample a = pki_clock_read(0), b = a;
    b.ticks += 2300000; /* 2.3 GHz, whatever this machine's is: the digits count */
    b.ns += 1000000;
    pki_clock_map_init(&map, 0, a, b);
    uint64_t at = a.ticks + 2300000000u;
    for (uint64_t i = 0; i < RECORDS; i++) {
        uint64_t ticks = 500 + i * 7919 % 20000;
        writer_records[i] =
            (pki_record){at, ticks, PKI_WHAT(1 + i % 64, PKI_RECORD_REGION, 1), ticks};
        at += ticks + 300;
    }
}

static pki_chrome_name name_of(void *user, uint32_t id)
{
    static const char *const names[] = {"forward", "attention", "layer_norm", "mlp"};
    const char *name = names[id % 4];
    (void)user;
    return (pki_chrome_name){name, "", (uint16_t)strlen(name), 0, PK_OTHER, 0};
}

/* Each way takes every record once and returns how many bytes it has made. */
typedef uint64_t way(int fd);

static uint64_t with_perfkit(int fd)
{
    pki_chrome chrome;
    pki_trace_file file = PKI_TRACE_FILE_NONE;
    size_t used = 0;
    if (!pki_own_adopt(&file.own, fd))
        bench_fail("file");
    pki_chrome_init(&chrome, &map, 4242, name_of, NULL);
    for (unsigned i = 0; i < RECORDS * ROUNDS_OF_RING; i++) {
        const pki_record *r = &writer_records[i % RECORDS];
        if (WRITER_BUFFER - used < PKI_EVENT_BYTES) {
            if (!pki_trace_file_append(&file, writer_buffer, used, PKI_CHROME_TAIL,
                                       sizeof PKI_CHROME_TAIL - 1))
                bench_fail("write");
            used = 0;
        }
        used += pki_chrome_event(&chrome, writer_buffer + used, TID, r, r);
    }
    if (!pki_trace_file_append(&file, writer_buffer, used, PKI_CHROME_TAIL,
                               sizeof PKI_CHROME_TAIL - 1))
        bench_fail("write");
    pki_chrome_finish(&chrome);
    return file.end;
}

static uint64_t bare(int fd)
{
    return bench_write_bare(fd, writer_records, RECORDS, ROUNDS_OF_RING);
}

static uint64_t with_fprintf(int fd)
{
    return bench_write_fprintf(fd, writer_records, RECORDS, 1);
}

static double million_per_second(way *write, unsigned events, const char *path, uint64_t *bytes)
{
    double rates[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
            bench_fail(path);
        uint64_t start = bench_thread_ns();
        *bytes = write(fd);
        rates[i] = (double)events * 1e3 / (double)(bench_thread_ns() - start);
        close(fd);
    }
    bench_scratch_empty();
    return bench_quantile(rates, REPETITIONS, 0.5);
}

static void line(const char *name, way *write, unsigned events)
{
    uint64_t bytes;
    double null = million_per_second(write, events, "/dev/null", &bytes);
    double memory = million_per_second(write, events, bench_scratch("writer.json"), &bytes);
    printf("  %-36s %10.1f %10.1f %10.1f\n", name, null, memory, (double)bytes / events);
}

static pk_counts counts_now(void)
{
    pk_counts counts = {.size = sizeof counts};
    if (pk_get_counts(&counts) != PK_OK)
        bench_fail(pk_error_message());
    return counts;
}

static void fill_ring(pk_region *region)
{
    for (int n = 0; n < IN_RING; n++) {
        pk_region_begin(region);
        pk_region_end(region);
    }
}

static void start(const pk_options *options)
{
    if (pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
}

/* The whole way: a full ring, folded, formatted and written by pk_flush on this thread. What the
 * collector has taken before is not counted. */
static void empty_full_rings(void)
{
    static pk_region one = PK_REGION("attention");
    double rates[REPETITIONS];
    start(pk_options(.trace_path = bench_scratch("writer.json"),
                     .tuning = bench_tuning("ring_records=%u", RING)));
    for (int i = 0; i < REPETITIONS; i++) {
        fill_ring(&one);
        uint64_t before = counts_now().written, began = bench_thread_ns();
        pk_flush();
        uint64_t took = bench_thread_ns() - began;
        rates[i] = (double)(counts_now().written - before) * 1e3 / (double)took;
    }
    pk_stop();
    printf("  %-36s %10s %10.1f\n", "a full ring, by pk_flush", "",
           bench_quantile(rates, REPETITIONS, 0.5));
}

/* The same without a trace: into the distributions, by whoever asks for one. */
static void fold_full_rings(void)
{
    static pk_region one = PK_REGION("attention");
    static pk_stats stats;
    double times[REPETITIONS];
    start(pk_options(.tuning = bench_tuning("ring_records=%u", RING)));
    for (int i = 0; i < REPETITIONS; i++) {
        fill_ring(&one);
        uint64_t before = counts_now().recorded, began = bench_thread_ns();
        pk_region_stats(&one, &stats);
        uint64_t took = bench_thread_ns() - began;
        times[i] = (double)took / (double)(counts_now().recorded - before);
    }
    pk_stop();
    printf("\n%-38s %10.1f ns\n", "from the ring into a distribution",
           bench_quantile(times, REPETITIONS, 0.5));
}

int main(void)
{
    bench_pin(0);
    fill();
    printf("%-38s %10s %10s %10s\n", "million events per second", "/dev/null", "tmpfs",
           "bytes each");
    line("perfkit's formatter and file", with_perfkit, RECORDS * ROUNDS_OF_RING);
    line("five fields, digits from a table", bare, RECORDS * ROUNDS_OF_RING);
    line("five fields, fprintf", with_fprintf, RECORDS);
    empty_full_rings();
    fold_full_rings();
    return 0;
}
