/* What libpk_alloc counts, by a program that knows what it has done. It is preloaded, with
 * whatever allocator behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/pk.h>

#include "alloc/interface.h"

#define THREADS 16
#define REGIONS 200
#define EACH 40 /* blocks of a thread in a region */

static const pki_alloc_interface *alloc;

typedef struct truth {
    uint64_t allocations, bytes, frees, freed;
} truth;

static pk_region *regions[REGIONS];
static truth known[THREADS][REGIONS];
static void *blocks[THREADS][REGIONS][EACH];
static size_t sizes[THREADS][REGIONS][EACH];
static pthread_barrier_t filled;

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void *ask(uint32_t how, size_t size)
{
    void *block = NULL;
    if (how == 0)
        return calloc(1, size);
    if (how == 1)
        return posix_memalign(&block, 64, size) == 0 ? block : NULL;
    if (how == 2)
        return aligned_alloc(256, size);
    return how == 3 ? memalign(4096, size) : malloc(size);
}

static void allocated(truth *t, size_t size)
{
    t->allocations++;
    t->bytes += size;
}

static void given_back(truth *t, size_t size)
{
    t->frees++;
    t->freed += size;
}

/* Blocks of all sizes, some moved; what it does with another thread's it writes down as its own. */
static void *work(void *arg)
{
    uintptr_t me = (uintptr_t)arg, other = (me + 1) % THREADS;
    uint32_t seed = (uint32_t)me + 1;
    for (int r = 0; r < REGIONS; r++) {
        pk_region_begin(regions[r]);
        for (int i = 0; i < EACH; i++) {
            size_t size = draw(&seed) % 50 == 0 ? draw(&seed) % 300000 : draw(&seed) % 700;
            blocks[me][r][i] = ask(draw(&seed) % 16, size);
            assert_non_null(blocks[me][r][i]);
            memset(blocks[me][r][i], 0x5a, size);
            sizes[me][r][i] = size;
            allocated(&known[me][r], size);
        }
        pk_region_end(regions[r]);
    }
    pthread_barrier_wait(&filled);
    for (int r = 0; r < REGIONS; r++)
        for (int i = 0; i < EACH; i++) {
            uint32_t what = draw(&seed) % 4;
            size_t before = sizes[other][r][i], size = 1 + draw(&seed) % 2000;
            if (what == 0) /* it lives on */
                continue;
            given_back(&known[me][r], before);
            if (what == 1) { /* and is another region's from here on */
                int into = (r + 7) % REGIONS;
                pk_region_begin(regions[into]);
                void *moved = realloc(blocks[other][r][i], size);
                pk_region_end(regions[into]);
                assert_non_null(moved);
                assert_int_equal(((unsigned char *)moved)[before < size ? before - !!before : 0],
                                 before ? 0x5a : ((unsigned char *)moved)[0]);
                blocks[other][r][i] = moved;
                allocated(&known[me][into], size);
            } else {
                free(blocks[other][r][i]);
                blocks[other][r][i] = NULL;
            }
        }
    return NULL;
}

static pki_alloc_sum *sums_now(uint32_t *count)
{
    *count = PKI_ALLOC_REGIONS;
    pki_alloc_sum *sums = calloc(*count, sizeof *sums);
    assert_non_null(sums);
    alloc->sums(sums, *count);
    return sums;
}

static uint32_t id_of(int r)
{
    return regions[r]->id ? regions[r]->id : regions[r]->reserved;
}

static void exact_in_200_regions_on_16_threads(void **state)
{
    pthread_t threads[THREADS];
    uint32_t count;
    (void)state;
    for (int r = 0; r < REGIONS; r++) {
        char name[32];
        snprintf(name, sizeof name, "region %d", r);
        regions[r] = pk_region_named(name);
    }
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    pthread_barrier_init(&filled, NULL, THREADS);
    pki_alloc_sum *before = sums_now(&count);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pki_alloc_sum *after = sums_now(&count);
    for (int r = 0; r < REGIONS; r++) {
        truth all = {0};
        for (int i = 0; i < THREADS; i++) {
            all.allocations += known[i][r].allocations;
            all.bytes += known[i][r].bytes;
            all.frees += known[i][r].frees;
            all.freed += known[i][r].freed;
        }
        const pki_alloc_sum *a = &after[id_of(r)], *b = &before[id_of(r)];
        assert_int_equal(a->allocations - b->allocations, all.allocations);
        assert_int_equal(a->bytes - b->bytes, all.bytes);
        assert_int_equal(a->frees - b->frees, all.frees);
        assert_int_equal(a->freed - b->freed, all.freed);
        uint64_t live = alloc->live(id_of(r)), exact = all.bytes - all.freed;
        assert_true(live <= exact + alloc->within() && exact <= live + alloc->within());
        assert_true(alloc->peak(id_of(r)) + alloc->within() >= exact);
    }
    for (int i = 0; i < THREADS; i++)
        for (int r = 0; r < REGIONS; r++)
            for (int k = 0; k < EACH; k++)
                free(blocks[i][r][k]);
    free(before);
    free(after);
    assert_int_equal(pk_stop(), PK_OK);
}

/* What a program may rely on is what the allocator beneath promises. */
static void functions_keep_their_promises(void **state)
{
    (void)state;
    for (size_t size = 0; size < 9000; size += size < 300 ? 1 : 97) {
        unsigned char *p = calloc(1, size);
        assert_non_null(p);
        size_t usable = malloc_usable_size(p);
        assert_true(usable >= size && (uintptr_t)p % (size < 16 ? 8 : 16) == 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xee, usable); /* all of it is the program's */
        p = realloc(p, size + 100);
        assert_non_null(p);
        assert_int_equal(p[size ? size - 1 : 0], size ? 0xee : p[0]);
        free(p);
    }
    for (size_t by = 16; by <= 65536; by *= 2) {
        void *a = NULL, *b = memalign(by, 33), *c = aligned_alloc(by, by);
        assert_int_equal(posix_memalign(&a, by, 1000), 0);
        uintptr_t exact = by > 128 ? 0 : (uintptr_t)c; /* mimalloc 2.0's: not beyond 128 */
        assert_int_equal(((uintptr_t)a | (uintptr_t)b | exact) % by, 0);
        assert_true(malloc_usable_size(a) >= 1000 && malloc_usable_size(b) >= 33);
        assert_true(malloc_usable_size(c) >= by);
        free(a), free(b), free(c);
    }
    void *page = valloc(10);
    assert_int_equal((uintptr_t)page % (size_t)sysconf(_SC_PAGESIZE), 0);
    free(page);
    free(NULL);
    assert_int_equal(malloc_usable_size(NULL), 0);
}

static void what_cannot_be_had_is_refused(void **state)
{
    volatile size_t much = SIZE_MAX - 4, half = SIZE_MAX / 2;
    (void)state;
    char *volatile kept = malloc(100); /* volatile: the compiler takes it for gone */
    memset(kept, 7, 100);
    assert_null(malloc(much));
    assert_null(calloc(half, 3));
    errno = 0;
    assert_null(reallocarray(kept, half, 3));
    assert_int_equal(errno, ENOMEM);
    assert_null(realloc(kept, half));
    for (int i = 0; i < 100; i++)
        assert_int_equal(kept[i], 7);
    pki_alloc_sum before, after;
    alloc->sums(&before, 1);
    free(kept); /* it still has its tag */
    alloc->sums(&after, 1);
    assert_int_equal(after.frees, before.frees + 1);
}

static void peaks_are_as_high_as_they_were(void **state)
{
    enum { MIB = 1 << 20 };
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    pk_region *first = pk_region_named("peak first"), *second = pk_region_named("peak second");
    uint64_t base = alloc->total();
    pk_region_begin(first);
    void *volatile a = malloc(24 * MIB);
    pk_region_next(first, second);
    void *volatile b = malloc(8 * MIB);
    pk_region_end(second);
    free(a);
    pk_region_begin(second);
    void *volatile c = malloc(10 * MIB);
    pk_region_end(second);
    free(b), free(c);
    uint64_t most = alloc->total_peak(), slack = 2 * alloc->within(); /* of base, too */
    assert_true(most + slack >= base + 32u * MIB && most <= base + 32u * MIB + slack + MIB);
    assert_true(alloc->peak(second->id) + slack >= 18u * MIB);
    assert_true(alloc->at_peak(first->id) + slack >= 24u * MIB);
    uint64_t there = alloc->at_peak(second->id);
    assert_true(there + slack >= 8u * MIB && there <= 8u * MIB + slack);
    assert_int_equal(pk_stop(), PK_OK);
}

/* A compiler that sees both leaves both out. */
static void there_and_back(size_t size)
{
    void *volatile block = malloc(size);
    free(block);
}

static void *allocate_a_little(void *arg)
{
    there_and_back(10);
    return arg;
}

static void threads_that_end_leave_their_room_to_others(void **state)
{
    (void)state;
    uint64_t before = alloc->within();
    for (int i = 0; i < 300; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, allocate_a_little, NULL), 0);
        pthread_join(t, NULL);
    }
    assert_true(alloc->within() <= before + 2 * 65536);
}

static bool enough;

static void *allocate_on(void *arg)
{
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
        allocate_a_little(arg);
    return arg;
}

/* In the child: blocks of before and after the fork, and threads of its own. */
static int use_in_child(void *before)
{
    pthread_t t;
    pki_alloc_sum a, b;
    alloc->sums(&a, 1);
    free(before);
    for (int i = 0; i < 1000; i++)
        there_and_back((size_t)i);
    alloc->sums(&b, 1);
    if (b.frees - a.frees != 1001 || b.allocations - a.allocations != 1000)
        return 1;
    return pthread_create(&t, NULL, allocate_a_little, NULL) || pthread_join(t, NULL) ? 2 : 0;
}

static void forks_amid_allocations(void **state)
{
    pthread_t threads[3];
    (void)state;
    enough = false;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_on, NULL), 0);
    for (int i = 0; i < 8; i++) {
        void *volatile block = malloc(1000);
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(use_in_child(block));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        free(block);
    }
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

/* More than each thread has room for at once. */
static void in_thousands_of_regions(void **state)
{
    enum { MANY = 4400 };
    static pk_region *many[MANY];
    static void *kept[MANY];
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "one of many %d", i);
        many[i] = pk_region_named(name);
    }
    assert_true(many[MANY - 1]->id > 4200);
    for (int i = 0; i < MANY; i++) {
        pk_region_begin(many[i]);
        kept[i] = malloc((size_t)i);
        pk_region_end(many[i]);
    }
    for (int i = 0; i < MANY; i += 2)
        free(kept[i]);
    pki_alloc_sum *sums = sums_now(&(uint32_t){0});
    for (uint64_t i = 0; i < MANY; i++) {
        const pki_alloc_sum *s = &sums[many[i]->id];
        assert_true(s->allocations == 1 && s->bytes == i && s->freed == (i % 2 ? 0 : i));
    }
    free(sums);
    for (int i = 1; i < MANY; i += 2)
        free(kept[i]);
    assert_int_equal(pk_stop(), PK_OK);
}

/* What a session's report says of it. */
static void the_report_has_a_row_for_each_region(void **state)
{
    static char text[1 << 18];
    (void)state;
    assert_int_equal(pk_start(pk_options(.report_path = "alloc-report.json", .backends = "none")),
                     PK_OK);
    pk_region *kept = pk_region_named("keeps a block");
    pk_region_begin(kept);
    void *volatile block = malloc(123456);
    pk_region_end(kept);
    assert_int_equal(pk_stop(), PK_OK);
    FILE *file = fopen("alloc-report.json", "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    unlink("alloc-report.json");
    const char *memory = strstr(text, "\"memory\":{");
    memory = memory ? memory : strstr(text, "\"memory\": {");
    assert_non_null(memory);
    const char *row = strstr(memory, "keeps a block");
    assert_non_null(row);
    assert_non_null(strstr(row, "123456"));
    free(block);
}

int main(void)
{
    const char *why = "it is not preloaded";
    alloc = dlsym(RTLD_DEFAULT, PKI_ALLOC_SYMBOL);
    const char *file = alloc ? alloc->beneath(&why) : NULL;
    printf("# on %s\n", file ? file : why);
    if (!file)
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_in_200_regions_on_16_threads),
        cmocka_unit_test(functions_keep_their_promises),
        cmocka_unit_test(what_cannot_be_had_is_refused),
        cmocka_unit_test(peaks_are_as_high_as_they_were),
        cmocka_unit_test(threads_that_end_leave_their_room_to_others),
        cmocka_unit_test(forks_amid_allocations),
        cmocka_unit_test(in_thousands_of_regions),
        cmocka_unit_test(the_report_has_a_row_for_each_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
