/* Calls by path, from slices in the order of their ends. */
#include "rebuild/rebuild.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct text {
    char all[4096];
} text;

static bool write_node(void *user, const tree_node *n, uint32_t depth)
{
    text *t = user;
    size_t used = strlen(t->all);
    snprintf(t->all + used, sizeof t->all - used, "%*s%c %u %u %u\n", (int)depth, "", (char)n->name,
             (unsigned)n->calls, (unsigned)n->time, (unsigned)n->self);
    return true;
}

static void check(tree *t, const char *wanted)
{
    text found = {""};
    tree_walk(t, tree_finish(t), write_node, &found);
    assert_string_equal(found.all, wanted);
    tree_free(t);
}

static void of_one_name_in_one_path_is_one_node(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 0, 'l', 10, 20);
    tree_call(&t, 0, 'l', 25, 30);
    tree_call(&t, 0, 'i', 5, 40);
    tree_call(&t, 0, 'l', 50, 60);
    tree_call(&t, 0, 'o', 0, 100);
    tree_call(&t, 0, 'l', 110, 113);
    tree_call(&t, 0, 'o', 100, 120);
    check(&t, "o 2 120 72\n i 1 35 20\n  l 2 15 15\n l 2 13 13\n");
}

static void recursion_is_a_path(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 0, 'r', 2, 8);
    tree_call(&t, 0, 'r', 1, 9);
    tree_call(&t, 0, 'r', 0, 10);
    tree_call(&t, 0, 'r', 21, 25);
    tree_call(&t, 0, 'r', 20, 30);
    check(&t, "r 2 20 8\n r 2 12 6\n  r 1 6 6\n");
}

static void threads_are_merged_and_do_not_nest(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 1, 'b', 2, 8);
    tree_call(&t, 0, 'a', 0, 10);
    tree_call(&t, 1, 'a', 20, 50);
    tree_call(&t, 0, 'b', 21, 30);
    check(&t, "a 2 40 40\nb 2 15 15\n");
}

static void of_the_same_times_the_later_is_the_outer(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 0, 'i', 5, 5);
    tree_call(&t, 0, 'm', 5, 5);
    tree_call(&t, 0, 'o', 5, 9);
    check(&t, "o 1 4 4\n m 1 0 0\n  i 1 0 0\n");
}

static void a_cleared_tree_is_an_empty_one(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 0, 'x', 0, 7);
    tree_clear(&t);
    tree_call(&t, 0, 'y', 8, 9);
    check(&t, "y 1 1 1\n");
}

/* ---- against a tree made from the outside in ---- */

#define DEEPEST 6

typedef struct made {
    uint64_t calls[4096], time[4096], self[4096]; /* by path: base 4, from 1 */
    uint64_t now;
    unsigned seed;
} made;

static unsigned draw(made *m, unsigned below)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (m->seed >> 16) % below;
}

static uint64_t make_call(made *m, tree *t, uint32_t path, unsigned depth)
{
    uint64_t start = m->now, inside = 0;
    m->now += draw(m, 4);
    for (unsigned n = depth < DEEPEST ? draw(m, 4) : 0; n; n--) {
        inside += make_call(m, t, 4 * path + draw(m, 3) + 1, depth + 1);
        m->now += draw(m, 3);
    }
    m->now++;
    uint64_t took = m->now - start;
    tree_call(t, 0, (path - 1) % 4, start, m->now);
    m->calls[path]++;
    m->time[path] += took;
    m->self[path] += took - inside;
    return took;
}

typedef struct comparison {
    const made *with;
    uint32_t path[DEEPEST + 1];
    size_t seen;
} comparison;

static bool compare(void *user, const tree_node *n, uint32_t depth)
{
    comparison *c = user;
    uint32_t path = 4 * (depth ? c->path[depth - 1] : 0) + n->name + 1;
    c->path[depth] = path;
    assert_int_equal(n->calls, c->with->calls[path]);
    assert_int_equal(n->time, c->with->time[path]);
    assert_int_equal(n->self, c->with->self[path]);
    c->seen++;
    return true;
}

static void whatever_nests_is_exact(void **state)
{
    made *m = calloc(1, sizeof *m);
    tree t = {0};
    (void)state;
    m->seed = 7;
    for (unsigned i = 0; i < 3000; i++)
        make_call(m, &t, draw(m, 3) + 1, 3); /* paths of up to 4 */
    comparison c = {.with = m};
    tree_walk(&t, tree_finish(&t), compare, &c);
    size_t paths = 0;
    for (size_t i = 0; i < 4096; i++)
        paths += m->calls[i] > 0;
    assert_int_equal(c.seen, paths);
    assert_true(paths > 100);
    tree_free(&t);
    free(m);
}

/* ---- bounds ---- */

static bool add_up(void *user, const tree_node *n, uint32_t depth)
{
    uint64_t *sums = user;
    sums[0] += n->self;
    sums[1] += n->calls;
    sums[2] = depth > sums[2] ? depth : sums[2];
    return true;
}

static void very_deep_calls_count_as_their_parents_own(void **state)
{
    uint64_t sums[3] = {0, 0, 0};
    tree t = {0};
    (void)state;
    for (uint64_t i = 0; i < 5000; i++)
        tree_call(&t, 0, 'd', 5000 - i, 6000 + i);
    tree_walk(&t, tree_finish(&t), add_up, sums);
    assert_int_equal(sums[0], 6000 + 4999 - 1);
    assert_in_range(sums[2], 1, TREE_DEPTH_MOST);
    tree_free(&t);
}

static void many_that_wait_lose_nothing(void **state)
{
    uint64_t sums[3] = {0, 0, 0};
    tree t = {0};
    (void)state;
    for (uint64_t i = 0; i < 300000; i++)
        tree_call(&t, 0, (uint32_t)('a' + i % 3), 10 * i, 10 * i + 5);
    tree_call(&t, 0, 'o', 0, 3000000);
    assert_true(t.room < 200000);
    tree_walk(&t, tree_finish(&t), add_up, sums);
    assert_int_equal(sums[0], 3000000);
    assert_int_equal(sums[1], 300001);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_name_in_one_path_is_one_node),
        cmocka_unit_test(recursion_is_a_path),
        cmocka_unit_test(threads_are_merged_and_do_not_nest),
        cmocka_unit_test(of_the_same_times_the_later_is_the_outer),
        cmocka_unit_test(a_cleared_tree_is_an_empty_one),
        cmocka_unit_test(whatever_nests_is_exact),
        cmocka_unit_test(very_deep_calls_count_as_their_parents_own),
        cmocka_unit_test(many_that_wait_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
