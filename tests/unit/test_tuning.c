/* What experts set: the table, the page that shows it, and the string that is taken apart by it. */
#include "base/tuning.h"
#include "golden.h"

#include <ctype.h>
#include <inttypes.h>

#include "base/compiler.h"
#include "history/history.h"
#include "session/options/config.h"

/* ---- the table ---- */

static void variables_are_the_keys_in_capitals(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PKI_TUNING_COUNT; i++) {
        char variable[64] = "PK_";
        assert_non_null(pki_tunings[i].key);
        for (const char *k = pki_tunings[i].key; *k; k++)
            variable[strlen(variable)] = (char)toupper((unsigned char)*k);
        assert_string_equal(pki_tunings[i].variable, variable);
        assert_true(pki_variable_is_known(variable, strlen(variable)));
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(pki_tunings[i].key, pki_tunings[k].key);
    }
}

static void ranges_make_sense(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PKI_TUNING_COUNT; i++)
        assert_true(pki_tunings[i].least <= pki_tunings[i].most);
    assert_int_equal(pki_tunings[PKI_TUNING_HISTORY_BYTES].least, PKI_HISTORY_LEAST);
}

/* ---- the page ---- */

typedef struct text {
    char text[1 << 16];
    size_t length;
} text;

static void put(text *t, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    t->length += (size_t)vsnprintf(t->text + t->length, sizeof t->text - t->length, format, values);
    va_end(values);
    assert_true(t->length < sizeof t->text);
}

/* As it may be written in the environment. */
static void put_number(text *t, uint64_t n)
{
    static const char units[] = "GMK";
    for (unsigned i = 0; i < 3; i++) {
        unsigned shift = 30 - 10 * i;
        if (n >> shift && (n >> shift) << shift == n) {
            put(t, "%" PRIu64 "%c", n >> shift, units[i]);
            return;
        }
    }
    put(t, "%" PRIu64, n);
}

static void put_range(text *t, const pki_tuning *row)
{
    put_number(t, row->least);
    put(t, row->most == UINT64_MAX ? " or more" : " .. ");
    if (row->most != UINT64_MAX)
        put_number(t, row->most);
    put(t, row->power_of_two ? ", a power of two" : "");
}

static void put_row(text *t, pki_tuning_key key, const char *values, const char *usual,
                    const char *what)
{
    const pki_tuning *row = &pki_tunings[key];
    put(t, "| `%s` | ", row->key);
    if (values)
        put(t, "%s", values);
    else
        put_range(t, row);
    put(t, " | ");
    if (usual)
        put(t, "%s", usual);
    else
        put_number(t, row->otherwise);
    put(t, " | %s |\n", what);
}

#define NUMBER(id, name, power, from, to, standard, usual, what)                                   \
    put_row(t, PKI_TUNING_##id, NULL, usual, what);
#define SWITCH(id, name, standard, what) put_row(t, PKI_TUNING_##id, "0, 1", NULL, what);
#define TEXT(id, name, values, usual, what) put_row(t, PKI_TUNING_##id, values, usual, what);

static void put_rows(text *t)
{
    PKI_TUNING_TABLE(NUMBER, SWITCH, TEXT)
}

#define BEGIN "| key | values | default | what it is for |\n|---|---|---|---|\n"

/* The page with this table in the place of its own. */
static void the_page_has_the_table(void **state)
{
    static text page;
    char path[4096];
    (void)state;
    snprintf(path, sizeof path, "%s/tuning.md", golden_folder);
    char *now = golden_read(path), *table = strstr(now, BEGIN);
    if (!table)
        fail_msg("%s has no table that begins with\n%s", path, BEGIN);
    put(&page, "%.*s", (int)(table - now), now);
    put(&page, "%s", BEGIN);
    put_rows(&page);
    char *end = strstr(table, "|\n\n");
    assert_non_null(end);
    put(&page, "%s", end + 2);
    golden_check("tuning.md", page.text);
    free(now);
}

/* ---- the string ---- */

static const char *values[PKI_TUNING_COUNT];
static char why[160];

static bool split(const char *string)
{
    static char copy[PKI_TUNING_MOST];
    snprintf(copy, sizeof copy, "%s", string);
    return pki_tuning_split(copy, values, why, sizeof why);
}

static void expect_refused(const char *string, const char *word)
{
    if (split(string))
        fail_msg("'%s' is taken", string);
    if (!strstr(why, word))
        fail_msg("'%s' does not say %s", why, word);
}

static unsigned given(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < PKI_TUNING_COUNT; i++)
        n += values[i] != NULL;
    return n;
}

static void keys_and_values(void **state)
{
    (void)state;
    assert_true(split("") && given() == 0);
    assert_true(split("ring_records=4096") && given() == 1);
    assert_string_equal(values[PKI_TUNING_RING_RECORDS], "4096");
    assert_true(split("flush_ms=50, arena_path=/a=b,clock=,") && given() == 3);
    assert_string_equal(values[PKI_TUNING_FLUSH_MS], "50");
    assert_string_equal(values[PKI_TUNING_ARENA_PATH], "/a=b");
    assert_string_equal(values[PKI_TUNING_CLOCK], "");
}

static void quotes(void **state)
{
    (void)state;
    assert_true(split("collector_cpus='0-3,8',flush_ms=50") && given() == 2);
    assert_string_equal(values[PKI_TUNING_COLLECTOR_CPUS], "0-3,8");
    assert_string_equal(values[PKI_TUNING_FLUSH_MS], "50");
    assert_true(split("arena_path='it''s, ''here'''") && given() == 1);
    assert_string_equal(values[PKI_TUNING_ARENA_PATH], "it's, 'here'");
    assert_true(split("arena_path='',nvtx_shim=it's") && given() == 2);
    assert_string_equal(values[PKI_TUNING_ARENA_PATH], "");
    assert_string_equal(values[PKI_TUNING_NVTX_SHIM], "it's");
    expect_refused("flush_ms=50,collector_cpus='0-3,8", "'collector_cpus' does not end");
    expect_refused("collector_cpus='0-3'8", "'collector_cpus' does not end");
    expect_refused("collector_cpus='", "'collector_cpus' does not end");
}

static void words_that_are_no_keys(void **state)
{
    (void)state;
    expect_refused("flush=50", "'flush' is no key");
    expect_refused("flush_ms=50,ring_record=64", "'ring_record' is no key");
    expect_refused("Flush_ms=50", "'Flush_ms' is no key");
    expect_refused("flush_ms =50", "'flush_ms ' is no key");
    expect_refused("trace_path=a", "'trace_path' is no key");
    expect_refused("=50", "'' is no key");
    expect_refused("flush_ms", "'flush_ms' is no key=value");
    expect_refused("flush_ms,clock=tsc", "'flush_ms' is no key=value");
    expect_refused("collector_cpus=0-3,8", "'8' is no key=value");
    expect_refused(",flush_ms=50", "'' is no key=value");
    expect_refused("flush_ms=50,clock=tsc,flush_ms=60", "'flush_ms' is there twice");
    expect_refused("flush_ms=,flush_ms=60", "'flush_ms' is there twice");
    expect_refused("a_word_that_is_longer_than_any_that_are_shown_here=1", "'a_word_that_is");
}

/* ---- who wins ---- */

static uint32_t flush_of(const pk_options *options)
{
    static pki_config config;
    if (pki_config_read(&config, options))
        fail_msg("%s", pk_error_message());
    return config.flush_ms;
}

static void refuse(const pk_options *options, const char *wanted)
{
    static pki_config config;
    assert_int_equal(pki_config_read(&config, options), PK_EINVAL);
    if (!strstr(pk_error_message(), wanted))
        fail_msg("'%s' does not say %s", pk_error_message(), wanted);
}

static int clear(void **state)
{
    (void)state;
    unsetenv("PK_TUNING");
    unsetenv("PK_FLUSH_MS");
    unsetenv("PK_OVERRIDE");
    return 0;
}

static void the_nearest_wins(void **state)
{
    (void)state;
    setenv("PK_TUNING", "flush_ms=30,ring_records=64", 1);
    assert_int_equal(flush_of(NULL), 30);
    setenv("PK_FLUSH_MS", "40", 1);
    assert_int_equal(flush_of(NULL), 40);
    assert_int_equal(flush_of(pk_options(.tuning = "flush_ms=50")), 50);
    assert_int_equal(flush_of(pk_options(.tuning = "clock=monotonic")), 40); /* key by key */
    assert_int_equal(flush_of(pk_options(.tuning = "flush_ms=")), 1000);
    assert_int_equal(flush_of(pk_options(.tuning = "flush_ms=0")), 1000);
}

static void but_for_an_override(void **state)
{
    (void)state;
    setenv("PK_OVERRIDE", "1", 1);
    assert_int_equal(flush_of(pk_options(.tuning = "flush_ms=50")), 50);
    setenv("PK_TUNING", "flush_ms=30", 1);
    assert_int_equal(flush_of(pk_options(.tuning = "flush_ms=50")), 30);
    setenv("PK_FLUSH_MS", "40", 1);
    assert_int_equal(flush_of(pk_options(.tuning = "flush_ms=50")), 40);
    setenv("PK_TUNING", "flush_ms=", 1);
    unsetenv("PK_FLUSH_MS");
    assert_int_equal(flush_of(pk_options(.tuning = "flush_ms=50")), 50);
}

static void whose_word_it_is(void **state)
{
    static char long_one[PKI_TUNING_MOST + 1];
    (void)state;
    refuse(pk_options(.tuning = "flush=50"), "tuning: 'flush' is no key");
    refuse(pk_options(.tuning = "flush_ms=5"), "flush_ms is 5");
    memset(long_one, ' ', sizeof long_one - 1);
    refuse(pk_options(.tuning = long_one), "longer");
    setenv("PK_TUNING", "flush=50", 1);
    refuse(NULL, "PK_TUNING: 'flush' is no key");
    setenv("PK_TUNING", "flush_ms=50ms", 1);
    refuse(NULL, "flush_ms=50ms is not a number");
    assert_int_equal(flush_of(pk_options(.tuning = "flush_ms=50")), 50); /* never looked at */
}

static void without_a_session(void **state)
{
    char value[8] = "";
    (void)state;
    assert_false(pki_tuning_of_environment(PKI_TUNING_FLUSH_MS, value, sizeof value));
    setenv("PK_TUNING", "clock=tsc,flush_ms=30,arena_path=longer than that", 1);
    assert_true(pki_tuning_of_environment(PKI_TUNING_FLUSH_MS, value, sizeof value));
    assert_string_equal(value, "30");
    assert_false(pki_tuning_of_environment(PKI_TUNING_ARENA_PATH, value, sizeof value));
    assert_false(pki_tuning_of_environment(PKI_TUNING_PEAK, value, sizeof value));
    setenv("PK_FLUSH_MS", "40", 1);
    assert_true(pki_tuning_of_environment(PKI_TUNING_FLUSH_MS, value, sizeof value));
    assert_string_equal(value, "40");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_the_keys_in_capitals),
        cmocka_unit_test(ranges_make_sense),
        cmocka_unit_test(the_page_has_the_table),
        cmocka_unit_test(keys_and_values),
        cmocka_unit_test(quotes),
        cmocka_unit_test(words_that_are_no_keys),
        cmocka_unit_test_setup_teardown(the_nearest_wins, clear, clear),
        cmocka_unit_test_setup_teardown(but_for_an_override, clear, clear),
        cmocka_unit_test_setup_teardown(whose_word_it_is, clear, clear),
        cmocka_unit_test_setup_teardown(without_a_session, clear, clear),
    };
    golden_folder = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
