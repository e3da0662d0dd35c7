/* That it learns, always the same for a seed, and goes on from a checkpoint as if never stopped. */
#include "test_support.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer.h"

/* "abcabc...", on which a model that learns at all gets near 0 soon. */
static char *easy_text(void **state)
{
    char *path = path_in(state, "easy");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < 3000; i++)
        putc("abc\n"[i % 4], file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static options tiny(char **file)
{
    return (options){.steps = 60,
                     .batch = 4,
                     .seq = 16,
                     .layers = 2,
                     .dim = 16,
                     .heads = 2,
                     .seed = 5,
                     .rate = 0.01,
                     .clip = 1,
                     .decay = 0.1,
                     .warmup = 5,
                     .checkpoint_every = 10,
                     .queue = 2,
                     .print_every = 10,
                     .quiet = true,
                     .files = file,
                     .file_count = 1};
}

static double train(trainer *t, uint64_t steps)
{
    double sum = 0;
    for (uint64_t i = 0; i < steps; i++) {
        step_result result;
        assert_true(trainer_step(t, &result));
        sum += result.loss;
    }
    return sum / (double)steps;
}

static void loss_falls(void **state)
{
    char *file = easy_text(state);
    options o = tiny(&file);
    trainer t;
    assert_true(trainer_init(&t, &o));
    double begin = train(&t, 5);
    train(&t, 50);
    double end = train(&t, 5);
    trainer_finish(&t);
    assert_true(begin > 4.5 && begin < 6.5); /* log(256) = 5.5 */
    assert_true(end < 1);
}

static void assert_same(const real *a, const real *b, size_t count)
{
    assert_memory_equal(a, b, count * sizeof(real));
}

static void assert_same_state(const trainer *a, const trainer *b)
{
    const parameters *p = &a->model->parameters, *q = &b->model->parameters;
    assert_int_equal(a->step, b->step);
    assert_int_equal(p->count, q->count);
    assert_same(p->values, q->values, p->count);
    assert_same(p->first_moment, q->first_moment, p->count);
    assert_same(p->second_moment, q->second_moment, p->count);
}

static void a_seed_says_all(void **state)
{
    char *file = text_make(state, "text", 5000);
    options o = tiny(&file), p = tiny(&file);
    trainer a, b, c;
    p.seed = 6;
    assert_true(trainer_init(&a, &o) && trainer_init(&b, &o) && trainer_init(&c, &p));
    assert_true(train(&a, 4) == train(&b, 4));
    train(&c, 4);
    assert_same_state(&a, &b);
    assert_memory_not_equal(a.model->parameters.values, c.model->parameters.values,
                            a.model->parameters.count * sizeof(real));
    trainer_finish(&a);
    trainer_finish(&b);
    trainer_finish(&c);
}

static void resumed_is_as_never_stopped(void **state)
{
    char *file = text_make(state, "text", 5000);
    options o = tiny(&file);
    trainer straight, first, second;
    o.checkpoint = path_in(state, "checkpoint");
    assert_true(trainer_init(&straight, &o) && trainer_init(&first, &o));
    train(&straight, 9);
    train(&first, 5);
    assert_true(trainer_save(&first));
    trainer_finish(&first);
    o.resume = true;
    assert_true(trainer_init(&second, &o));
    assert_int_equal(second.step, 5);
    train(&second, 4);
    assert_same_state(&straight, &second);
    trainer_finish(&straight);
    trainer_finish(&second);
}

static void a_signal_ends_with_a_checkpoint(void **state)
{
    char *file = text_make(state, "text", 5000);
    options o = tiny(&file);
    trainer t, resumed;
    const volatile sig_atomic_t stop = 1;
    o.checkpoint = path_in(state, "checkpoint");
    assert_true(trainer_init(&t, &o));
    assert_true(trainer_run(&t, &stop));
    assert_int_equal(t.step, 1);
    o.resume = true;
    assert_true(trainer_init(&resumed, &o));
    assert_same_state(&t, &resumed);
    trainer_finish(&t);
    trainer_finish(&resumed);
}

static void a_run_does_all_steps_and_a_finished_one_none(void **state)
{
    char *file = text_make(state, "text", 5000);
    options o = tiny(&file);
    trainer t;
    o.steps = 12;
    o.checkpoint = path_in(state, "checkpoint");
    for (int i = 0; i < 2; i++) {
        assert_true(trainer_init(&t, &o));
        assert_int_equal(t.step, i ? 12 : 0);
        assert_true(trainer_run(&t, NULL));
        assert_int_equal(t.step, 12);
        trainer_finish(&t);
        o.resume = true;
    }
}

/* One line on stderr, and not begun. */
static void assert_refused(void **state, const options *o)
{
    trainer t;
    lines_begin(state);
    bool begun = trainer_init(&t, o);
    trainer_finish(&t);
    assert_int_equal(lines_end(state), 1);
    assert_false(begun);
}

static options saved_run(void **state, char **file)
{
    trainer t;
    *file = text_make(state, "text", 5000);
    options o = tiny(file);
    o.checkpoint = path_in(state, "checkpoint");
    assert_true(trainer_init(&t, &o));
    assert_true(trainer_save(&t));
    trainer_finish(&t);
    o.resume = true;
    return o;
}

static void another_run_is_not_resumed(void **state)
{
    char *file;
    options o = saved_run(state, &file), changed = o;
    changed.layers = 1;
    assert_refused(state, &changed);
    changed = o;
    changed.dim = 32;
    assert_refused(state, &changed);
    changed = o;
    changed.heads = 4;
    assert_refused(state, &changed);
    changed = o;
    changed.seq = 8;
    assert_refused(state, &changed);
    changed = o;
    changed.batch = 5;
    assert_refused(state, &changed);
    changed = o;
    changed.seed = 6;
    assert_refused(state, &changed);
}

static void damage_is_noticed(void **state)
{
    char *file;
    options o = saved_run(state, &file);
    struct stat status;
    int descriptor = open(o.checkpoint, O_RDWR);
    uint8_t byte = 0;
    assert_true(descriptor >= 0);
    assert_int_equal(fstat(descriptor, &status), 0);
    off_t middle = status.st_size / 2;
    assert_int_equal(pread(descriptor, &byte, 1, middle), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(descriptor, &byte, 1, middle), 1);
    assert_refused(state, &o);
    assert_int_equal(ftruncate(descriptor, middle), 0);
    assert_refused(state, &o);
    assert_int_equal(ftruncate(descriptor, 10), 0);
    assert_refused(state, &o);
    assert_int_equal(ftruncate(descriptor, 0), 0);
    assert_refused(state, &o);
    close(descriptor);
    o.checkpoint = file;
    assert_refused(state, &o);
}

static void a_checkpoint_that_cannot_be_is_refused_at_once(void **state)
{
    char *file = text_make(state, "text", 5000);
    options o = tiny(&file);
    o.checkpoint = path_in(state, "no/such/directory");
    assert_refused(state, &o);
}

static void allow_bytes(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* As on a full disk: what was there stays, whole, and nothing else. */
static void a_failed_save_leaves_the_last_one(void **state)
{
    char *file;
    options o = saved_run(state, &file);
    trainer t, again;
    o.resume = false;
    assert_true(trainer_init(&t, &o));
    train(&t, 2);
    lines_begin(state);
    signal(SIGXFSZ, SIG_IGN);
    allow_bytes(10000);
    bool saved = trainer_save(&t);
    allow_bytes(RLIM_INFINITY);
    assert_int_equal(lines_end(state), 1);
    assert_false(saved);
    assert_int_not_equal(access(path_in(state, "checkpoint.part"), F_OK), 0);
    o.resume = true;
    assert_true(trainer_init(&again, &o));
    assert_int_equal(again.step, 0);
    trainer_finish(&t);
    trainer_finish(&again);
}

static void a_loss_beyond_numbers_ends_the_training(void **state)
{
    char *file = text_make(state, "text", 5000);
    options o = tiny(&file);
    trainer t;
    step_result result;
    assert_true(trainer_init(&t, &o));
    t.model->parameters.value.head.weight[0] = NAN;
    lines_begin(state);
    bool good = trainer_step(&t, &result);
    assert_int_equal(lines_end(state), 1);
    assert_false(good);
    trainer_finish(&t);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, directory_make, directory_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(loss_falls),
        IN_DIRECTORY(a_seed_says_all),
        IN_DIRECTORY(resumed_is_as_never_stopped),
        IN_DIRECTORY(a_signal_ends_with_a_checkpoint),
        IN_DIRECTORY(a_run_does_all_steps_and_a_finished_one_none),
        IN_DIRECTORY(another_run_is_not_resumed),
        IN_DIRECTORY(damage_is_noticed),
        IN_DIRECTORY(a_checkpoint_that_cannot_be_is_refused_at_once),
        IN_DIRECTORY(a_failed_save_leaves_the_last_one),
        IN_DIRECTORY(a_loss_beyond_numbers_ends_the_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
