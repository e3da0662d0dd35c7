/* Widths, cuts and paragraphs, in columns of a terminal. */
#include "out/columns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text;
static size_t length;
static FILE *page;

static int open_page(void **state)
{
    (void)state;
    page = open_memstream(&text, &length);
    return page ? 0 : -1;
}

static int close_page(void **state)
{
    (void)state;
    fclose(page);
    free(text);
    return 0;
}

static void expect(const char *wanted)
{
    fclose(page);
    assert_string_equal(text, wanted);
    free(text);
    page = open_memstream(&text, &length);
}

static void widths(void **state)
{
    (void)state;
    assert_int_equal(pki_width(""), 0);
    assert_int_equal(pki_width("abc"), 3);
    assert_int_equal(pki_width("\xC3\xA9t\xC3\xA9"), 3);        /* e acute, two bytes */
    assert_int_equal(pki_width("e\xCC\x81"), 1);                /* combining acute */
    assert_int_equal(pki_width("\xE6\xA2\xAF\xE5\xBA\xA6"), 4); /* two ideographs */
    assert_int_equal(pki_width("\xF0\x9F\x9A\x80"), 2);         /* a rocket */
    assert_int_equal(pki_width("a\xFF\xC0"), 3);                /* each bad byte is shown */
    assert_int_equal(pki_width("\xE2\x82"), 2);                 /* cut off */
}

static void cells(void **state)
{
    (void)state;
    pki_put_left(page, "abc", 5);
    expect("abc  ");
    pki_put_right(page, "abc", 5);
    expect("  abc");
    pki_put_left(page, "abcde", 5);
    expect("abcde");
    pki_put_left(page, "abcdefghij", 9);
    expect("abc...hij");
    pki_put_right(page, "abcdefghij", 8);
    expect("abc...ij");
    pki_put_left(page, "\xE6\xA2\xAF\xE5\xBA\xA6\xE6\xA2\xAF\xE5\xBA\xA6", 7);
    expect("\xE6\xA2\xAF...\xE5\xBA\xA6");
    pki_put_left(page, "\xE6\xA2\xAF\xE5\xBA\xA6\xE6\xA2\xAF\xE5\xBA\xA6",
                 6); /* no half ideographs */
    expect("\xE6\xA2\xAF... ");
}

typedef struct row {
    uint64_t figure;
    const char *name;
} row;

static const char *name_of(const void *of)
{
    return ((const row *)of)->name;
}

#define ROWS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The names as rows of a table, each cut to the width: what is wanted, and no two alike. */
static void expect_rows(const char *const *names, size_t width, const char *const *wanted)
{
    row rows[64];
    char *shown[64];
    size_t count = 0;
    for (; names[count]; count++)
        rows[count] = (row){count, names[count]};
    for (size_t i = 0; i < count; i++) {
        pki_column column = pki_column_near(rows, count, sizeof *rows, i, name_of);
        pki_put_apart(page, names[i], width, &column);
        fflush(page);
        shown[i] = strdup(text);
        assert_int_equal(pki_width(shown[i]), width);
        if (wanted)
            expect(wanted[i]);
        else
            expect(shown[i]);
        for (size_t k = 0; k < i; k++)
            assert_true(strcmp(shown[k], shown[i]) != 0 || strcmp(names[k], names[i]) == 0);
    }
    while (count)
        free(shown[--count]);
}

static void cut_rows_differ(void **state)
{
    (void)state;
    expect_rows(ROWS("backward > layer.bwd[3] > attention.bwd > matmul_backward",
                     "backward > layer.bwd[4] > attention.bwd > matmul_backward",
                     "backward > layer.bwd[11] > attention.bwd > matmul_backward",
                     "backward > layer.bwd[3] > mlp.bwd > matmul_backward", "forward"),
                42,
                ROWS("backward ...bwd[3] > attention..._backward",
                     "backward ...bwd[4] > attention..._backward",
                     "backward ...bwd[11] > attention...backward",
                     "backward > l...bwd[3] > mlp...mul_backward",
                     "forward                                   "));
    /* Numbers of several lengths, of which one repeats another's digits. */
    expect_rows(ROWS("model.transformer.layers[1].self_attention.query_key_value.weight",
                     "model.transformer.layers[11].self_attention.query_key_value.weight",
                     "model.transformer.layers[111].self_attention.query_key_value.weight"),
                30,
                ROWS("model.tr...layers[1]....weight", "model.t...layers[11]....weight",
                     "model.t...layers[111]...weight"));
    /* What nothing tells apart, and what is alone, is cut in the middle. */
    expect_rows(ROWS("one name that is quite long", "one name that is quite long"), 15,
                ROWS("one na...e long", "one na...e long"));
    expect_rows(ROWS("one name that is quite long", "two of them"), 15,
                ROWS("one na...e long", "two of them    "));
}

/* What differs takes more than there is room for, lies at several places, or is half a character.
 */
static void cut_rows_differ_at_several_places(void **state)
{
#define KERNEL(n, functor, type)                                                                   \
    "void at::native::vectorized_elementwise_kernel<" n ", at::native::" functor "<" type          \
    ">, at::detail::Array<char*, 3>>(int, at::native::" functor "<" type                           \
    ">, at::detail::Array<char*, 3>)"
    (void)state;
    for (size_t width = 36; width < 200; width++)
        expect_rows(ROWS(KERNEL("4", "AddFunctor", "float"), KERNEL("4", "MulFunctor", "float"),
                         KERNEL("4", "MulFunctor", "double"), KERNEL("8", "MulFunctor", "double")),
                    width, NULL);
    for (size_t width = 18; width < 60; width++)
        expect_rows(
            ROWS(
                "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                "\xC3\xA8\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9",
                "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                "\xC3\xAA\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"),
            width, NULL);
}

static void nothing_acts_on_the_terminal(void **state)
{
    (void)state;
    pki_put_left(page, "a\x1b[31m\n\t\x7f", 9);
    expect("a?[31m???");
    pki_put_left(page,
                 "\xC2\x9B"
                 "1m",
                 3); /* C1: the other way to write an escape sequence */
    expect("?1m");
    pki_put_left(page,
                 "\xE2\x80\xAE"
                 "abc",
                 4); /* right to left */
    expect("?abc");
    pki_put_left(page, "\xFFx", 2);
    expect("\xEF\xBF\xBDx");
}

static void paragraphs(void **state)
{
    char wanted[400], words[200] = "";
    (void)state;
    pki_put_paragraph(page, "  a  few\nwords ", 4, 2);
    expect("a few words\n");
    pki_put_paragraph(page, "no step", 0, 6); /* a short word before the indent */
    expect("no step\n");
    pki_put_paragraph(page, "", 4, 2);
    expect("\n");
    /* 38 + 1 + 39 columns from 2 on are 80; one more is too many. */
    memset(words, 'x', 38);
    words[38] = ' ';
    memset(words + 39, 'y', 39);
    pki_put_paragraph(page, words, 2, 4);
    snprintf(wanted, sizeof wanted, "%s\n", words);
    expect(wanted);
    pki_put_paragraph(page, words, 3, 4);
    snprintf(wanted, sizeof wanted, "%.38s\n    %.39s\n", words, words + 39);
    expect(wanted);
}

static void long_words_are_broken(void **state)
{
    char word[201], wanted[400];
    (void)state;
    memset(word, 'w', 200);
    word[200] = '\0';
    pki_put_paragraph(page, word, 2, 2);
    snprintf(wanted, sizeof wanted, "%.78s\n  %.78s\n  %.44s\n", word, word, word);
    expect(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths),
        cmocka_unit_test_setup_teardown(cells, open_page, close_page),
        cmocka_unit_test_setup_teardown(cut_rows_differ, open_page, close_page),
        cmocka_unit_test_setup_teardown(cut_rows_differ_at_several_places, open_page, close_page),
        cmocka_unit_test_setup_teardown(nothing_acts_on_the_terminal, open_page, close_page),
        cmocka_unit_test_setup_teardown(paragraphs, open_page, close_page),
        cmocka_unit_test_setup_teardown(long_words_are_broken, open_page, close_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
