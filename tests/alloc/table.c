/* The table of large blocks, by itself: addresses need not be anybody's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc/counts.h"
#include "alloc/next.h"

static bool refused;
static const void *struck_by; /* a handler that writes this one down, amid the call */
static unsigned asked, given_back;

void *__real_pki_room_map(size_t bytes);
void *__wrap_pki_room_map(size_t bytes);
void __real_pki_room_unmap(void *room, size_t bytes);
void __wrap_pki_room_unmap(void *room, size_t bytes);

void *__wrap_pki_room_map(size_t bytes)
{
    const void *block = struck_by;
    struck_by = NULL;
    if (block)
        assert_true(pki_large_put(block, 3000, 3));
    asked++;
    return refused ? NULL : __real_pki_room_map(bytes);
}

void __wrap_pki_room_unmap(void *room, size_t bytes)
{
    __real_pki_room_unmap(room, bytes);
    given_back++;
}

static const void *address(uint64_t a)
{
    return (const void *)(uintptr_t)a;
}

static void take(uint64_t a, size_t size, uint32_t region)
{
    tag t;
    assert_true(pki_large_remove(address(a), &t));
    assert_int_equal(t.size, size);
    assert_int_equal(t.region, region);
    assert_false(pki_large_remove(address(a), &t));
}

static void what_is_put_is_taken_once(void **state)
{
    const uint64_t base = UINT64_C(0x7f1234000010);
    const size_t most = ((size_t)1 << PKI_LARGE_SIZES) - 1;
    tag t;
    (void)state;
    assert_false(pki_large_remove(address(base), &t));
    assert_true(pki_large_put(address(base), PKI_LARGE, 0));
    assert_true(pki_large_put(address(base + 1024), most, 65535));
    assert_true(pki_large_put(address(base + 2048), 4096, 1));
    assert_false(pki_large_remove(address(base + 2064), &t)); /* another block of that KiB */
    assert_false(pki_large_remove(address(base + 2032), &t));
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
    assert_false(pki_large_remove(address(a), &t));
    unsigned before = asked, missed = 2;
    for (; missed < 1 + 3 * (PKI_LARGE_UNASKED + 1); missed++)
        assert_false(pki_large_put(address(a + UINT64_C(0x10000000000)), 2000, 2));
    assert_int_equal(asked - before, 3); /* not for each block, though of another part */
    refused = false;
    while (!pki_large_put(address(a), 2000, 2))
        missed++;
    take(a, 2000, 2);
    assert_int_equal(pki_large_missed(), missed);
    assert_int_equal(missed, 4 * (PKI_LARGE_UNASKED + 1));
    assert_true(pki_large_put(address(2 * a), 2000, 2)); /* from now on there is room */
    assert_false(pki_large_put(address(a), (size_t)1 << PKI_LARGE_SIZES, 2));
    assert_false(pki_large_remove(address(a), &t));
    assert_int_equal(pki_large_missed(), missed + 1);
}

static void blocks_of_no_bytes(void **state)
{
    const uint64_t a = UINT64_C(0x300000000000); /* of whole pages, and outside of regions */
    tag t;
    (void)state;
    assert_true(pki_large_put(address(a), 0, 0));
    assert_false(pki_large_remove(address(a + 16), &t));
    take(a, 0, 0);
}

#define ROOM ((size_t)4 << 20)

/* 0: of the room nothing is there but what has been touched, a page at its begin, perhaps. */
static int lock_and_take(void)
{
    static unsigned char there[ROOM / 4096];
    if (mlockall(MCL_FUTURE) != 0)
        return 77;
    char *room = __real_pki_room_map(ROOM);
    size_t pages = 0;
    if (!room || mincore(room, ROOM, there) != 0)
        return 1;
    for (size_t i = 0; i < ROOM / 4096; i++)
        pages += there[i] & 1;
    room[ROOM - 1] = 1;
    return pages > 1;
}

static void room_is_not_filled_where_all_is_locked(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(lock_and_take());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_taken_once),
        cmocka_unit_test(two_that_make_the_same_part),
        cmocka_unit_test(without_room_it_is_counted_as_missed),
        cmocka_unit_test(blocks_of_no_bytes),
        cmocka_unit_test(room_is_not_filled_where_all_is_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
