/* tests/unit/options.h - options and their environment as a session would take them, for tests. */
#ifndef TESTS_OPTIONS_H
#define TESTS_OPTIONS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "session/options/config.h"

static pki_config config;

/* But for those that tell tests what they run on. */
static inline bool is_option(const char *variable)
{
    return strncmp(variable, "PK_", 3) == 0 && strncmp(variable, "PK_TEST_", 8) != 0;
}

static inline int clear_environment(void **state)
{
    (void)state;
    for (char **at = environ; at && *at;) {
        char name[100];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (is_option(name) && unsetenv(name) == 0)
            at = environ; /* all of them have moved */
        else
            at++;
    }
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    return 0;
}

static inline void expect_taken(const pk_options *options)
{
    if (pki_config_read(&config, options))
        fail_msg("%s", pk_error_message());
}

/* Refused, by a sentence that holds these two. */
static inline void expect_refused(const pk_options *options, const char *culprit, const char *why)
{
    assert_int_equal(pki_config_read(&config, options), PK_EINVAL);
    if (!strstr(pk_error_message(), culprit) || !strstr(pk_error_message(), why))
        fail_msg("'%s' does not say %s and %s", pk_error_message(), culprit, why);
}

static inline void expect_refused_variable(const char *name, const char *value, const char *why)
{
    setenv(name, value, 1);
    expect_refused(NULL, name, why);
    unsetenv(name);
}

#endif
