/* What stands behind a trace's events. */
#include "session/trace/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *wanted)
{
    size_t n;
    char *text = pki_tail_text("{}", 2, &n);
    assert_non_null(text);
    assert_int_equal(n, strlen(wanted));
    assert_memory_equal(text, wanted, n);
    free(text);
}

static void only_the_report(void **state)
{
    (void)state;
    expect("\n],\"perfkitReport\":{}}\n");
}

static void members(void **state)
{
    (void)state;
    pki_tail_set("devices", "[1]");
    pki_tail_set("more", "{\"a\":2}");
    expect("\n],\"devices\":[1],\"more\":{\"a\":2},\"perfkitReport\":{}}\n");
    pki_tail_set("devices", "[]"); /* in its place */
    expect("\n],\"devices\":[],\"more\":{\"a\":2},\"perfkitReport\":{}}\n");
    pki_tail_reset();
    expect("\n],\"perfkitReport\":{}}\n");
}

static void no_more_than_there_is_room_for(void **state)
{
    char key[] = "a";
    (void)state;
    for (; *key < 'z'; key[0]++)
        pki_tail_set(key, "1");
    expect("\n],\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,"
           "\"perfkitReport\":{}}\n");
    pki_tail_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_report),
        cmocka_unit_test(members),
        cmocka_unit_test(no_more_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
