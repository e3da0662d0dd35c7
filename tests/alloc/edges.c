/* Where one way of writing a block down gives way to the other, who says a block's size, what is
 * passed on, other namespaces, and a program that closes and clears what it has not opened. */
#include "sums.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc/counts.h"

/* ---- about 1 KiB ---- */

#define FROM 900
#define TO 1160
#define KINDS 4

static unsigned char *blocks[TO - FROM][KINDS];

static void *of_kind(int kind, size_t size)
{
    void *block = NULL;
    switch (kind) {
    case 0:
        return malloc(size);
    case 1:
        return calloc(1, size);
    case 2:
        return posix_memalign(&block, 32, size) == 0 ? block : NULL;
    default:
        return realloc(malloc(size - 200), size);
    }
}

static void *free_last_first(void *unused)
{
    for (int i = TO - FROM; i-- > 0;)
        for (int kind = KINDS; kind-- > 0;)
            free(blocks[i][kind]);
    return unused;
}

static void blocks_about_as_large_as_the_edge(void **state)
{
    pthread_t thread;
    uint64_t count = 0, bytes = 0, moved = 0;
    (void)state;
    pki_alloc_sum before = now();
    for (size_t i = 0; i < TO - FROM; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            size_t size = FROM + i;
            unsigned char *block = blocks[i][kind] = of_kind(kind, size);
            assert_non_null(block);
            size_t usable = malloc_usable_size(block);
            assert_true(usable >= size);
            memset(block, (int)i & 0xff, usable);
            uint64_t twice = kind == 3;
            count += 1 + twice, bytes += size, moved += twice * (size - 200);
        }
    assert_true(are(&before, count, bytes + moved, TO - FROM, moved));
    for (size_t i = 0; i < TO - FROM; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t k = 0; k < FROM + i; k++)
                assert_int_equal(blocks[i][kind][k], i & 0xff);
    pki_alloc_sum all = now();
    assert_int_equal(pthread_create(&thread, NULL, free_last_first, NULL), 0);
    pthread_join(thread, NULL);
    pki_alloc_sum after = now();
    assert_true(after.frees - all.frees >= (TO - FROM) * KINDS);
    assert_true(after.freed - all.freed >= bytes); /* more: a thread is the C library's */
}

/* Far from each other, as the kernel gives addresses: each has a part of the table to itself. */
static void blocks_all_over_the_addresses(void **state)
{
    enum { COUNT = 6 };
    const size_t each = 3 << 20, apart = (size_t)600 << 20;
    void *volatile kept[COUNT];
    void *between[COUNT];
    (void)state;
    pki_alloc_sum before = now();
    for (int i = 0; i < COUNT; i++) {
        kept[i] = malloc(each);
        assert_non_null(kept[i]);
        between[i] = mmap(NULL, apart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    assert_true(are(&before, COUNT, COUNT * each, 0, 0));
    for (int i = 0; i < COUNT; i++) {
        free(kept[i]);
        if (between[i] != MAP_FAILED)
            munmap(between[i], apart);
    }
    assert_true(are(&before, COUNT, COUNT * each, COUNT, COUNT * each));
    assert_int_equal(alloc->missed(), 0);
}

/* ---- who says how large it is ---- */

/* C libraries of before C23 have them not. */
static void find(const char *name, void *function)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static void frees_that_say_the_size(void **state)
{
    static const size_t sizes[] = {16, 1008, 1024, 4096, 100000};
    void (*sized)(void *, size_t), (*aligned)(void *, size_t, size_t);
    void (*of_jemalloc)(void *, size_t, int);
    (void)state;
    find("free_sized", &sized);
    find("free_aligned_sized", &aligned);
    find("sdallocx", &of_jemalloc);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        pki_alloc_sum before = now();
        sized(malloc(size), size);
        sized(NULL, size);
        aligned(aligned_alloc(16, size), 16, size);
        aligned(NULL, 16, 16);
        of_jemalloc(malloc(size), size, 0);
        assert_true(are(&before, 3, 3 * size, 3, 3 * size));
    }
}

/* ---- what is passed on ---- */

static void what_tunes_the_allocator(void **state)
{
    (void)state;
#ifdef __GLIBC__
    void *volatile kept = malloc(200000);
    memset(kept, 1, 200000);
    pki_alloc_sum before = now();
    assert_int_equal(mallopt(M_TRIM_THRESHOLD, 128 * 1024), 1);
    (void)malloc_trim(0);
    assert_true(are(&before, 0, 0, 0, 0));
    assert_int_equal(((unsigned char *)kept)[199999], 1);
    there_and_back(100000);
    free(kept);
    assert_true(are(&before, 1, 100000, 2, 300000));
#else
    skip();
#endif
}

/* ---- namespaces ---- */

/* A C library of its own, with a malloc of its own: nothing of it is counted, or changed. */
static void in_another_namespace(void **state)
{
    (void)state;
#if defined LM_ID_NEWLM && defined __GLIBC__
    void *library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    if (!library) {
        printf("# %s\n", dlerror());
        skip();
    }
    void *(*their_malloc)(size_t);
    void (*their_free)(void *);
    void *found = dlsym(library, "malloc");
    memcpy(&their_malloc, &found, sizeof found);
    found = dlsym(library, "free");
    memcpy(&their_free, &found, sizeof found);
    assert_true(their_malloc != malloc && their_free != free);
    pki_alloc_sum before = now();
    for (size_t size = 1; size < 100000; size *= 3) {
        void *volatile block = their_malloc(size);
        assert_non_null(block);
        memset(block, 1, size);
        their_free(block);
    }
    assert_true(are(&before, 0, 0, 0, 0));
    there_and_back(10);
    assert_true(are(&before, 1, 10, 1, 10));
#else
    skip();
#endif
}

/* ---- many threads ---- */

#define THREADS 200

static pthread_barrier_t all_there;

static void *be_there(void *unused)
{
    there_and_back(2000);
    pthread_barrier_wait(&all_there);
    return unused;
}

/* The more threads there are, the sooner each tells. */
static void many_threads_do_not_blur_peaks(void **state)
{
    pthread_t threads[THREADS];
    pthread_attr_t small;
    (void)state;
    assert_int_equal(pthread_attr_init(&small), 0);
    pthread_attr_setstacksize(&small, 256 * 1024);
    pthread_barrier_init(&all_there, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], &small, be_there, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&small);
    uint64_t within = alloc->within(), rest = THREADS - 128 + 10;
    assert_true(within >= THREADS * UINT64_C(16384));
    assert_true(within <= 64 * UINT64_C(65536) + 64 * UINT64_C(32768) + rest * 16384);
}

/* ---- a program that clears up ---- */

static void *allocate_there(void *unused)
{
    there_and_back(500);
    there_and_back(5000);
    return unused;
}

static void without_descriptors_and_environment(void **state)
{
    pthread_t thread;
    (void)state;
    clearenv();
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    pki_alloc_sum before = now();
    there_and_back(100);
    there_and_back(100000);
    assert_true(are(&before, 2, 100100, 2, 100100));
    assert_int_equal(pthread_create(&thread, NULL, allocate_there, NULL), 0);
    pthread_join(thread, NULL);
    pki_alloc_sum after = now();
    assert_true(after.frees - before.frees >= 4 && after.freed - before.freed >= 105600);
}

int main(void)
{
    if (!find_alloc())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_about_as_large_as_the_edge),
        cmocka_unit_test(blocks_all_over_the_addresses),
        cmocka_unit_test(frees_that_say_the_size),
        cmocka_unit_test(what_tunes_the_allocator),
        cmocka_unit_test(in_another_namespace),
        cmocka_unit_test(many_threads_do_not_blur_peaks),
        cmocka_unit_test(without_descriptors_and_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
