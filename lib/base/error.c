#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <pk/version.h>

#include "base/log.h"

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
