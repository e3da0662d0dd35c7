/* AdamW and the learning rate, against values worked out by hand. */
#include "test_support.h"

#include <math.h>
#include <string.h>

#include "model.h"

static const shape tiny = {.layers = 1, .dim = 4, .heads = 1, .seq = 2};
static const adamw plain_adam = {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8};

static parameters make_parameters(real value, real gradient)
{
    parameters p;
    assert_true(parameters_init(&p, &tiny));
    for (size_t i = 0; i < p.tensor_count; i++)
        for (size_t j = 0; j < p.tensors[i].count; j++) {
            p.values[p.tensors[i].offset + j] = value;
            p.gradients[p.tensors[i].offset + j] = gradient;
        }
    return p;
}

static size_t count_numbers(const parameters *p)
{
    size_t count = 0;
    for (size_t i = 0; i < p->tensor_count; i++)
        count += p->tensors[i].count;
    return count;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fmax(1, fabs(b))))
        fail_msg("%.9g is not %.9g", a, b);
}

/* Whatever the gradient's size, the first step is the learning rate, against its sign. */
static void the_first_step_is_the_learning_rate(void **state)
{
    (void)state;
    parameters p = make_parameters(1, 0.125f);
    adamw_update(&plain_adam, &p, 0.25, 0);
    assert_near((double)p.values[0], 0.75);
    parameters_finish(&p);
}

static void two_steps_as_worked_out(void **state)
{
    (void)state;
    parameters p = make_parameters(1, 2);
    adamw_update(&plain_adam, &p, 0.1, 0);
    for (size_t i = 0; i < p.count; i++)
        p.gradients[i] = p.values[i] != 0 ? -1 : 0;
    adamw_update(&plain_adam, &p, 0.1, 1);
    double mean = (0.9 * 0.2 - 0.1) / (1 - 0.81), square = (0.99 * 0.04 + 0.01) / (1 - 0.9801);
    assert_near((double)p.values[0], 0.9 - 0.1 * mean / sqrt(square));
    parameters_finish(&p);
}

static void a_long_gradient_is_clipped(void **state)
{
    (void)state;
    adamw o = plain_adam;
    parameters p = make_parameters(0, 3);
    double length = 3 * sqrt((double)count_numbers(&p));
    o.clip = 1;
    assert_near(adamw_update(&o, &p, 0.1, 0), length);
    assert_near((double)p.first_moment[0], 0.1 * 3 / length);
    o.clip = 2 * length;
    adamw_update(&o, &p, 0.1, 1);
    assert_near((double)p.first_moment[0], 0.9 * 0.1 * 3 / length + 0.1 * 3);
    parameters_finish(&p);
}

/* Matrices shrink; gains, biases and embeddings do not. */
static void only_matrices_decay(void **state)
{
    (void)state;
    adamw o = plain_adam;
    parameters p = make_parameters(1, 0);
    size_t decaying = 0;
    o.decay = 0.5;
    adamw_update(&o, &p, 0.1, 0);
    for (size_t i = 0; i < p.tensor_count; i++) {
        const tensor *t = &p.tensors[i];
        bool decays = strstr(t->name, "weight") != NULL;
        assert_near((double)p.values[t->offset + t->count - 1], decays ? 0.95 : 1);
        decaying += decays;
    }
    assert_int_equal(decaying, 5);
    parameters_finish(&p);
}

static void the_rate_rises_and_falls(void **state)
{
    (void)state;
    assert_near(learning_rate_at(2, 4, 104, 0), 0.5);
    assert_near(learning_rate_at(2, 4, 104, 3), 2);
    assert_near(learning_rate_at(2, 4, 104, 4), 2);
    assert_near(learning_rate_at(2, 4, 104, 54), 1.1);
    assert_near(learning_rate_at(2, 4, 104, 104), 0.2);
    assert_near(learning_rate_at(2, 4, 104, 999), 0.2);
    assert_near(learning_rate_at(2, 0, 100, 0), 2);
    assert_near(learning_rate_at(2, 50, 10, 9), 0.4);
}

static void weights_begin_as_described(void **state)
{
    (void)state;
    parameters p;
    double sum = 0;
    assert_true(parameters_init(&p, &tiny));
    parameters_randomise(&p, 1);
    assert_true(p.value.last.gain[3] == 1 && p.value.last.bias[3] == 0);
    assert_true(p.value.blocks[0].mlp.up.bias[15] == 0);
    for (size_t i = 0; i < 4 * VOCABULARY; i++)
        sum += pow((double)p.value.embedding.byte[i], 2);
    double spread = sqrt(sum / (4 * VOCABULARY));
    assert_true(spread > 0.09 && spread < 0.11);
    parameters_finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_step_is_the_learning_rate),
        cmocka_unit_test(two_steps_as_worked_out),
        cmocka_unit_test(a_long_gradient_is_clipped),
        cmocka_unit_test(only_matrices_decay),
        cmocka_unit_test(the_rate_rises_and_falls),
        cmocka_unit_test(weights_begin_as_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
