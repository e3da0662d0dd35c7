/* The ranges of the real NCCL, which it marks with or without a GPU.
 *
 * nccl SHIM LIBNCCL...
 */
#include "user.h"

#include <dlfcn.h>

typedef int group_function(void);
typedef int all_reduce_function(const void *, void *, size_t, int, int, void *, void *);

static char **libraries;

/* NCCL forgets a little, which is not ours to fix. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:ncclGroup\n";
}

static void *load(void)
{
    void *library = NULL;
    for (char **name = libraries; *name && !library; name++)
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        kit_skip("there is no libnccl.so.2");
    return library;
}

static void *find(void *library, const char *name)
{
    void *function = dlsym(library, name);
    if (!function)
        kit_skip("this NCCL is another one");
    return function;
}

static void all_reduce(void **state)
{
    group_function *group_start, *group_end;
    all_reduce_function *reduce;
    pk_backend_info info = {.size = sizeof info};
    (void)state;
    void *library = load();
    *(void **)&group_start = find(library, "ncclGroupStart");
    *(void **)&group_end = find(library, "ncclGroupEnd");
    *(void **)&reduce = find(library, "ncclAllReduce");
    group_start();
    group_end();
    assert_int_not_equal(reduce(NULL, NULL, 1000, 7, 0, NULL, NULL),
                         0); /* floats, no communicator */
    assert_int_equal(pk_backend_status("nvtx", &info), PK_OK);
    json_t *d = stop();
    if (!count_events(d, "X", "NCCL/ncclAllReduce"))
        kit_skip("this NCCL was built without NVTX");
    assert_int_equal(count_events(d, "X", "NCCL/ncclGroupStart"), 1);
    assert_int_equal(count_events(d, "X", "NCCL/ncclGroupEnd"), 1);
    assert_int_equal(number(d, "NCCL/ncclAllReduce", "bytes"), 4000);
    const json_t *event = find_event(d, "NCCL/ncclAllReduce"); /* communication */
    assert_string_equal(json_string_value(member(event, "cname")), "rail_response");
    assert_int_equal(counts().unbalanced + counts().stray_ends, 0);
    json_decref(d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {with_ranges(all_reduce)};
    take_arguments(argc > 2 ? 2 : argc, argv);
    if (kit_valgrind())
        kit_skip("valgrind has not heard of all that NCCL uses");
    if (argc < 3)
        kit_skip("needs the paths of the shim and of libnccl");
    libraries = argv + 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
