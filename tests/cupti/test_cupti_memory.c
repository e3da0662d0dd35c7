/* When memory is out: CUPTI never gets a NULL to write to, the program's errno stays, and what
 * cannot be kept is counted. */
#include "scene.h"

#include <errno.h>

#include "base/atomic.h"

static pk_region forward = PK_REGION("forward");

/* Of perfkit's own calls; the rest of the program has memory. */
static bool no_buffers;
static long left = -1; /* calls of realloc and calloc until one fails */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

/* On the collector's thread, too. */
static bool fails(void)
{
    if (pki_load(&left) < 0)
        return false;
    errno = ENOMEM;
    return pki_fetch_add(&left, -1) == 0;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    bool none = pki_load(&no_buffers);
    if (none)
        errno = ENOMEM;
    return none ? NULL : __real_aligned_alloc(alignment, size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return fails() ? NULL : __real_realloc(block, size);
}

static int memory_is_back(void **state)
{
    pki_store(&no_buffers, false);
    pki_store(&left, -1);
    return stop_and_leave(state);
}

static void no_buffer_to_be_had(void **state)
{
    (void)state;
    start_cupti(.clock = NULL);
    pk_region_begin(&forward);
    pki_store(&no_buffers, true);
    errno = 4711;
    launch(.kernel = "a");
    assert_int_equal(errno, 4711);
    assert_true(fake->nulls == 0 && fake->buffers > 0 && fake->smallest == 8);
    pki_store(&no_buffers, false);
    launch(.kernel = "b");
    fake->complete();
    launch(.kernel = "c");
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", "c"), 1);
    assert_string_equal(text_of(the_event(doc, "kernel", "c"), "region"), "forward");
    assert_true(fate(doc, "buffers_refused") > 0 && fate(doc, "dropped_by_cupti") > 0);
    json_decref(doc);
}

/* Whatever allocation it is that fails: the trace is whole, and so is the next session's. */
static void every_allocation_once(void **state)
{
    bool failed = true;
    (void)state;
    for (long n = 0; failed && n < 200; n++) {
        start_cupti(.clock = NULL);
        pk_region_begin(&forward);
        for (int i = 0; i < 20; i++)
            launch(.kernel = i % 2 ? "a" : "_Z1bv", .stream = (uint32_t)i + 1);
        pk_region_end(&forward);
        fake->finish();
        pki_store(&left, n);
        assert_int_equal(pk_flush(), PK_OK);
        failed = pki_load(&left) < 0;
        pki_store(&left, -1);
        json_t *doc = stop_and_load();
        assert_true(count_of_cat(doc, "kernel", NULL) <= 20);
        assert_true(failed || count_of_cat(doc, "kernel", NULL) == 20);
        json_decref(doc);
    }
    assert_false(failed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_buffer_to_be_had, reset_fake, memory_is_back),
        cmocka_unit_test_setup_teardown(every_allocation_once, reset_fake, memory_is_back),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
