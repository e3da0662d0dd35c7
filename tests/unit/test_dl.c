/* Libraries that may be absent: which file is taken, and what is said when it cannot be. */
#include "base/dl.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VARIABLE "PK_TEST_LIBRARY"

typedef double function(double);

typedef struct table {
    function *cosine, *nothing;
} table;

static const char *const math[] = {"libnothing-of-that-name.so", "libm.so.6", NULL};
static char reason[192];
static const char *apart; /* NULL: no namespaces here */

static void *open_math(void)
{
    return pki_dl_open(VARIABLE, math, reason, sizeof reason);
}

static void the_first_that_is_there(void **state)
{
    (void)state;
    unsetenv(VARIABLE);
    assert_non_null(open_math());
    setenv(VARIABLE, "", 1); /* an empty variable is none */
    assert_non_null(open_math());
}

static void the_variable_names_another_file(void **state)
{
    (void)state;
    setenv(VARIABLE, "/nowhere/libdouble.so", 1);
    assert_null(open_math()); /* and nothing else is tried */
    assert_non_null(strstr(reason, "/nowhere/libdouble.so"));
    unsetenv(VARIABLE);
}

static void absence_has_a_reason(void **state)
{
    static const char *const none[] = {"libnothing-of-that-name.so", NULL};
    (void)state;
    assert_null(pki_dl_open(VARIABLE, none, reason, sizeof reason));
    assert_non_null(strstr(reason, "libnothing-of-that-name.so"));
}

static void functions(void **state)
{
    static const pki_dl_function known[] = {{"cos", offsetof(table, cosine), false},
                                            {"no_such_function", offsetof(table, nothing), true}};
    static const pki_dl_function missing[] = {
        {"no_such_function", offsetof(table, nothing), false}};
    table t = {NULL, cos};
    (void)state;
    void *library = open_math();
    assert_non_null(library);
    assert_true(pki_dl_bind(library, known, 2, &t, reason, sizeof reason));
    assert_true(t.cosine(0) == 1);
    assert_null(t.nothing);
    assert_false(pki_dl_bind(library, missing, 1, &t, reason, sizeof reason));
    assert_string_equal(reason, "the library has no no_such_function");
}

/* A copy of perfkit in a namespace of its own, as pk ab has them. */
static void in_a_namespace(void **state)
{
    (void)state;
    assert_true(pki_dl_possible());
    if (!apart)
        skip();
    void *library = dlmopen(LM_ID_NEWLM, apart, RTLD_NOW);
    bool (*possible)(void);
    assert_non_null(library);
    *(void **)&possible = dlsym(library, "possible");
    assert_non_null(possible);
    assert_true(possible());
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_is_there),
        cmocka_unit_test(the_variable_names_another_file),
        cmocka_unit_test(absence_has_a_reason),
        cmocka_unit_test(functions),
        cmocka_unit_test(in_a_namespace),
    };
    apart = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
