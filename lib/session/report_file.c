#include "session/report_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/stderr.h"
#include "out/file.h"
#include "out/report/report.h"

typedef int report_function(const pki_summary *summary, FILE *file);

/* The whole report in memory first: a full disk must not leave half a report under the good name.
 */
static char *format(report_function *report, const pki_summary *summary, size_t *bytes)
{
    char *text = NULL;
    FILE *memory = open_memstream(&text, bytes);
    if (!memory)
        return NULL;
    int error = report(summary, memory);
    if (fclose(memory) != 0 || error) {
        free(text);
        return NULL;
    }
    return text;
}

char *pki_report_line(const pki_summary *summary, size_t *bytes)
{
    return format(pki_report_json_line, summary, bytes);
}

static pk_status trouble(const char *path)
{
    int error = errno;
    return pki_fail(pki_status_of_errno(error), "report %s: %s", path, strerror(error));
}

static pk_status write_file(const char *path, const char *text, size_t n)
{
    char temporary[PATH_MAX];
    int fd = pki_file_fresh(path, temporary, sizeof temporary);
    if (fd < 0)
        return trouble(path);
    bool written = pki_file_write_at(fd, text, n, 0);
    int error = errno;
    close(fd);
    if (written)
        return pki_file_publish(temporary, path) ? PK_OK : trouble(path);
    unlink(temporary);
    errno = error;
    return trouble(path);
}

pk_status pki_report_file(const pki_summary *summary, const char *path, bool json)
{
    size_t n = 0;
    if (!path[0])
        return PK_OK;
    char *text = format(json ? pki_report_json : pki_report_text, summary, &n);
    if (!text)
        return pki_fail(PK_ENOMEM, "no memory for the report");
    pk_status status = strcmp(path, "-") != 0      ? write_file(path, text, n)
                       : pki_write_stderr(text, n) ? PK_OK
                                                   : trouble("on stderr");
    free(text);
    return status;
}
