#include "output.h"

#include "out/file.h"
#include "out/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool refuse(const char *path, output_kind kind, complaint *why)
{
    const pki_target_hints hints = {
        NULL, kind == OUTPUT_OR_STANDARD ? "\"-\" for the standard output" : NULL};
    return complaint_set(why, "%s: %s", path, pki_target_why(path, errno, &hints).text);
}

bool output_check(const char *path, output_kind kind, complaint *why)
{
    return pki_target_is_free(path) || refuse(path, kind, why);
}

/* The one that is being written; "" if none is. */
static char unfinished[PATH_MAX];

static void remove_unfinished(void)
{
    if (unfinished[0])
        unlink(unfinished);
}

void output_begins(const char *temporary)
{
    static bool registered;
    if (!registered)
        atexit(remove_unfinished);
    registered = true;
    snprintf(unfinished, sizeof unfinished, "%s", temporary);
}

bool output_open(output *o, const char *path, output_kind kind, complaint *why)
{
    *o = (output){.path = path};
    int fd = pki_file_fresh(path, PKI_FILE_MODE, o->temporary, sizeof o->temporary);
    if (fd < 0)
        return refuse(path, kind, why);
    output_begins(o->temporary);
    o->to = fdopen(fd, "w");
    if (o->to)
        return true;
    refuse(path, kind, why);
    close(fd);
    unlink(o->temporary);
    return false;
}

bool output_close(output *o, bool whole, complaint *why)
{
    bool written = fflush(o->to) == 0 && !ferror(o->to);
    int error = errno;
    if (fclose(o->to) != 0 && written) {
        written = false;
        error = errno;
    }
    output_begins("");
    if (!written)
        complaint_set(why, "%s could not be written: %s", o->path, strerror(error));
    if (written && whole)
        return pki_file_publish(o->temporary, o->path) || refuse(o->path, OUTPUT_FILE, why);
    unlink(o->temporary);
    return false;
}
