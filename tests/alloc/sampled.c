/* What libpk_alloc estimates with PK_ALLOC_SAMPLE_BYTES, beside what was really asked for: without
 * bias, and as far off as it says. Five standard errors are exceeded once in two million. */
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/pk.h>

#include "sums.h"

#define MEAN 65536.0 /* as the environment of this test has it */
#define MOST 60000

static void *blocks[MOST];

static double chance(double size)
{
    return -expm1(-(size + 1) / MEAN);
}

/* ---- blocks of one size, in numbers ---- */

typedef struct seen {
    double allocations, bytes; /* in standard errors from the truth */
} seen;

static seen ask_for(size_t size, int count)
{
    pki_alloc_sum before = now();
    for (int i = 0; i < count; i++)
        assert_non_null(blocks[i] = malloc(size));
    pki_alloc_sum after = now();
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    double p = chance((double)size), error = sqrt(count * (1 - p) / p) + 0.001 * count;
    double n = (double)(after.allocations - before.allocations);
    return (seen){
        (n - count) / error,
        ((double)(after.bytes - before.bytes) / (double)(size ? size : 1) - (size ? count : 0)) /
            error};
}

static void without_bias_of_any_size(void **state)
{
    const size_t sizes[] = {0, 1, 16, 100, 1000, 1016, 1017, 5000, 30000, 100000, 400000, 2000000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        seen s = ask_for(sizes[i], sizes[i] < 10000 ? MOST : 4000);
        printf("# %zu bytes: %.2f and %.2f standard errors\n", sizes[i], s.allocations, s.bytes);
        assert_true(fabs(s.allocations) < 5);
        assert_true(fabs(s.bytes) < 5);
    }
}

/* 400 times: the variance of a standard error is 1, and that of 400 is known to 0.07. */
static void off_by_as_much_as_it_says(void **state)
{
    double sum = 0, squares = 0;
    const int times = 400;
    (void)state;
    for (int i = 0; i < times; i++) {
        double z = ask_for(600, 5000).bytes;
        sum += z;
        squares += z * z;
    }
    printf("# mean %.3f, variance %.3f\n", sum / times, squares / times);
    assert_true(fabs(sum / times) < 5 / sqrt(times));
    assert_true(squares / times > 0.6 && squares / times < 1.4);
}

/* ---- through all functions, and by other threads ---- */

static void *ask(int how, size_t size)
{
    void *block = NULL;
    if (how == 0)
        return calloc(1, size);
    if (how == 1)
        return posix_memalign(&block, 64, size) == 0 ? block : NULL;
    if (how == 2)
        return aligned_alloc(64, (size + 63) / 64 * 64);
    return how == 3 ? realloc(malloc(size / 3), size) : malloc(size);
}

static bool has(const unsigned char *block, unsigned char what, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != what)
            return false;
    return true;
}

static void *work(void *of)
{
    void **mine = of;
    for (int i = 0; i < 5000; i++) {
        size_t size = (size_t)i * 7 % 3000;
        mine[i] = ask(i % 8, size);
        assert_non_null(mine[i]);
        assert_true(malloc_usable_size(mine[i]) >= size);
        assert_true(i % 8 || has(mine[i], 0, size));
        memset(mine[i], i & 0xff, size);
    }
    return NULL;
}

static void *give_back(void *of)
{
    void **theirs = of;
    for (int i = 0; i < 5000; i++) {
        size_t size = (size_t)i * 7 % 3000, kept = size < 500 ? size : 500;
        void *block = i % 3 ? theirs[i] : realloc(theirs[i], 500);
        assert_true(has(block, (unsigned char)(i & 0xff), i % 3 ? size : kept));
        free(block);
    }
    return NULL;
}

/* What is counted as allocated is counted as freed, to the byte. */
static void what_is_freed_was_allocated(void **state)
{
    pthread_t threads[8];
    (void)state;
    pki_alloc_sum before = now();
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &blocks[i * 5000]), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    pki_alloc_sum between = now();
    assert_true(between.bytes - before.bytes > 8 * 5000 * 1000);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, give_back, &blocks[(i + 1) % 8 * 5000]),
                         0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    pki_alloc_sum after = now();
    /* but for what the C library keeps for a thread that has ended, of which a drawn one may be */
    assert_true(llabs((long long)(after.bytes - after.freed - before.bytes + before.freed)) <=
                8 * 100000);
}

static void in_a_child(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(fabs(ask_for(100, MOST).bytes) < 5 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- what libpk says of it ---- */

static void said_in_the_report(void **state)
{
    static pk_region region = PK_REGION("cache");
    char text[16384] = "";
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none", .report_path = "sampled.%p.txt")),
                     PK_OK);
    pk_region_begin(&region);
    for (int i = 0; i < MOST; i++)
        blocks[i] = malloc(1000);
    pk_region_end(&region);
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    char path[64];
    snprintf(path, sizeof path, "sampled.%d.txt", (int)getpid());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    unlink(path);
    text[length] = '\0';
    assert_non_null(strstr(text, "estimated from one byte in 65.5 KB"));
    assert_non_null(strstr(text, "cache"));
    assert_null(strstr(text, "counts nothing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_bias_of_any_size),    cmocka_unit_test(off_by_as_much_as_it_says),
        cmocka_unit_test(what_is_freed_was_allocated), cmocka_unit_test(in_a_child),
        cmocka_unit_test(said_in_the_report),
    };
    if (!find_alloc() || alloc->sampled() != (uint64_t)MEAN)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
