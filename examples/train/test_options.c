/* The command line: what is taken, and that each mistake gets one line. */
#include "test_support.h"

#include <string.h>

#include "data.h"
#include "options.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(*(array))))
#define PARSE(o, ...)                                                                              \
    parse(o, COUNT(((const char *[]){"pk-train", __VA_ARGS__})),                                   \
          (const char *[]){"pk-train", __VA_ARGS__, NULL})

static bool parse(options *o, int argc, const char **argv)
{
    return options_parse(o, argc, (char *const *)argv);
}

static void defaults(void **state)
{
    (void)state;
    options o;
    const char *argv[] = {"pk-train", NULL};
    assert_true(parse(&o, 1, argv));
    assert_int_equal(o.steps, 300);
    assert_int_equal(o.dim % o.heads, 0);
    assert_true(o.rate > 0 && o.clip > 0 && o.decay > 0);
    assert_int_equal(o.slow_ms, 0);
    assert_null(o.checkpoint);
    assert_null(o.trace);
    assert_null(o.report);
    assert_int_equal(o.file_count, 0);
    assert_false(o.quiet || o.resume || o.help);
}

static void all_that_can_be_said(void **state)
{
    (void)state;
    options o;
    assert_true(PARSE(&o, "--steps", "7", "--batch=2", "--seq", "3", "--layers", "1", "--dim", "10",
                      "--heads", "5", "--lr", "1e-2", "a.txt", "--seed", "0", "--checkpoint", "c",
                      "--checkpoint-every", "4", "--resume", "--queue", "9", "--slow-loader=20",
                      "--slow-step", "7", "--print-every", "6", "--quiet", "--trace", "t",
                      "--report", "-", "--clip", "0", "--decay", "0.5", "--warmup", "0", "--",
                      "--b.txt"));
    assert_true(o.steps == 7 && o.batch == 2 && o.seq == 3 && o.layers == 1 && o.dim == 10);
    assert_true(o.heads == 5 && o.rate == 0.01 && o.seed == 0 && o.clip == 0 && o.decay == 0.5);
    assert_true(o.checkpoint_every == 4 && o.queue == 9 && o.slow_ms == 20 && o.slow_step == 7 &&
                o.print_every == 6);
    assert_true(o.resume && o.quiet && o.warmup == 0);
    assert_string_equal(o.checkpoint, "c");
    assert_string_equal(o.trace, "t");
    assert_string_equal(o.report, "-");
    assert_int_equal(o.file_count, 2);
    assert_string_equal(o.files[0], "a.txt");
    assert_string_equal(o.files[1], "--b.txt");
}

static void a_slow_loader_needs_no_figure(void **state)
{
    (void)state;
    options o;
    assert_true(PARSE(&o, "--slow-loader", "text"));
    assert_true(o.slow_ms == LOADER_TOO_SLOW);
    assert_int_equal(o.file_count, 1);
}

static void help_needs_nothing_else(void **state)
{
    (void)state;
    options o;
    assert_true(PARSE(&o, "--help", "--heads", "7"));
    assert_true(o.help);
}

#define REFUSE(...)                                                                                \
    do {                                                                                           \
        options refused_;                                                                          \
        lines_begin(state);                                                                        \
        bool taken_ = PARSE(&refused_, __VA_ARGS__);                                               \
        assert_int_equal(lines_end(state), 1);                                                     \
        assert_false(taken_);                                                                      \
    } while (0)

static void mistakes_get_one_line(void **state)
{
    REFUSE("--nonsense");
    REFUSE("--nonsense=3");
    REFUSE("-x");
    REFUSE("-xyz");
    REFUSE("--s", "3"); /* steps? seq? seed? */
    REFUSE("--steps");
    REFUSE("--steps", "");
    REFUSE("--steps", "0");
    REFUSE("--steps", "-3");
    REFUSE("--steps", "+3");
    REFUSE("--steps", " 3");
    REFUSE("--steps", "3x");
    REFUSE("--steps", "1e3");
    REFUSE("--steps", "99999999999999999999999999");
    REFUSE("--lr", "fast");
    REFUSE("--lr", "nan");
    REFUSE("--lr", "-1");
    REFUSE("--lr", "1e-3x");
    REFUSE("--quiet=yes");
    REFUSE("--slow-loader=0");
    REFUSE("--slow-loader=soon");
    REFUSE("--heads", "7");
    REFUSE("--heads", "0");
    REFUSE("--resume");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(all_that_can_be_said),
        cmocka_unit_test(a_slow_loader_needs_no_figure),
        cmocka_unit_test(help_needs_nothing_else),
        cmocka_unit_test_setup_teardown(mistakes_get_one_line, directory_make, directory_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
