#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/stderr.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pk_log_function *sink;
static void *sink_user;
static pk_log_level sink_level;

void pki_log_to(pk_log_function *function, void *user, pk_log_level level)
{
    pthread_mutex_lock(&lock);
    sink = function;
    sink_user = user;
    sink_level = level == PK_LOG_DEFAULT ? PK_LOG_WARNING : level;
    pthread_mutex_unlock(&lock);
}

void pki_log_to_stderr(void *user, pk_log_level level, const char *message)
{
    static const char *const names[] = {"", "error: ", "warning: ", "", ""};
    char line[512];
    (void)user;
    int n = snprintf(line, sizeof line, "perfkit: %s%s\n", names[level], message);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    pki_write_stderr(line, length); /* if it fails there is nowhere to complain */
}

void pki_log(pk_log_level level, const char *format, ...)
{
    char message[384];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    if (sink && level <= sink_level)
        sink(sink_user, level, message);
    pthread_mutex_unlock(&lock);
}

void pki_log_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    sink = NULL;
}
