#include "bench/progress.h"

#include "base/clock.h"
#include "base/stderr.h"
#include "bench/forms/document.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EVERY 100000000u /* ns */
#define CLEAR "\r\033[K"

pki_bench_line pki_bench_line_make(bool wanted, uint32_t repetitions)
{
    return (pki_bench_line){.on = wanted && isatty(STDERR_FILENO), .repetitions = repetitions};
}

/* Control characters in a name must not reach the terminal. */
static void put_name(char *text, size_t size, const char *name)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++)
        text[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i];
    text[i] = 0;
}

void pki_bench_line_text(const pki_bench_line *line, const pki_bench_case *c, size_t done,
                         size_t count, char *text, size_t size)
{
    char name[48], round[32] = "";
    put_name(name, sizeof name, c->name);
    if (line->repetitions > 1)
        snprintf(round, sizeof round, " repetition %u/%u", line->repetition + 1, line->repetitions);
    if (c->count)
        snprintf(text, size, "[%zu/%zu]%s %s  %zu samples, last %s", done, count, round, name,
                 c->count, pki_bench_time(c->time[c->count - 1]).text);
    else
        snprintf(text, size, "[%zu/%zu]%s %s  warming up", done, count, round, name);
}

void pki_bench_line_show(void *user, const pki_bench_case *c, size_t done, size_t count)
{
    pki_bench_line *line = user;
    char text[160] = CLEAR;
    uint64_t now = pki_monotonic_ns();
    if (!line->on || (c && now - line->last < EVERY))
        return;
    line->last = now;
    if (c)
        pki_bench_line_text(line, c, done, count, text + strlen(CLEAR),
                            sizeof text - strlen(CLEAR));
    pki_write_stderr(text, strlen(text));
}
