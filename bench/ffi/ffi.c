/* ffi.c NAME=MODULE.so ... - a region from each language: its begin and end, called in a loop of
 * that language, which each module has as ffi_pairs. One process and one libpk.so for all; ratios
 * are to the first. */
#include <pk/pk.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "../harness.h"

enum { PAIRS = 9984 };

static bench_case cases[BENCH_CASES_MAX];

static void empty_rings(void)
{
    pk_flush();
}

static bench_case load(char *argument)
{
    char *path = strchr(argument, '=');
    if (!path)
        bench_fail("NAME=MODULE.so is wanted");
    *path++ = '\0';
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *pairs = module ? dlsym(module, "ffi_pairs") : NULL;
    if (!pairs)
        bench_fail(dlerror());
    bench_case made = {.name = argument, .n = PAIRS, .before = empty_rings};
    memcpy(&made.run, &pairs, sizeof pairs);
    return made;
}

static void measure(const char *title, size_t count, unsigned long rounds)
{
    bench_rounds(cases, count, rounds);
    bench_print(title, cases, count);
}

int main(int argc, char **argv)
{
    size_t count = 0;
    for (int i = 1; i < argc && strchr(argv[i], '='); i++)
        if (count < BENCH_CASES_MAX)
            cases[count++] = load(argv[i]);
    unsigned long rounds = bench_number(argc, argv, "--rounds", 201);
    bench_pin(0);
    measure("begin + end, off", count, rounds);
    if (pk_start(pk_options(.trace_path = "ffi.json", .backends = "none")) != PK_OK)
        bench_fail(pk_error_message());
    measure("begin + end, recorded", count, rounds);
    return pk_stop() == PK_OK ? 0 : 1;
}
