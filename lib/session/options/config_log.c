#include "session/options/config_log.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"

static pk_status read_level(const pk_options *o, pk_log_level *level)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug"};
    const char *text = o->log_level ? NULL : pki_variable("PK_LOG_LEVEL");
    *level = (pk_log_level)o->log_level;
    if (o->log_level > PK_LOG_DEBUG)
        return pki_fail(PK_EINVAL, "log_level %u is no pk_log_level", o->log_level);
    if (!text)
        return PK_OK;
    for (unsigned i = PK_LOG_ERROR; i <= PK_LOG_DEBUG; i++)
        if (strcmp(text, names[i]) == 0) {
            *level = (pk_log_level)i;
            return PK_OK;
        }
    return pki_fail(PK_EINVAL, "PK_LOG_LEVEL=%.40s is none of error, warning, info and debug",
                    text);
}

pk_status pki_config_log(const pk_options *o)
{
    pk_log_level level;
    const char *where = o->log ? NULL : pki_variable("PK_LOG");
    bool to_stderr = where && strcmp(where, "stderr") == 0;
    pki_log_to(to_stderr ? pki_log_to_stderr : o->log, o->log_user, PK_LOG_DEFAULT);
    if (where && !to_stderr && strcmp(where, "off") != 0)
        return pki_fail(PK_EINVAL, "PK_LOG=%.40s is neither stderr nor off", where);
    pk_status status = read_level(o, &level);
    if (!status)
        pki_log_to(to_stderr ? pki_log_to_stderr : o->log, o->log_user, level);
    return status;
}
