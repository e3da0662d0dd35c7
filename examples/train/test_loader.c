/* Every window once per epoch, and an end that comes at once whatever the loader is doing. */
#include "test_support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data.h"
#include "layers.h"

enum { SEQ = 8, BATCH = 3 };

static loader *start(const corpus *c, uint64_t first, uint64_t slow_ms)
{
    loader *l = loader_start(&(loader_options){
        .corpus = c, .batch = BATCH, .queue = 2, .seed = 11, .first = first, .slow_ms = slow_ms});
    assert_non_null(l);
    return l;
}

/* Two files; (100 - 1) / 8 + (45 - 1) / 8 = 12 + 5 windows, which 3 does not divide. */
static corpus two_files(void **state)
{
    char *paths[2] = {text_make(state, "one", 100), text_make(state, "two", 45)};
    corpus c;
    assert_true(corpus_init(&c, paths, 2, SEQ));
    assert_int_equal(c.windows, 17);
    return c;
}

/* The number of the window that a sequence is. */
static uint64_t recognise(const corpus *c, const uint8_t *input, const uint8_t *target)
{
    uint8_t window[SEQ + 1];
    for (uint64_t w = 0; w < c->windows; w++) {
        assert_true(corpus_read(c, w, window));
        if (memcmp(window, input, SEQ) == 0 && memcmp(window + 1, target, SEQ) == 0)
            return w;
    }
    fail_msg("not a window of the text, or not its target");
    return 0;
}

/* The windows of the next `count` sequences, in their order. */
static void list_windows(const corpus *c, loader *l, uint64_t *windows, size_t count)
{
    for (size_t i = 0; i < count; i += BATCH) {
        const batch *b = loader_next(l);
        assert_non_null(b);
        assert_int_equal(b->number, i / BATCH);
        for (size_t j = 0; j < BATCH; j++)
            windows[i + j] = recognise(c, b->input + j * SEQ, b->target + j * SEQ);
        loader_release(l);
    }
}

static void every_window_once_per_epoch(void **state)
{
    enum { EPOCHS = 3, COUNT = EPOCHS * 17 };
    corpus c = two_files(state);
    loader *l = start(&c, 0, 0);
    uint64_t windows[COUNT];
    list_windows(&c, l, windows, COUNT);
    for (size_t epoch = 0; epoch < EPOCHS; epoch++) {
        unsigned seen[17] = {0};
        for (size_t i = 0; i < 17; i++)
            assert_int_equal(seen[windows[epoch * 17 + i]]++, 0);
    }
    assert_memory_not_equal(windows, windows + 17, 17 * sizeof(*windows));
    assert_memory_not_equal(windows + 17, windows + 34, 17 * sizeof(*windows));
    loader_stop(l);
    corpus_finish(&c);
}

/* What resuming relies on. */
static void batch_n_is_the_same_wherever_one_begins(void **state)
{
    corpus c = two_files(state);
    loader *whole = start(&c, 0, 0), *part = start(&c, 7, 0);
    for (int i = 0; i < 7; i++) {
        assert_non_null(loader_next(whole));
        loader_release(whole);
    }
    for (int i = 0; i < 5; i++) {
        const batch *a = loader_next(whole), *b = loader_next(part);
        assert_int_equal(a->number, b->number);
        assert_memory_equal(a->input, b->input, BATCH * SEQ);
        assert_memory_equal(a->target, b->target, BATCH * SEQ);
        loader_release(whole);
        loader_release(part);
    }
    loader_stop(whole);
    loader_stop(part);
    corpus_finish(&c);
}

/* A loader that does not notice hangs here, and the test runner's limit ends it. */
static void it_stops_in_the_middle(void **state)
{
    corpus c = two_files(state);
    for (uint64_t taken = 0; taken < 12; taken++) {
        loader *l = start(&c, 0, 0);
        for (uint64_t i = 0; i < taken; i++) {
            assert_non_null(loader_next(l));
            if (i + 1 < taken)
                loader_release(l);
        }
        loader_stop(l);
    }
    loader_stop(NULL);
    corpus_finish(&c);
}

static void it_stops_while_the_storage_is_slow(void **state)
{
    corpus c = two_files(state);
    loader *l = start(&c, 0, 600000);
    usleep(50000); /* time to fall asleep in */
    loader_stop(l);
    corpus_finish(&c);
}

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* With a queue of one, a batch is begun when the last one has been released. However busy the
 * machine is, it cannot come earlier than that. */
static void too_slow_is_thrice_as_long_as_the_training(void **state)
{
    corpus c = two_files(state);
    loader *l = loader_start(
        &(loader_options){.corpus = &c, .batch = BATCH, .queue = 1, .slow_ms = LOADER_TOO_SLOW});
    assert_non_null(l);
    for (int i = 0; i < 3; i++) {
        assert_non_null(loader_next(l));
        usleep(10000); /* the training */
        double released = milliseconds();
        loader_release(l);
        assert_non_null(loader_next(l));
        assert_true(milliseconds() - released >= 30);
        loader_release(l);
    }
    loader_stop(l);
    corpus_finish(&c);
}

/* While its batch is in use, the loader writes elsewhere. */
static void a_batch_stays_until_released(void **state)
{
    corpus c = two_files(state);
    loader *l = start(&c, 0, 0);
    const batch *b = loader_next(l);
    uint8_t before[BATCH * SEQ];
    memcpy(before, b->input, sizeof(before));
    usleep(20000); /* time to do wrong in */
    assert_memory_equal(before, b->input, sizeof(before));
    assert_int_equal(b->number, 0);
    loader_release(l);
    loader_stop(l);
    corpus_finish(&c);
}

static void a_file_that_shrinks_ends_the_loader(void **state)
{
    corpus c = two_files(state);
    assert_int_equal(truncate(path_in(state, "one"), 3), 0);
    lines_begin(state);
    loader *l = start(&c, 0, 0);
    int batches = 0;
    for (const batch *b; batches < 100 && (b = loader_next(l)) != NULL; batches++)
        loader_release(l);
    loader_stop(l);
    assert_int_equal(lines_end(state), 1);
    assert_true(batches < 6);
    corpus_finish(&c);
}

static void assert_refused(void **state, char *path)
{
    char *paths[2] = {text_make(state, "good", 100), path};
    corpus c;
    lines_begin(state);
    bool good = corpus_init(&c, paths, 2, SEQ);
    assert_int_equal(lines_end(state), 1);
    assert_false(good);
}

static void what_cannot_be_learned_from_gets_a_line(void **state)
{
    assert_refused(state, path_in(state, "missing"));
    assert_refused(state, text_make(state, "empty", 0));
    assert_refused(state, text_make(state, "short", SEQ));
    assert_refused(state, path_in(state, ""));
    assert_int_equal(mkfifo(path_in(state, "pipe"), 0600), 0);
    assert_refused(state, path_in(state, "pipe"));
}

static void the_shortest_text_is_one_window(void **state)
{
    char *path = text_make(state, "text", SEQ + 1);
    corpus c;
    uint8_t window[SEQ + 1];
    assert_true(corpus_init(&c, &path, 1, SEQ));
    assert_int_equal(c.windows, 1);
    assert_true(corpus_read(&c, 0, window));
    corpus_finish(&c);
}

static void there_is_text_without_asking(void **state)
{
    (void)state;
    text t;
    corpus c;
    assert_true(text_find(&t, 64));
    assert_true(corpus_init(&c, t.paths, t.count, 64));
    assert_true(c.windows > 100);
    corpus_finish(&c);
    text_finish(&t);
}

static void an_order_is_a_shuffle(void **state)
{
    (void)state;
    for (uint64_t count = 1; count < 200; count++) {
        uint8_t seen[200] = {0};
        size_t kept = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t place = random_order(count, i, count);
            assert_true(place < count);
            assert_int_equal(seen[place]++, 0);
            kept += place == i;
        }
        assert_true(count < 20 || kept < count / 2);
    }
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, directory_make, directory_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(every_window_once_per_epoch),
        IN_DIRECTORY(batch_n_is_the_same_wherever_one_begins),
        IN_DIRECTORY(it_stops_in_the_middle),
        IN_DIRECTORY(it_stops_while_the_storage_is_slow),
        IN_DIRECTORY(too_slow_is_thrice_as_long_as_the_training),
        IN_DIRECTORY(a_batch_stays_until_released),
        IN_DIRECTORY(a_file_that_shrinks_ends_the_loader),
        IN_DIRECTORY(what_cannot_be_learned_from_gets_a_line),
        IN_DIRECTORY(the_shortest_text_is_one_window),
        cmocka_unit_test(there_is_text_without_asking),
        cmocka_unit_test(an_order_is_a_shuffle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
