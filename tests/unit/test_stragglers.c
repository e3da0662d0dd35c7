/* Ranks that are late, on the side of a rank: its steps in portions for who compares them, and what
 * comes of the word about all ranks. */
#include "folder.h"

#include <pk/pk.h>
#include <pk/job.h>

#include "measure/steps/portions.h"
#include "session/session.h"

/* ---- portions ---- */

static pki_portions portions;

static int none(void **state)
{
    (void)state;
    memset(&portions, 0, sizeof portions);
    return 0;
}

/* A step of 10 ns, of which 3 in region 7. */
static void step(uint64_t index)
{
    pki_portions_reach(&portions, index);
    pki_portions_add_self(&portions, 7, PK_DATA, 3);
    pki_stage_block block = {
        .index = index, .steps = 1, .time = 10, .items = 2, .no_processor = 1, .told = 1};
    pki_seats_add_seat(&block.seats, 3 + 1 + (600u << 16));
    pki_portions_add(&portions, &block);
}

static void expect_portion(uint64_t number, uint64_t steps)
{
    pki_portion p;
    assert_true(pki_portions_pop(&portions, &p));
    assert_int_equal(p.number, number);
    assert_int_equal(p.steps, steps);
    assert_int_equal(p.time, 10 * steps);
    assert_int_equal(p.items, 2 * steps);
    assert_int_equal(p.no_processor, steps);
    assert_int_equal(p.told, steps);
    assert_int_equal(pki_seats_most(&p.seats), 3 + 1 + (600u << 16));
    assert_int_equal(p.selves[0], 3 * steps);
}

static void expect_none(void)
{
    pki_portion p;
    assert_false(pki_portions_pop(&portions, &p));
}

/* Whenever a rank has begun, they end with the same steps. */
static void portions_end_with_their_number(void **state)
{
    (void)state;
    pki_portions_expect(&portions, 5);
    for (uint64_t i = 3; i < 14; i++)
        step(i);
    expect_portion(0, 2);
    expect_portion(1, 5);
    expect_none();
    step(14); /* its last */
    expect_portion(2, 5);
}

/* Steps of other kinds only have their numbers. */
static void other_kinds_end_them(void **state)
{
    (void)state;
    pki_portions_expect(&portions, 4);
    step(0);
    step(1);
    for (uint64_t i = 2; i < 9; i++)
        pki_portions_reach(&portions, i);
    expect_portion(0, 2);
    expect_none(); /* of 4 to 7 none is usual */
    step(9);
    step(20); /* some are missing */
    expect_portion(2, 1);
}

static void the_oldest_go(void **state)
{
    (void)state;
    pki_portions_expect(&portions, 1);
    for (uint64_t i = 0; i < PKI_PORTIONS_KEPT + 3; i++)
        step(i);
    for (uint64_t i = 3; i < PKI_PORTIONS_KEPT + 3; i++)
        expect_portion(i, 1);
    expect_none();
}

static void off_nothing_is_kept(void **state)
{
    (void)state;
    step(0);
    expect_none();
    pki_portions_expect(&portions, 1);
    step(1);
    pki_portions_expect(&portions, 1); /* as it was */
    expect_portion(1, 1);
    step(2);
    pki_portions_expect(&portions, 0);
    expect_none();
}

static void stages_keep_their_places(void **state)
{
    pki_portion p;
    (void)state;
    pki_portions_expect(&portions, 2);
    pki_portions_reach(&portions, 0);
    for (uint32_t id = 100; id < 100 + PKI_PORTION_OWN + 3; id++)
        pki_portions_add_self(&portions, id, id % 2 ? PK_WAIT : PK_COMPUTE, id);
    pki_portions_add(&portions, &(pki_stage_block){.steps = 1, .time = 5000});
    pki_portions_reach(&portions, 1);
    pki_portions_add_self(&portions, 101, PK_WAIT, 1);
    pki_portions_add(&portions, &(pki_stage_block){.index = 1, .steps = 1, .time = 1});
    assert_true(pki_portions_pop(&portions, &p));
    assert_int_equal(p.selves[0], 100);
    assert_int_equal(p.selves[1], 102);
    assert_int_equal(p.selves[PKI_PORTION_OWN - 1], 100 + PKI_PORTION_OWN - 1);
    uint64_t own = 0, waits = 0;
    for (uint32_t id = 100 + PKI_PORTION_OWN; id < 100 + PKI_PORTION_OWN + 3; id++)
        *(id % 2 ? &waits : &own) += id;
    assert_int_equal(p.selves[PKI_PORTION_OWN], own);
    assert_int_equal(p.selves[PKI_PORTION_WAITS], waits);
}

/* ---- of a session ---- */

static pk_region load = PK_REGION_OF(PK_DATA, "load");

static char lines[10][400];
static unsigned line_count;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user, (void)level;
    if (line_count < 10 && strstr(message, "ank"))
        snprintf(lines[line_count++], sizeof *lines, "%s", message);
}

static void make_steps(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&load);
        usleep(100);
        pk_region_end(&load);
        pk_step(3);
    }
    assert_int_equal(pk_flush(), PK_OK);
}

static void start(const char *capture)
{
    line_count = 0;
    assert_int_equal(pk_start(pk_options(.backends = "none", .capture = capture, .log = hear,
                                         .capture_path = capture ? "late-%s.json" : NULL)),
                     PK_OK);
    assert_int_equal(pk_flush(), PK_OK);
}

static void steps_are_told_in_portions(void **state)
{
    pk_job_steps_ told;
    (void)state;
    pk_job_steps_expect_(4);
    start(NULL);
    make_steps(10);
    for (uint64_t i = 0; i < 2; i++) {
        assert_true(pk_job_steps_take_(&told));
        assert_int_equal(told.first, 4 * i);
        assert_int_equal(told.steps, 4);
        assert_int_equal(told.items, 12);
        assert_int_equal(told.ended, 0);
        assert_string_equal(told.stages[0].name, "load");
        assert_int_equal(told.stages[0].kind, PK_DATA);
        assert_true(told.stages[0].self >= 400000);
        assert_true(told.time >= told.stages[0].self);
        assert_string_equal(told.stages[1].name, "");
    }
    assert_false(pk_job_steps_take_(&told));
    pk_job_steps_expect_(0);
    make_steps(10);
    assert_false(pk_job_steps_take_(&told));
    assert_int_equal(pk_stop(), PK_OK);
}

/* A portion that begins amid the warm-up is none: its other steps would be told as if it were
 * whole. */
static void warmup_is_not_told(void **state)
{
    pk_job_steps_ told;
    (void)state;
    pk_job_steps_expect_(4);
    assert_int_equal(pk_start(pk_options(.backends = "none", .warmup_steps = 6)), PK_OK);
    assert_int_equal(pk_flush(), PK_OK);
    make_steps(17);
    for (uint64_t first = 8; first < 16; first += 4) {
        assert_true(pk_job_steps_take_(&told));
        assert_int_equal(told.first, first);
        assert_int_equal(told.steps, 4);
    }
    assert_false(pk_job_steps_take_(&told));
    assert_int_equal(pk_stop(), PK_OK);
    pk_job_steps_expect_(0);
}

/* Who does not take them loses some, and nothing else. */
static void nobody_takes_them(void **state)
{
    pk_job_steps_ told;
    (void)state;
    pk_job_steps_expect_(1);
    start(NULL);
    for (int i = 0; i < 8; i++)
        make_steps(10);
    uint64_t count = 0, last = 0;
    while (pk_job_steps_take_(&told)) {
        assert_true(count == 0 || told.first > last);
        last = told.first;
        count++;
    }
    assert_true(count >= 8 && count < 80);
    assert_int_equal(pk_stop(), PK_OK);
    pk_job_steps_expect_(0);
}

static void name(pk_job_word_ *word, int32_t rank)
{
    pk_job_late_ *late = &word->late[word->count++];
    *late = (pk_job_late_){.rank = rank, .ranks = 1, .by = 0.1};
    snprintf(late->host, sizeof late->host, "node%d", rank);
    snprintf(late->text, sizeof late->text, "Rank %d (host node%d) is late.", rank, rank);
}

static void say(const pk_job_word_ *word, int32_t rank)
{
    pk_job_say_(word, rank);
    assert_int_equal(pk_flush(), PK_OK);
}

/* Once each, on rank 0 alone; in the arena for all. */
static void what_is_said(void **state)
{
    pk_job_word_ nobody = {.first = 0, .last = 9}, one = nobody, other = nobody;
    (void)state;
    name(&one, 5);
    name(&other, 6);
    start(NULL);
    const pki_stragglers *seen = &pki_the_session.arena->header->stragglers;
    say(&nobody, 0);
    assert_int_equal(line_count, 0);
    say(&one, 0);
    say(&one, 0);
    assert_int_equal(line_count, 1);
    assert_string_equal(lines[0], "Rank 5 (host node5) is late. (steps 0 to 9)");
    assert_int_equal(seen->count, 1);
    assert_int_equal(seen->last, 9);
    assert_string_equal(seen->words, "Rank 5 (host node5) is late.");
    say(&other, 0);
    assert_int_equal(line_count, 3);
    assert_string_equal(lines[1], "rank 5 is not late any more (steps 0 to 9)");
    say(&nobody, 3);
    say(&one, 3);
    assert_int_equal(line_count, 3);
    say(&nobody, 3);
    assert_int_equal(seen->count, 0);
    assert_string_equal(seen->words, "");
    assert_int_equal(pk_stop(), PK_OK);
}

/* A word with more than have room names those that have. */
static void many_are_late(void **state)
{
    pk_job_word_ many = {.last = 9}, nobody = {.last = 9};
    (void)state;
    for (int32_t rank = 0; rank < PK_JOB_LATE_; rank++)
        name(&many, 100 + rank);
    many.count = 20;
    start(NULL);
    say(&many, 0);
    assert_int_equal(line_count, PK_JOB_LATE_);
    const pki_stragglers *seen = &pki_the_session.arena->header->stragglers;
    assert_int_equal(seen->count, 20);
    assert_non_null(strstr(seen->words, "Rank 107 "));
    say(&nobody, 1);
    assert_int_equal(pk_stop(), PK_OK);
}

/* The one that is late captures itself, when it is named. */
static void who_is_late_is_captured(void **state)
{
    pk_job_word_ nobody = {.last = 9}, one = nobody;
    (void)state;
    name(&one, 5);
    start("straggler");
    make_steps(5);
    say(&one, 4);
    say(&nobody, 4);
    make_steps(40);
    say(&one, 5);
    make_steps(40);
    say(&one, 5);
    say(&nobody, 5);
    assert_int_equal(pk_stop(), PK_OK);
    char *text = NULL;
    for (uint64_t first = 0; !text && first < 60; first++) {
        char path[40];
        snprintf(path, sizeof path, "late-%d.json", (int)first);
        text = exists(path) ? read_file(path, NULL) : NULL;
    }
    assert_int_equal(count_files(), 1);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"reason\":\"straggler\""));
    assert_non_null(strstr(text, "Rank 5 (host node5) is late."));
    free(text);
}

static unsigned rounds;

static void count_round(void)
{
    __atomic_fetch_add(&rounds, 1u, __ATOMIC_RELAXED);
}

static void each_round_it_is_called(void **state)
{
    (void)state;
    pk_job_each_round_(count_round);
    start(NULL);
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 2)
        usleep(1000);
    assert_int_equal(pk_stop(), PK_OK);
    pk_job_each_round_(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(portions_end_with_their_number, none),
        cmocka_unit_test_setup(other_kinds_end_them, none),
        cmocka_unit_test_setup(the_oldest_go, none),
        cmocka_unit_test_setup(off_nothing_is_kept, none),
        cmocka_unit_test_setup(stages_keep_their_places, none),
        cmocka_unit_test(steps_are_told_in_portions),
        cmocka_unit_test(warmup_is_not_told),
        cmocka_unit_test(nobody_takes_them),
        cmocka_unit_test(what_is_said),
        cmocka_unit_test(many_are_late),
        cmocka_unit_test_setup_teardown(who_is_late_is_captured, enter_folder, leave_folder),
        cmocka_unit_test(each_round_it_is_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
