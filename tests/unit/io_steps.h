/* tests/unit/io_steps.h - what a trace says of I/O at ends of steps, and a program that copies
 * blocks. */
#ifndef TESTS_IO_STEPS_H
#define TESTS_IO_STEPS_H

#include "folder.h"

#include <fcntl.h>

#include <pk/pk.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "measure/costs/io.h"
#include "session/costs/io_steps.h"

#define BLOCK 65536u
#define MIB (1u << 20)
#define MOST 64

/* ---- what the trace says ---- */

typedef struct reading {
    uint64_t read, written, device_read, device_written, operations, steps;
} reading;

typedef struct readings {
    size_t count;
    reading all[MOST];
} readings;

static inline size_t values_of(const char *trace, const char *name, const char *unit,
                               uint64_t out[MOST])
{
    char sample[64], member[32];
    size_t n = 0;
    snprintf(sample, sizeof sample, "\"name\":\"%s\",\"pid\"", name);
    snprintf(member, sizeof member, "\"%s\":", unit);
    for (const char *at = trace; (at = strstr(at, sample)) && n < MOST; at++) {
        const char *value = strstr(at, member);
        assert_non_null(value);
        out[n++] = (uint64_t)strtod(value + strlen(member), NULL);
    }
    return n;
}

static inline readings readings_of(const char *trace)
{
    static const char *const names[6] = {"io.read",           "io.written",    "io.device_read",
                                         "io.device_written", "io.operations", "io.steps"};
    static const char *const units[6] = {"bytes", "bytes", "bytes", "bytes", "calls", "steps"};
    readings r = {0};
    for (size_t i = 0; i < 6; i++) {
        uint64_t values[MOST];
        size_t n = values_of(trace, names[i], units[i], values);
        if (i > 0)
            assert_int_equal(n, r.count); /* all of a reading, or none */
        r.count = n;
        for (size_t k = 0; k < n; k++)
            ((uint64_t *)&r.all[k])[i] = values[k];
    }
    return r;
}

/* Stops the session that has been started with this trace. */
static inline readings stop(void)
{
    size_t size;
    assert_int_equal(pk_stop(), PK_OK);
    char *trace = read_file("run.json", &size);
    readings r = readings_of(trace);
    free(trace);
    return r;
}

static inline void start(const char *costs)
{
    assert_int_equal(
        pk_start(pk_options(.costs = costs, .backends = "none", .trace_path = "run.json")), PK_OK);
}

static inline void expect_close(uint64_t got, uint64_t done)
{
    if (got > done + done / 100 || got < done - done / 100)
        fail_msg("%llu for %llu", (unsigned long long)got, (unsigned long long)done);
}

/* ---- what a program does ---- */

/* Longer than what is between two readings, however slow the machine is. */
static inline void last(void)
{
    uint64_t until = pki_monotonic_ns() + pki_io_steps_least() + 1000;
    while (pki_monotonic_ns() < until)
        ;
}

static inline bool can_be_read(void)
{
    char text[512];
    pki_io_counts c;
    FILE *file = fopen("/proc/self/io", "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = 0;
    bool can = pki_io_parse(text, &c);
    if (!can)
        print_message("/proc/self/io cannot be read here\n");
    return can;
}

/* So many bytes, in blocks, behind each other. */
static inline void put(int fd, uint64_t bytes)
{
    static char block[BLOCK] __attribute__((aligned(4096)));
    for (uint64_t at = 0; at < bytes; at += BLOCK)
        assert_int_equal(write(fd, block, BLOCK), BLOCK);
}

static inline void get(int fd, uint64_t bytes)
{
    static char block[BLOCK] __attribute__((aligned(4096)));
    for (uint64_t at = 0; at < bytes; at += BLOCK)
        assert_int_equal(pread(fd, block, BLOCK, (off_t)at), BLOCK);
}

/* Blocks that the file has already: what a file system writes down of new ones counts, too. */
static inline void have_blocks(int fd, uint64_t bytes)
{
    put(fd, bytes);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

/* So that all pages of the arena, which is a file beside the trace, have been touched. */
static inline void first_step(void)
{
    last();
    pk_step(1);
}

static inline int data(int more)
{
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | more, 0600);
    assert_true(fd >= 0 || more);
    return fd;
}

#endif
