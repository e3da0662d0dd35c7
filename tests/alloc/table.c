/* The table of large blocks, by itself: addresses need not be anybody's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "alloc/large.h"

static bool refused;
static const void *struck_by; /* a handler that writes this one down, amid the call */
static unsigned given_back;

static void *give(size_t length)
{
    const void *block = struck_by;
    struck_by = NULL;
    if (block)
        assert_true(pki_large_put(block, 3000, 3));
    if (refused) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return calloc(1, length);
}

void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t length, int prot, int flags, int fd, int64_t offset);
int __wrap_munmap(void *at, size_t length);

void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
    (void)at, (void)prot, (void)flags, (void)fd, (void)offset;
    return give(length);
}

void *__wrap_mmap64(void *at, size_t length, int prot, int flags, int fd, int64_t offset)
{
    (void)at, (void)prot, (void)flags, (void)fd, (void)offset;
    return give(length);
}

int __wrap_munmap(void *at, size_t length)
{
    (void)length;
    free(at);
    given_back++;
    return 0;
}

static const void *address(uint64_t a)
{
    return (const void *)(uintptr_t)a;
}

static void take(uint64_t a, size_t size, uint32_t region)
{
    tag t;
    assert_true(pki_large_take(address(a), &t));
    assert_int_equal(t.size, size);
    assert_int_equal(t.region, region);
    assert_false(pki_large_take(address(a), &t));
}

static void what_is_put_is_taken_once(void **state)
{
    const uint64_t base = UINT64_C(0x7f1234000010);
    const size_t most = ((size_t)1 << PKI_LARGE_SIZES) - 1;
    tag t;
    (void)state;
    assert_false(pki_large_take(address(base), &t));
    assert_true(pki_large_put(address(base), PKI_LARGE, 0));
    assert_true(pki_large_put(address(base + 1024), most, 65535));
    assert_true(pki_large_put(address(base + 2048), 4096, 1));
    assert_false(pki_large_take(address(base + 2064), &t)); /* another block of that KiB */
    assert_false(pki_large_take(address(base + 2032), &t));
    assert_true(pki_large_put(address(base + (UINT64_C(1) << PKI_LARGE_PART)), 5, 2));
    take(base + 1024, most, 65535);
    take(base, PKI_LARGE, 0);
    take(base + (UINT64_C(1) << PKI_LARGE_PART), 5, 2);
    take(base + 2048, 4096, 1);
    assert_true(pki_large_put(address(0x10), 1, 1));
    assert_true(pki_large_put(address(UINT64_C(0xffffffffff00)), 2, 2));
    take(0x10, 1, 1);
    take(UINT64_C(0xffffffffff00), 2, 2);
}

static void two_that_make_the_same_part(void **state)
{
    const uint64_t a = UINT64_C(0x100000000000), b = a + 4096;
    (void)state;
    struck_by = address(b);
    assert_true(pki_large_put(address(a), 2000, 2));
    assert_int_equal(given_back, 1);
    take(a, 2000, 2);
    take(b, 3000, 3);
}

static void without_room_it_is_counted_as_missed(void **state)
{
    const uint64_t a = UINT64_C(0x200000000000);
    tag t;
    (void)state;
    refused = true;
    errno = 5;
    assert_false(pki_large_put(address(a), 2000, 2));
    assert_false(pki_large_put(address(a), 2000, 2));
    assert_int_equal(errno, 5);
    assert_int_equal(pki_large_missed(), 2);
    assert_false(pki_large_take(address(a), &t));
    refused = false;
    assert_true(pki_large_put(address(a), 2000, 2));
    take(a, 2000, 2);
    assert_int_equal(pki_large_missed(), 2);
    assert_false(pki_large_put(address(a), (size_t)1 << PKI_LARGE_SIZES, 2));
    assert_false(pki_large_take(address(a), &t));
    assert_int_equal(pki_large_missed(), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_taken_once),
        cmocka_unit_test(two_that_make_the_same_part),
        cmocka_unit_test(without_room_it_is_counted_as_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
