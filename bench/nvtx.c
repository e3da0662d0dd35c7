/* What a range of somebody else costs when it becomes a region, above the same call that finds no
 * listener; and beside perfkit's own pair. The user of NVTX is a library, loaded twice: one copy
 * made its first call before perfkit listened.
 *
 * nvtx SHIM USER COPY [--rounds N] */
#include <pk/pk.h>

#include <dlfcn.h>

#include "harness.h"
#include "nvtx_user.h"

enum { PAIRS = 9984 };

static pk_region one = PK_REGION("one");

static void run_own(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
    }
}

static void empty_rings(void)
{
    pk_flush();
}

static const bench_nvtx_user *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const bench_nvtx_user *user = library ? dlsym(library, BENCH_NVTX_USER) : NULL;
    if (!user)
        bench_fail(dlerror());
    user->first_call();
    return user;
}

#define SIZE(cases) (sizeof(cases) / sizeof *(cases))

int main(int argc, char **argv)
{
    unsigned long rounds = bench_number(argc, argv, "--rounds", 51);
    if (argc < 4)
        bench_fail("needs the shim and two copies of a user of NVTX");
    bench_pin(0);
    const bench_nvtx_user *quiet = load(argv[2]);
    if (pk_start(pk_options(.trace_path = bench_scratch("nvtx.json"), .backends = "nvtx",
                            .tuning = bench_tuning("nvtx_consume=1,nvtx_shim=%s", argv[1]))) !=
        PK_OK)
        bench_fail(pk_error_message());
    const bench_nvtx_user *heard = load(argv[3]);
    bench_case cases[] = {
        {.name = "push + pop, no listener", .run = quiet->text, .n = PAIRS},
        {.name = "push + pop", .run = heard->text, .n = PAIRS},
        {.name = "in a domain", .run = heard->domain, .n = PAIRS},
        {.name = "registered", .run = heard->registered, .n = PAIRS},
        {.name = "with a category", .run = heard->category, .n = PAIRS},
        {.name = "with a number", .run = heard->payload, .n = PAIRS},
        {.name = "with a schema's bytes", .run = heard->schema, .n = PAIRS},
        {.name = "another text each time", .run = heard->changing, .n = PAIRS},
        {.name = "start + end", .run = heard->ids, .n = PAIRS},
        {.name = "mark", .run = heard->mark, .n = PAIRS},
        {.name = "perfkit's begin + end", .run = run_own, .n = PAIRS},
    };
    bench_case pair[] = {
        {.name = "perfkit's begin + end", .run = run_own, .n = PAIRS},
        {.name = "push + pop", .run = heard->text, .n = PAIRS},
        {.name = "registered", .run = heard->registered, .n = PAIRS},
    };
    for (size_t i = 0; i < SIZE(cases); i++)
        cases[i].after = empty_rings;
    for (size_t i = 0; i < SIZE(pair); i++)
        pair[i].after = empty_rings;
    bench_rounds(cases, SIZE(cases), rounds);
    bench_print("NVTX consumed", cases, SIZE(cases));
    bench_rounds(pair, SIZE(pair), rounds);
    bench_print("beside perfkit's own", pair, SIZE(pair));
    pk_counts counts = {.size = sizeof counts};
    if (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK || counts.dropped)
        bench_fail("a ring was full: the figures above are not of recorded regions");
    bench_scratch_empty();
    return 0;
}
