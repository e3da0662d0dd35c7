#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "out/file.h"

/* ---- "reading run.json: 40 %" on stderr, for those who wait at a terminal ---- */

#define FIRST 1000000000u /* ns */
#define LATER 200000000u

progress progress_start(const char *what, bool wanted)
{
    progress p = {0};
    if (wanted && isatty(STDERR_FILENO)) {
        p.what = what;
        p.next = pki_monotonic_ns() + FIRST;
    }
    return p;
}

void progress_show(progress *p, double part)
{
    if (!p->what || pki_monotonic_ns() < p->next)
        return;
    if (part >= 0)
        fprintf(stderr, "\r\033[Kpk: reading %s: %d %%", p->what, (int)(100 * part));
    else
        fprintf(stderr, "\r\033[Kpk: reading %s ...", p->what);
    p->said = true;
    p->next = pki_monotonic_ns() + LATER;
}

void progress_end(progress *p)
{
    if (p->said)
        fputs("\r\033[K", stderr);
    p->said = false;
}

/* ---- a file that a command makes: under another name until it is whole ---- */

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

static char unfinished[PATH_MAX]; /* that is being written, but no output; "" if none is */
static output *open_outputs;

static void remove_unfinished(void)
{
    if (unfinished[0])
        unlink(unfinished);
    for (const output *o = open_outputs; o; o = o->next)
        unlink(o->temporary);
}

static void remove_at_exit(void)
{
    static bool registered;
    if (!registered)
        atexit(remove_unfinished);
    registered = true;
}

void output_begins(const char *temporary)
{
    remove_at_exit();
    snprintf(unfinished, sizeof unfinished, "%s", temporary);
}

static void enter(output *o)
{
    remove_at_exit();
    o->next = open_outputs;
    open_outputs = o;
}

static void unregister(const output *o)
{
    output **at = &open_outputs;
    while (*at && *at != o)
        at = &(*at)->next;
    if (*at)
        *at = o->next;
}

bool output_open(output *o, const char *path, output_kind kind, complaint *why)
{
    *o = (output){.path = path};
    int fd = pki_file_fresh(path, PKI_FILE_MODE, o->temporary, sizeof o->temporary);
    if (fd < 0)
        return refuse(path, kind, why);
    enter(o);
    o->to = fdopen(fd, "w");
    if (o->to)
        return true;
    unregister(o);
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
    unregister(o);
    if (!written)
        complaint_set(why, "%s could not be written: %s", o->path, strerror(error));
    if (written && whole)
        return pki_file_publish(o->temporary, o->path) || refuse(o->path, OUTPUT_FILE, why);
    unlink(o->temporary);
    return false;
}
