/* Every derivative that is written out in the layers, against the central difference of the loss.
 * Built in double precision: there a difference is exact to about nine digits, a forgotten term is
 * not. */
#include "test_support.h"

#include <math.h>
#include <string.h>

#include "layers.h"
#include "model.h"

enum { BATCH = 2, SEQ = 5, TOKENS = BATCH * SEQ };

static const shape tiny = {.layers = 2, .dim = 6, .heads = 2, .seq = SEQ};
static const uint8_t input[TOKENS] = {0, 255, 97, 97, 32, 97, 13, 7, 200, 0};
static const uint8_t target[TOKENS] = {255, 97, 97, 32, 1, 13, 7, 200, 0, 9};

/* Far from the gentle initial values: gates that are half open, attention that prefers, gains that
 * differ. */
static model *make_model(void)
{
    model *m = model_create(&tiny, BATCH);
    random_source source = {.state = 3};
    assert_non_null(m);
    for (size_t i = 0; i < m->parameters.tensor_count; i++) {
        const tensor *t = &m->parameters.tensors[i];
        for (size_t j = 0; j < t->count; j++)
            m->parameters.values[t->offset + j] = t->center + (real)(0.5 * random_normal(&source));
    }
    return m;
}

static double difference(model *m, size_t index)
{
    real *value = &m->parameters.values[index], kept = *value, h = (real)1e-5;
    *value = kept + h;
    double above = model_forward(m, input, target);
    *value = kept - h;
    double below = model_forward(m, input, target);
    *value = kept;
    return (above - below) / (2 * (double)h);
}

static void check_tensor(model *m, const tensor *t)
{
    double largest = 0;
    for (size_t i = 0; i < t->count; i++) {
        double wanted = difference(m, t->offset + i),
               got = (double)m->parameters.gradients[t->offset + i];
        if (!(fabs(got - wanted) <= 1e-8 + 1e-6 * fabs(wanted)))
            fail_msg("%s[%zu]: gradient %.12g, but the loss changes by %.12g", t->name, i, got,
                     wanted);
        largest = fmax(largest, fabs(got));
    }
    if (largest < 1e-4)
        fail_msg("%s: all gradients are 0, so nothing was checked", t->name);
}

static void gradients_are_the_slope_of_the_loss(void **state)
{
    (void)state;
    model *m = make_model();
    model_forward(m, input, target);
    model_backward(m, input);
    assert_int_equal(m->parameters.tensor_count, 5 + 12 * tiny.layers);
    for (size_t i = 0; i < m->parameters.tensor_count; i++)
        check_tensor(m, &m->parameters.tensors[i]);
    model_destroy(m);
}

static void gradients_add_up(void **state)
{
    (void)state;
    model *m = make_model();
    real once[64];
    const linear *head = &m->parameters.gradient.head;
    model_forward(m, input, target);
    model_backward(m, input);
    memcpy(once, head->weight, sizeof(once));
    model_forward(m, input, target);
    model_backward(m, input);
    for (size_t i = 0; i < 64; i++)
        assert_true(fabs((double)(head->weight[i] - 2 * once[i])) <= 1e-12);
    parameters_clear_gradients(&m->parameters);
    for (size_t i = 0; i < m->parameters.count; i++)
        assert_true(m->parameters.gradients[i] == 0);
    model_destroy(m);
}

/* The gradient of a token's logits is its prediction: it may depend on what comes before, not
 * after. */
static void a_token_does_not_see_the_next(void **state)
{
    (void)state;
    model *m = make_model();
    uint8_t other[TOKENS];
    real before[TOKENS * VOCABULARY];
    memcpy(other, input, sizeof(other));
    other[3]++;
    model_forward(m, input, target);
    memcpy(before, m->logits, sizeof(before));
    model_forward(m, other, target);
    for (size_t t = 0; t < TOKENS; t++) {
        bool same = memcmp(before + t * VOCABULARY, m->logits + t * VOCABULARY,
                           VOCABULARY * sizeof(real)) == 0;
        assert_int_equal(same, t < 3 || t >= SEQ);
    }
    model_destroy(m);
}

static void loss_of_a_guess_is_the_logarithm_of_the_choices(void **state)
{
    (void)state;
    model *m = make_model();
    const linear *head = &m->parameters.value.head;
    memset(head->weight, 0, head->in * head->out * sizeof(real));
    assert_true(fabs(model_forward(m, input, target) - log(256)) < 1e-12);
    model_destroy(m);
}

static real random_real(random_source *source)
{
    return (real)random_normal(source);
}

/* Sizes on both sides of every block edge. */
static void check_product(extent e, bool a_transposed, bool b_transposed)
{
    enum { MOST = 300 * 20 };
    static real a[MOST], b[MOST], c[MOST], wanted[MOST];
    random_source source = {.state = e.m + 31 * e.n + 977 * e.k};
    size_t a_row = a_transposed ? e.m : e.k, b_row = b_transposed ? e.k : e.n, c_row = e.n + 3;
    matrix left = a_transposed ? transposed(a, a_row) : plain(a, a_row);
    matrix right = b_transposed ? transposed(b, b_row) : plain(b, b_row);
    static pk_region charge = PK_REGION("test");
    for (size_t i = 0; i < MOST; i++) {
        a[i] = random_real(&source);
        b[i] = random_real(&source);
        c[i] = wanted[i] = random_real(&source);
    }
    for (size_t i = 0; i < e.m; i++)
        for (size_t j = 0; j < e.n; j++)
            for (size_t l = 0; l < e.k; l++)
                wanted[i * c_row + j] +=
                    a[i * left.row + l * left.column] * b[l * right.row + j * right.column];
    matmul_add(&charge, e, left, right, c, c_row);
    for (size_t i = 0; i < MOST; i++)
        assert_true(fabs((double)(c[i] - wanted[i])) < 1e-10);
}

static void products_are_right_at_every_edge(void **state)
{
    (void)state;
    static const extent extents[] = {{1, 1, 1},   {3, 7, 5},     {4, 8, 2},   {5, 9, 3},
                                     {8, 16, 20}, {13, 17, 257}, {2, 3, 300}, {17, 13, 256}};
    for (size_t i = 0; i < sizeof(extents) / sizeof(*extents); i++)
        for (int form = 0; form < 4; form++)
            check_product(extents[i], form & 1, form & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right_at_every_edge),
        cmocka_unit_test(loss_of_a_guess_is_the_logarithm_of_the_choices),
        cmocka_unit_test(a_token_does_not_see_the_next),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(gradients_are_the_slope_of_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
