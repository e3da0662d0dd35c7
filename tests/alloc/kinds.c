/* Every function of malloc's family, and realloc of each one's blocks: bytes, alignment, contents.
 */
#include "sums.h"

#include <errno.h>
#include <unistd.h>

#define KINDS 9

static void *of_kind(int kind, size_t size)
{
    void *block = NULL;
    switch (kind) {
    case 0:
        return malloc(size);
    case 1:
        return calloc(size, 1);
    case 2:
        return memalign(64, size);
    case 3:
        return aligned_alloc(4096, size);
    case 4:
        return posix_memalign(&block, 1024, size) == 0 ? block : NULL;
    case 5:
        return valloc(size);
    case 6:
        return realloc(NULL, size);
    case 7:
        return reallocarray(NULL, size / 4, 4);
    default:
        return reallocarray(malloc(size / 2), size, 1);
    }
}

static uintptr_t alignment_of(int kind)
{
    static const uintptr_t of[KINDS] = {16, 16, 64, 4096, 1024, 4096, 16, 16, 16};
    return of[kind];
}

static bool holds(const unsigned char *block, int value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != value)
            return false;
    return true;
}

static void change_kind(int kind, size_t size, size_t into)
{
    pki_alloc_sum before = now();
    unsigned char *block = of_kind(kind, size);
    assert_non_null(block);
    assert_true((uintptr_t)block % alignment_of(kind) == 0 ||
                is_left_unaligned(alignment_of(kind), size));
    assert_true(malloc_usable_size(block) >= size);
    memset(block, kind + 1, malloc_usable_size(block));
    block = realloc(block, into);
    assert_non_null(block);
    assert_true(malloc_usable_size(block) >= into);
    assert_true(holds(block, kind + 1, size < into ? size : into));
    uint64_t twice = kind == 8; /* half of it before */
    assert_true(are(&before, 2 + twice, size + into + twice * (size / 2), 1 + twice,
                    size + twice * (size / 2)));
    free(block);
    assert_true(are(&before, 2 + twice, size + into + twice * (size / 2), 2 + twice,
                    size + into + twice * (size / 2)));
}

static void realloc_of_each_kind(void **state)
{
    static const size_t sizes[] = {4, 16, 100, 1024, 4096, 70000, 300000};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
                change_kind(kind, sizes[i], sizes[k]);
}

void *pvalloc(size_t size); /* musl declares none */

static void pages_and_nothing(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    pki_alloc_sum before = now();
    void *block = pvalloc(page + 1);
    assert_int_equal((uintptr_t)block % page, 0);
    assert_true(malloc_usable_size(block) >= 2 * page);
    free(block);
    assert_true(are(&before, 1, 2 * page, 1, 2 * page));
    before = now();
    block = realloc(malloc(40), 0); /* NULL, or a block of none */
    assert_true(are(&before, 1, 40, 1, 40) || block);
    free(block);
    pki_alloc_sum after = now();
    assert_int_equal(after.allocations - before.allocations, after.frees - before.frees);
    volatile size_t half = SIZE_MAX / 2 + 1;
    void *volatile none = calloc(half, 2); /* kept: clang takes an unused one for a success */
    assert_null(none);
    assert_null(reallocarray(NULL, half, 2));
    assert_int_equal(posix_memalign(&block, 24, 10), EINVAL);
}

int main(void)
{
    if (!find_alloc())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(realloc_of_each_kind),
        cmocka_unit_test(pages_and_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
