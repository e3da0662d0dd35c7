#include "session/report/report_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/files.h"
#include "base/text.h"
#include "out/file.h"
#include "out/report/report.h"
#include "out/target.h"

/* The whole report in memory first: a full disk must not leave half a report under the good name.
 */
char *pki_report_as(pki_report_function *report, const pki_summary *summary, size_t *bytes)
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
    return pki_report_as(pki_report_json_line, summary, bytes);
}

static pk_status open_error(const char *path, int error)
{
    static const pki_target_hints hints = {"leave report_path empty for no report",
                                           "\"-\" for the standard error"};
    return pki_fail(pki_status_of_errno(error), "report %s: %s", path,
                    pki_target_why(path, error, &hints).text);
}

pk_status pki_report_check(const char *path)
{
    bool file = path[0] && strcmp(path, "-") != 0;
    return !file || pki_target_is_free(path) ? PK_OK : open_error(path, errno);
}

static pki_report_function *form_of(const char *path, bool json)
{
    return pki_ends_with(path, PKI_RANK_SUFFIX) ? pki_report_rank
           : json                               ? pki_report_json
                                                : pki_report_text;
}

pk_status pki_report_file(const pki_summary *summary, const char *path, bool json)
{
    size_t n = 0;
    if (!path[0])
        return PK_OK;
    char *text = pki_report_as(form_of(path, json), summary, &n);
    if (!text)
        return pki_fail(PK_ENOMEM, "no memory for the report");
    bool to_stderr = strcmp(path, "-") == 0;
    bool written = to_stderr ? pki_write_stderr(text, n) : pki_file_put(path, text, n);
    int error = errno;
    free(text);
    if (!written && to_stderr)
        return pki_fail(pki_status_of_errno(error), "report on stderr: %s",
                        error == EBADF ? "the program has none: descriptor 2 is closed, or a file "
                                         "of the program's own"
                                       : strerror(error));
    return written ? PK_OK : open_error(path, error);
}
