/* Steps found in what a program repeats: programs whose number of steps is known. */
#include "attach/repeats.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A program runs by itself and says what it does: a symbol, and how long until the next. */
typedef struct program {
    pki_repeats *finder;
    int64_t ns;
    uint64_t steps, told; /* that it made, that were found while it ran */
    uint64_t random;
    uint32_t loop; /* the one that is known */
    uint32_t met;  /* collectives of all ranks */
    int64_t from;  /* when the first step begins */
} program;

enum { US = 1000 };

static void tells(program *p, uint32_t region, uint64_t site, uint64_t with, int64_t us)
{
    bool turn = pki_repeats_feed(p->finder, region, site, with, p->ns, p->met);
    uint32_t loop = pki_repeats_told(p->finder, 0).number;
    p->told = loop == p->loop ? p->told + turn : 0; /* before it was known is before */
    p->loop = loop;
    p->ns += us * US;
}

static void does(program *p, uint32_t region, uint64_t site, int64_t us)
{
    tells(p, region, site, 0, us);
}

static uint64_t chance(program *p, uint64_t of)
{
    p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (p->random >> 33) % of;
}

static void begin(program *p)
{
    *p = (program){.finder = pki_repeats_new(), .random = 4711};
    assert_non_null(p->finder);
}

/* All steps within a percent or one, and of them told what came after the loop was known. */
static void expect_steps(program *p, unsigned most_before)
{
    pki_repeats_loop loop = pki_repeats_told(p->finder, p->ns);
    uint64_t off = p->steps / 100 + 1;
    if (loop.turns + off < p->steps || loop.turns > p->steps + off)
        fail_msg("%llu turns of %llu steps, anchor %u, %u %% alike", (unsigned long long)loop.turns,
                 (unsigned long long)p->steps, loop.region, loop.alike);
    assert_int_equal(loop.turns, loop.before + p->told);
    if (loop.before > most_before)
        fail_msg("loop %u, known after %llu turns", loop.number, (unsigned long long)loop.before);
    pki_repeats_free(p->finder);
}

/* The mean of all turns: those before the loop was known, too. */
static void expect_period(program *p)
{
    pki_repeats_loop loop = pki_repeats_told(p->finder, p->ns);
    double own = (double)(p->ns - p->from) / (double)p->steps;
    double mean = (double)(loop.ended - loop.began) / (double)loop.turns;
    if (!(mean > own * 0.99 && mean < own * 1.01))
        fail_msg("%g ns a turn, %g a step", mean, own);
}

static void expect_none(program *p)
{
    pki_repeats_loop loop = pki_repeats_told(p->finder, p->ns);
    if (loop.turns)
        fail_msg("%llu turns of %u", (unsigned long long)loop.turns, loop.region);
    assert_int_equal(p->told, 0);
    pki_repeats_free(p->finder);
}

/* ---- molecular dynamics ---- */

enum { IRECV = 1, SEND, WAIT, SENDRECV, ALLREDUCE, BCAST };
enum { FORWARD = 100, REVERSE, EXCHANGE, BORDERS, THERMO, CHECK, SETUP };

static void swaps(program *p, uint64_t where, int times)
{
    for (int i = 0; i < times; i++) {
        does(p, IRECV, where, 2);
        does(p, SEND, where, 5);
        does(p, WAIT, where, 10);
    }
}

static void neighbours(program *p)
{
    for (int i = 0; i < 3; i++) {
        does(p, SENDRECV, EXCHANGE, 5);
        does(p, IRECV, EXCHANGE, 5);
        does(p, SEND, EXCHANGE, 5);
        does(p, WAIT, EXCHANGE, 5);
    }
    for (int i = 0; i < 6; i++) {
        does(p, SENDRECV, BORDERS, 5);
        does(p, SEND, BORDERS, 5);
    }
}

/* Forces go back to neighbours in each step; positions come from them in all but those in which the
 * lists of neighbours are made anew. */
static void molecules(program *p, unsigned steps, unsigned lists, unsigned thermo, bool checked)
{
    begin(p);
    for (int i = 0; i < 30; i++)
        does(p, BCAST, SETUP + (uint64_t)i % 7, 3);
    neighbours(p);
    swaps(p, REVERSE, 6);
    unsigned next = lists;
    p->from = p->ns;
    for (unsigned i = 1; i <= steps; i++, p->steps++) {
        if (checked)
            does(p, ALLREDUCE, CHECK, 5);
        if (i == next) {
            neighbours(p);
            p->ns += 400 * US;
            next += checked ? 8 + (unsigned)chance(p, 9) : lists;
        } else {
            swaps(p, FORWARD, 6);
        }
        p->ns += 1000 * US;
        swaps(p, REVERSE, 6);
        if (i % thermo == 0)
            for (int k = 0; k < 4; k++)
                does(p, ALLREDUCE, THERMO + (uint64_t)k * 1000, 5);
    }
}

static void md_with_lists_and_output(void **state)
{
    (void)state;
    program p;
    molecules(&p, 500, 20, 100, false);
    expect_period(&p);
    expect_steps(&p, 80);
    molecules(&p, 5000, 20, 10, false);
    expect_steps(&p, 80);
    molecules(&p, 2000, 13, 50, true);
    expect_steps(&p, 80);
}

/* ---- solvers ---- */

/* Each step: assemble, and iterate until it converges. */
static void solver(program *p, unsigned steps, unsigned least, unsigned more, int64_t assemble)
{
    begin(p);
    for (unsigned i = 0; i < steps; i++, p->steps++) {
        does(p, ALLREDUCE, 1, assemble);
        swaps(p, 2, 2);
        for (unsigned k = least + (unsigned)chance(p, more); k; k--) {
            swaps(p, 3, 4);
            does(p, ALLREDUCE, 4, 20);
            does(p, ALLREDUCE, 5, 20);
        }
        does(p, ALLREDUCE, 6, 100);
    }
}

static void iterations_that_vary(void **state)
{
    (void)state;
    program p;
    solver(&p, 300, 10, 5, 500);
    expect_period(&p);
    expect_steps(&p, 80);
    solver(&p, 100, 20, 20, 100);
    expect_steps(&p, 80);
}

static void stages_of_a_step(void **state)
{
    (void)state;
    program p;
    for (uint32_t stages = 1; stages <= 4; stages++) {
        begin(&p);
        for (unsigned i = 0; i < 400; i++, p.steps++) {
            for (uint32_t k = 0; k < stages; k++) {
                swaps(&p, 1, 4);
                does(&p, 20, 0, 300);
            }
            does(&p, ALLREDUCE, 2, 10);
            if (i % 10 == 9)
                does(&p, 30, 0, 100);
        }
        expect_steps(&p, 90);
    }
}

/* Three exchanges a step, with all neighbours, with all, and with some, and one sum. */
static void exchanges_of_one_function(void **state)
{
    (void)state;
    program p;
    static const uint64_t with[] = {7, 7, 3};
    begin(&p);
    for (unsigned i = 0; i < 400; i++, p.steps++) {
        does(&p, ALLREDUCE, 1, 20);
        for (int k = 0; k < 3; k++) {
            for (uint64_t n = 0; n < with[k]; n++)
                does(&p, IRECV, n, 2);
            for (uint64_t n = 0; n < with[k]; n++)
                does(&p, SEND, n, 5);
            for (uint64_t n = 0; n < with[k]; n++)
                does(&p, WAIT, 10 + n + (k == 1 ? 20 : 0), 10);
            p.ns += 300 * US;
        }
    }
    expect_steps(&p, 80);
}

/* A sum for the thermostat in each step, and the same one more for the output of every 50th. */
static void a_sum_for_output_too(void **state)
{
    (void)state;
    program p;
    begin(&p);
    neighbours(&p);
    does(&p, ALLREDUCE, 1, 5);
    unsigned next = 5;
    for (unsigned i = 1; i <= 2000; i++, p.steps++) {
        if (i % 5 == 0)
            does(&p, ALLREDUCE, CHECK, 5);
        if (i == next) {
            neighbours(&p);
            next += 5 * (1 + (unsigned)chance(&p, 3));
        } else {
            swaps(&p, FORWARD, 6);
        }
        p.ns += 1000 * US;
        swaps(&p, REVERSE, 6);
        does(&p, ALLREDUCE, 1, 5);
        if (i % 50 == 0) {
            does(&p, ALLREDUCE, 1, 5);
            does(&p, ALLREDUCE, THERMO, 5);
        }
    }
    expect_steps(&p, 160);
}

/* Many small parts a step, some of them in a loop: that one turns often before there are ten steps.
 */
static void many_parts_of_a_step(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 300; i++, p.steps++) {
        for (uint64_t k = 0; k < 12; k++)
            does(&p, 90, k, 20);
        for (int part = 0; part < 11; part++)
            for (uint64_t k = 0; k < 12; k++)
                does(&p, 91, k, 10);
        for (uint64_t k = 0; k < 6; k++)
            does(&p, 92, k, 20);
    }
    assert_int_equal(pki_repeats_told(p.finder, 0).number, 1); /* no other was believed before */
    expect_steps(&p, 80);
}

/* Fifteen times the same function of a library a step, with others between: as training has it. */
static void one_function_in_all_parts(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 300; i++, p.steps++)
        for (const char *part = "ABAAAAACDAEAAEBAAAABAA"; *part; part++)
            does(&p, (uint32_t)*part, 0, 50);
    expect_steps(&p, 100);
}

/* Of one function for halos and one for sums, eleven and three times a step. */
static void a_sum_right_after_another(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 500; i++, p.steps++)
        for (const char *part = "ABCABCABCABCABCABCABCABCABCADBCADDBC"; *part; part++)
            does(&p, (uint32_t)*part, 0, 20);
    expect_steps(&p, 120);
}

/* 35 turns of an inner loop in each step, of which some do more. */
static void as_many_as_one_would_write(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 150; i++, p.steps++) {
        for (uint64_t k = 0; k < 28; k++)
            does(&p, 90, k, 20);
        for (int part = 0; part < 35; part++) {
            for (uint64_t k = 0; k < 10; k++)
                does(&p, 91, k, 10);
            if (part % 3 == 1 && part < 20)
                does(&p, 93, 0, 10);
        }
    }
    expect_steps(&p, 80);
}

/* Two loops over cells in each step and a third, as long, in every 50th, beside other programs. */
static void output_on_a_busy_machine(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 1000; i++, p.steps++) {
        does(&p, 95, 0, 80 + (int64_t)(chance(&p, 5) == 0) * 4000);
        if (i % 50 == 0)
            does(&p, 95, 1, 80);
        does(&p, 95, 2, 80 + (int64_t)(chance(&p, 5) == 0) * 4000);
    }
    expect_steps(&p, 600);
}

/* Ten messages a step, always, and the computation after them. */
static void messages_in_a_row(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 1000; i++, p.steps++) {
        for (int k = 0; k < 10; k++)
            does(&p, SEND, 1, 5);
        for (int k = 0; k < 10; k++)
            does(&p, WAIT, 1, 5);
        p.ns += 2000 * US;
    }
    expect_steps(&p, 80);
}

/* ---- one function for all messages ---- */

/* It exchanges with those neighbours, one after the other; peer and tag as one number. */
static void faces(program *p, const char *neighbours)
{
    for (; *neighbours; neighbours++)
        tells(p, SENDRECV, EXCHANGE, (uint64_t)*neighbours, 20);
}

/* As CoMD: six faces a step; a sum, always at the same place, each tenth. Where the domain ends
 * there are fewer of them, and of two ranks one is neighbour on both sides. */
static void six_neighbours(void **state)
{
    (void)state;
    static const char *const ranks[] = {"abcdef", "aabbbb", "aabbcc", "abc", "ab", "bacdd"};
    program p;
    for (size_t rank = 0; rank < sizeof ranks / sizeof *ranks; rank++) {
        begin(&p);
        for (uint64_t k = 0; k < 9; k++)
            does(&p, BCAST, SETUP + k, 5);
        for (unsigned i = 0; i < 500; i++, p.steps++) {
            p.ns += 2000 * US;
            faces(&p, ranks[rank]);
            p.ns += 3000 * US;
            if (i % 10 == 9)
                for (int k = 0; k < 2; k++)
                    does(&p, ALLREDUCE, THERMO, 5);
        }
        expect_steps(&p, 480);
    }
}

/* As a script of mpi4py, whose calls are all from one place: two exchanges a step, with the same
 * rank even, and a sum in each 25th. */
static void calls_of_a_script(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 1500; i++, p.steps++) {
        faces(&p, "ab");
        p.ns += 500 * US;
        if (i % 25 == 0)
            does(&p, ALLREDUCE, THERMO, 30);
    }
    expect_steps(&p, 600);
}

/* Each message has a tag of its own; or a peer by chance. */
static void whom_tells_nothing(void **state)
{
    (void)state;
    program p;
    for (int tags = 0; tags < 2; tags++) {
        begin(&p);
        for (unsigned i = 0; i < 800; i++, p.steps++) {
            for (uint64_t k = 0; k < 6; k++)
                tells(&p, SEND, EXCHANGE, tags ? 1 + i * 6 + k : 1 + chance(&p, 8), 5);
            for (int k = 0; k < 6; k++)
                does(&p, WAIT, EXCHANGE, 10);
            does(&p, ALLREDUCE, CHECK, 400);
        }
        expect_steps(&p, 100);
    }
}

/* ---- training ---- */

static void batches(program *p, unsigned micro)
{
    for (unsigned k = 0; k < micro; k++) {
        does(p, 40, 0, 300); /* load, forward, backward */
        for (int layer = 0; layer < 6; layer++)
            does(p, 41, 0, 500);
        for (int layer = 0; layer < 6; layer++)
            does(p, 42, 0, 900);
    }
    for (int bucket = 0; bucket < 3; bucket++)
        does(p, ALLREDUCE, 0, 100);
    does(p, 43, 0, 400); /* optimizer */
    p->steps++;
}

static void training(void **state)
{
    (void)state;
    static const unsigned micro[] = {1, 2, 4, 8};
    program p;
    for (int i = 0; i < 4; i++) {
        begin(&p);
        for (unsigned k = 0; k < 300; k++) {
            batches(&p, micro[i]);
            if (k % 50 == 49)
                does(&p, 44, 0, 5000); /* a checkpoint */
        }
        expect_steps(&p, 80);
    }
}

/* Twelve epochs of 60 steps, each with a validation. */
static void epochs(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned epoch = 0; epoch < 12; epoch++) {
        for (unsigned k = 0; k < 60; k++)
            batches(&p, 1);
        for (unsigned k = 0; k < 20; k++)
            for (int layer = 0; layer < 6; layer++)
                does(&p, 45, 0, 500);
    }
    expect_steps(&p, 80);
}

/* Ranges of steps, with ranges in them. */
static void one_symbol_and_few(void **state)
{
    (void)state;
    program p;
    for (uint32_t symbols = 1; symbols <= 3; symbols++) {
        begin(&p);
        for (unsigned i = 0; i < 500; i++, p.steps++)
            for (uint32_t s = 0; s < symbols; s++)
                does(&p, 50 + s, 0, 100);
        expect_steps(&p, symbols == 3 ? 350 : 500);
    }
}

/* ---- what changes ---- */

static void another_loop_comes(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 300; i++) {
        does(&p, 60, 0, 50);
        does(&p, 61, 0, 50);
    }
    p.told = p.steps = 0;
    for (unsigned i = 0; i < 2000; i++, p.steps++) {
        does(&p, 62, 0, 50);
        swaps(&p, 63, 3);
        if (i == 50)
            p.told = 0; /* the loop before was still believed */
    }
    pki_repeats_loop loop = pki_repeats_told(p.finder, p.ns);
    assert_in_range(loop.turns, 1880, 2000);
    pki_repeats_free(p.finder);
}

/* A solver's log at the end: much is summed up, and it takes no time. */
static void a_log_at_the_end_is_no_loop(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (p.steps = 0; p.steps < 562; p.steps++) {
        neighbours(&p);
        does(&p, ALLREDUCE, 0x10, 2000);
    }
    for (int i = 0; i < 1000; i++) {
        does(&p, ALLREDUCE, 0x20, 15);
        does(&p, ALLREDUCE, 0x21, 15);
    }
    expect_steps(&p, 562);
}

/* Messages are finished in the order in which they come. */
static void any_order(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned i = 0; i < 1000; i++, p.steps++) {
        for (int k = 0; k < 4; k++)
            does(&p, IRECV, 1, 2);
        for (int k = 0; k < 4; k++)
            does(&p, WAIT, 10 + chance(&p, 2), 5);
        does(&p, ALLREDUCE, 1, 400);
        if (chance(&p, 7) == 0)
            does(&p, 70, 0, 100);
    }
    expect_steps(&p, 120);
}

/* ---- ranks ---- */

/* What two ranks do in a step: the second one has more messages, and as many sums as the first. */
static void step_of(program *p, int rank, unsigned sums, bool together)
{
    does(p, SENDRECV, 1, 5);
    for (int k = 0; k < 3 * rank; k++)
        does(p, SEND, 2, 5);
    for (unsigned k = 0; k < sums; k++) {
        does(p, ALLREDUCE, 3, 50);
        p->met += together;
    }
    does(p, BCAST, 4, 50);
    p->met += together;
}

/* One of them has had some steps before, not with all ranks, and sees the loop at another one. */
static void number_alike(unsigned least, unsigned more)
{
    program ranks[2];
    uint64_t both = 0;
    begin(&ranks[0]);
    begin(&ranks[1]);
    for (int i = 0; i < 7; i++)
        step_of(&ranks[1], 1, least, false);
    for (unsigned i = 0; i < 700; i++) {
        unsigned sums = least + (unsigned)chance(ranks, more);
        step_of(&ranks[0], 0, sums, true);
        step_of(&ranks[1], 1, sums, true);
        pki_repeats_loop a = pki_repeats_told(ranks[0].finder, 0);
        pki_repeats_loop b = pki_repeats_told(ranks[1].finder, 0);
        if (!a.number || !b.number)
            continue;
        both++;
        assert_int_equal(a.turns - a.alone, b.turns - b.alone);
        assert_int_not_equal(a.before - a.alone, b.before - b.alone);
        assert_int_equal(b.alone, a.alone + 7);
    }
    assert_true(both > 100);
    pki_repeats_free(ranks[0].finder);
    pki_repeats_free(ranks[1].finder);
}

static void ranks_number_turns_alike(void **state)
{
    (void)state;
    number_alike(1, 1);
    number_alike(2, 1);
    number_alike(3, 4);
}

/* ---- where there is none ---- */

static void chance_is_no_loop(void **state)
{
    (void)state;
    static const uint64_t symbols[] = {2, 3, 5, 10, 50, 400};
    program p;
    for (int i = 0; i < 6; i++) {
        begin(&p);
        for (unsigned k = 0; k < 40000; k++)
            does(&p, 80 + (uint32_t)chance(&p, symbols[i]), 0, 10);
        expect_none(&p);
    }
}

/* A message each 2 us, and whether one has come: no step is so short. */
static void polling_is_no_loop(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (unsigned k = 0; k < 20000; k++) {
        does(&p, SEND, 0, 1);
        does(&p, WAIT, 0, 1);
    }
    expect_none(&p);
}

/* Lines of an input, of which each rank is told; what they ask for takes long, and no call. */
static void lines_of_an_input_are_no_loop(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (int line = 0; line < 40; line++) {
        does(&p, BCAST, 1, 2);
        does(&p, BCAST, 2, line % 7 == 3 ? 3000 : 40);
    }
    p.ns += 2000000 * US;
    does(&p, BCAST, 1, 2);
    does(&p, BCAST, 2, 40);
    expect_none(&p);
}

static void a_line_of_different_ones_is_no_loop(void **state)
{
    (void)state;
    program p;
    begin(&p);
    for (uint32_t k = 0; k < 3000; k++)
        does(&p, k, 0, 10);
    expect_none(&p);
    begin(&p);
    for (uint32_t k = 0; k < 200; k++)
        does(&p, k, 0, 10);
    expect_none(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(md_with_lists_and_output),
        cmocka_unit_test(iterations_that_vary),
        cmocka_unit_test(stages_of_a_step),
        cmocka_unit_test(exchanges_of_one_function),
        cmocka_unit_test(a_sum_for_output_too),
        cmocka_unit_test(many_parts_of_a_step),
        cmocka_unit_test(one_function_in_all_parts),
        cmocka_unit_test(a_sum_right_after_another),
        cmocka_unit_test(as_many_as_one_would_write),
        cmocka_unit_test(output_on_a_busy_machine),
        cmocka_unit_test(messages_in_a_row),
        cmocka_unit_test(six_neighbours),
        cmocka_unit_test(calls_of_a_script),
        cmocka_unit_test(whom_tells_nothing),
        cmocka_unit_test(training),
        cmocka_unit_test(epochs),
        cmocka_unit_test(one_symbol_and_few),
        cmocka_unit_test(another_loop_comes),
        cmocka_unit_test(a_log_at_the_end_is_no_loop),
        cmocka_unit_test(any_order),
        cmocka_unit_test(ranks_number_turns_alike),
        cmocka_unit_test(chance_is_no_loop),
        cmocka_unit_test(polling_is_no_loop),
        cmocka_unit_test(lines_of_an_input_are_no_loop),
        cmocka_unit_test(a_line_of_different_ones_is_no_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
