#include "base/log.h"

#include <pk/private.h>
#include <pk/version.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/files.h"

/* ---- what perfkit has to say, to whoever asked to hear it; silent by default ---- */

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

/* ---- a status and the sentence that belongs to it ---- */

static _Thread_local char last_message[320];

const char *pk_status_name(pk_status status)
{
    switch (status) {
#define NAME(code, value, text)                                                                    \
    case code:                                                                                     \
        return #code;
        PK_STATUS_LIST(NAME)
#undef NAME
    }
    return "PK_E?";
}

const char *pk_status_text(pk_status status)
{
    switch (status) {
#define TEXT(code, value, text)                                                                    \
    case code:                                                                                     \
        return text;
        PK_STATUS_LIST(TEXT)
#undef TEXT
    }
    return "unknown status";
}

const char *pk_error_message(void)
{
    return last_message;
}

#define STRING(x) STRING2(x)
#define STRING2(x) #x

const char *pk_version(void)
{
    return STRING(PK_VERSION_MAJOR) "." STRING(PK_VERSION_MINOR) "." STRING(PK_VERSION_PATCH);
}

pk_status pki_fail_unheard(pk_status status, const char *message)
{
    snprintf(last_message, sizeof last_message, "%s", message);
    return status;
}

pk_status pki_fail(pk_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_message, sizeof last_message, format, args);
    va_end(args);
    pki_log(PK_LOG_ERROR, "%s", last_message);
    return status;
}

pk_status pk_fail_(pk_status status, const char *sentence)
{
    return pki_fail(status, "%s", sentence);
}

pk_status pki_status_of_errno(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return PK_ENOSPC;
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case EISDIR:
    case ELOOP:
        return PK_EACCES;
    case ENOENT: /* the folder of a file that was to be made */
    case ENOTDIR:
        return PK_ENOENT;
    case ENOMEM:
    case EAGAIN:
        return PK_ENOMEM;
    default:
        return PK_EIO;
    }
}
