/* Notes on calls: in the trace they are arguments of their call and of no other, in a capture, too.
 */
#include <glob.h>
#include <pthread.h>

#include "captures.h"

static pk_region shape = PK_REGION("shape"), file = PK_REGION("file"), other = PK_REGION("other");

/* The n-th event of that name. */
static const json_t *call(const json_t *document, const char *name, size_t n)
{
    size_t i;
    json_t *e, *events = member(document, "traceEvents");
    json_array_foreach(events, i, e) if (!strcmp(json_string_value(member(e, "name")), name) &&
                                         !strcmp(json_string_value(member(e, "ph")), "X") &&
                                         n-- == 0) return e;
    fail_msg("no such call of %s", name);
    return NULL;
}

static void expect_number(const json_t *document, const char *name, size_t n, const char *key,
                          int64_t wanted)
{
    assert_int_equal(json_integer_value(member(member(call(document, name, n), "args"), key)),
                     wanted);
}

static void expect_words(const json_t *document, const char *name, size_t n, const char *key,
                         const char *wanted)
{
    assert_string_equal(json_string_value(member(member(call(document, name, n), "args"), key)),
                        wanted);
}

static json_t *end_and_load(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    return load_document("run.json");
}

static void of_their_call_alone(void **state)
{
    (void)state;
    begin(.trace_path = "run.json");
    for (int i = 0; i < 3; i++) {
        pk_region_begin(&work);
        pk_region_note(&work, &shape, 100 + i);
        pk_region_begin(&inner);
        if (i == 1)
            pk_region_note_text(&inner, &file, "train-00017.bin");
        pk_region_note(&work, &other, INT64_MIN); /* amid a call inside */
        pk_region_end(&inner);
        pk_region_end(&work);
        pk_flush(); /* what comes before its call may come in another piece */
    }
    pk_region_begin(&work);
    pk_region_note(&work, &shape, 7);
    assert_int_equal(pk_flush(), PK_OK);
    pk_region_end(&work);
    json_t *d = end_and_load();
    for (int i = 0; i < 3; i++) {
        expect_number(d, "work", (size_t)i, "shape", 100 + i);
        expect_number(d, "work", (size_t)i, "other", INT64_MIN);
        assert_int_equal(json_object_size(member(call(d, "work", (size_t)i), "args")), 2);
    }
    expect_number(d, "work", 3, "shape", 7);
    expect_words(d, "inner", 1, "file", "train-00017.bin");
    assert_null(json_object_get(call(d, "inner", 0), "args"));
    assert_null(json_object_get(call(d, "inner", 2), "args"));
    json_decref(d);
}

static void texts(void **state)
{
    static const struct {
        const char *given, *stands;
    } cases[] = {
        {"", ""},
        {NULL, ""},
        {"a \"quoted\"\n\tpath\\", "a \"quoted\"\n\tpath\\"},
        {"12345678901234567890123456789012", "12345678901234567890123456789012"},
        {"123456789012345678901234567890123", "12345678901234567890123456789012"},
        {"1234567890123456789012345678901\xC3\xA4", "1234567890123456789012345678901"},
        {"123456789012345678901234567890\xC3\xA4", "123456789012345678901234567890\xC3\xA4"},
        {"\xFF", "\xEF\xBF\xBD"}};
    (void)state;
    begin(.trace_path = "run.json");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pk_region_begin(&work);
        pk_region_note_text(&work, &file, cases[i].given);
        pk_region_end(&work);
    }
    json_t *d = end_and_load();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_words(d, "work", i, "file", cases[i].stands);
    json_decref(d);
}

/* Eight are kept, the last ones; of what is not open, or not on, none. */
static void too_many_and_none(void **state)
{
    pk_region keys[12];
    char names[12][8];
    (void)state;
    pk_region_note(&work, &shape, 1);
    begin(.trace_path = "run.json");
    pk_region_note(&work, &shape, 2);
    pk_region_begin(&work);
    pk_region_note(&inner, &shape, 3);
    for (int i = 0; i < 12; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        keys[i] = (pk_region)PK_REGION("");
        keys[i].name = names[i];
        pk_region_note(&work, &keys[i], i);
    }
    pk_region_end(&work);
    pk_region_begin(&work);
    pk_region_end(&work);
    json_t *d = end_and_load();
    const json_t *args = member(call(d, "work", 0), "args");
    assert_int_equal(json_object_size(args), 8);
    for (int i = 4; i < 12; i++)
        assert_int_equal(json_integer_value(member(args, names[i])), i);
    assert_null(json_object_get(call(d, "work", 1), "args"));
    assert_int_equal(count_in(d, "points_dropped"), 0);
    json_decref(d);
}

static void *on_a_thread(void *argument)
{
    for (int i = 0; i < 2000; i++) {
        pk_region *r = pk_region_named(argument);
        pk_region_begin(r);
        pk_region_note(r, &shape, i);
        pk_region_end(r);
    }
    return argument;
}

static void of_many_threads(void **state)
{
    pthread_t threads[6];
    static char names[6][8];
    (void)state;
    begin(.trace_path = "run.json");
    for (int i = 0; i < 6; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        assert_int_equal(pthread_create(&threads[i], NULL, on_a_thread, names[i]), 0);
    }
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    json_t *d = end_and_load(), *e;
    size_t at, next[6] = {0};
    json_array_foreach(member(d, "traceEvents"), at, e)
    {
        const char *name = json_string_value(member(e, "name"));
        if (name[0] != 't' || name[1] < '0' || name[1] > '5' || name[2])
            continue;
        size_t *n = &next[name[1] - '0'];
        assert_int_equal(json_integer_value(member(member(e, "args"), "shape")), (*n)++);
    }
    if (!count_in(d, "dropped"))
        for (int i = 0; i < 6; i++)
            assert_int_equal(next[i], 2000);
    json_decref(d);
}

/* A step of a history, written after it was. */
static void in_a_capture(void **state)
{
    (void)state;
    begin(.capture = "slow=5,floor:20000", .capture_path = "c-%s.json");
    steps(12, 100);
    pk_region_begin(&work);
    pk_region_note_text(&work, &file, "slow.bin");
    usleep(60000);
    pk_region_end(&work);
    pk_step(1);
    steps(2, 100);
    assert_int_equal(pk_stop(), PK_OK);
    glob_t files;
    assert_int_equal(glob("c-*.json", 0, NULL, &files), 0);
    json_t *d = load_document(files.gl_pathv[0]);
    globfree(&files);
    size_t last = count_events(d, "X", "work") - 1;
    expect_words(d, "work", last, "file", "slow.bin");
    json_decref(d);
}

#define test(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(of_their_call_alone), test(texts),        test(too_many_and_none),
        test(of_many_threads),     test(in_a_capture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
