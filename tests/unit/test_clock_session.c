/* What a session says of its clock: why it is not the processor's counter, that somebody insists on
 * one that the kernel does not trust, and that it has jumped. */
#include "folder.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#include "session/collector/collect.h"
#include "session/session.h"

static char said[8][512];
static unsigned said_count;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user;
    if (level == PK_LOG_WARNING && strncmp(message, "clock: ", 7) == 0 && said_count < 8)
        snprintf(said[said_count++], sizeof said[0], "%s", message);
}

static int begin_quietly(void **state)
{
    said_count = 0;
    memset(said, 0, sizeof said);
    return enter_folder(state);
}

/* In one line. */
static char *report_of(void)
{
    static char text[65536];
    FILE *file = fopen("report", "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file), kept = 0;
    fclose(file);
    for (size_t i = 0; i < n; i++) {
        char c = text[i] == '\n' ? ' ' : text[i];
        if (c != ' ' || (kept && text[kept - 1] != ' '))
            text[kept++] = c;
    }
    text[kept] = 0;
    return text;
}

static void start_with(const char *clock)
{
    assert_int_equal(
        pk_start(pk_options(.clock = clock, .backends = "none", .collector = "none", .log = hear,
                            .report_path = "report", .flush_ms = 3600000)),
        PK_OK);
}

static void says_why_it_is_not_the_counter(void **state)
{
    const char *why_not = NULL;
    (void)state;
    bool trusted = pki_cycle_counter_trusted(&why_not);
    start_with(NULL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(said_count, 0); /* nobody has asked for anything else */
    assert_int_equal(!strstr(report_of(), "the processor's counter"), trusted);
    assert_true(trusted || strstr(report_of(), why_not));
    start_with("monotonic");
    assert_int_equal(pk_stop(), PK_OK);
    assert_null(strstr(report_of(), "the processor's counter"));
}

static void warns_who_insists(void **state)
{
    const char *why_not = NULL;
    (void)state;
    bool trusted = pki_cycle_counter_trusted(&why_not);
    if (!pki_cycle_counter_constant())
        skip();
    start_with(PKI_CYCLE_COUNTER_NAME);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(said_count, trusted ? 0 : 1);
    assert_true(trusted || strstr(said[0], why_not));
    assert_int_equal(!strstr(report_of(), "used as requested"), trusted);
}

/* The map is moved instead of the counter. */
static void tells_of_a_jump_once(void **state)
{
    const char *why_not;
    (void)state;
    if (!pki_cycle_counter_constant())
        skip();
    unsigned before = pki_cycle_counter_trusted(&why_not) ? 0 : 1;
    start_with(PKI_CYCLE_COUNTER_NAME);
    pki_collect_check_clock(&pki_the_session, true);
    assert_int_equal(said_count, before);
    pki_clock_map *map = &pki_the_session.arena->header->clock;
    for (int i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < map->count; k++)
            map->segments[k].start_ns += 5000000000u;
        pki_collect_check_clock(&pki_the_session, true);
    }
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(said_count, before + 1);
    assert_non_null(strstr(said[before], "has jumped: it is 5.00 s away"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(says_why_it_is_not_the_counter, begin_quietly,
                                        leave_folder),
        cmocka_unit_test_setup_teardown(warns_who_insists, begin_quietly, leave_folder),
        cmocka_unit_test_setup_teardown(tells_of_a_jump_once, begin_quietly, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
