#include "out/rolling.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "out/target.h"

bool pki_rolling_part(const char *path, unsigned part, char name[PATH_MAX])
{
    return snprintf(name, PATH_MAX, "%s.%u", path, part) < PATH_MAX;
}

static bool begin(pki_rolling *r)
{
    r->open = pki_trace_file_create(&r->file, r->path, r->compressed, "", 0, "", 0);
    return r->open;
}

static bool holds_any(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
}

/* For 0 the name itself. */
static bool part_of(const char *path, unsigned part, char name[PATH_MAX])
{
    return part ? pki_rolling_part(path, part, name)
                : snprintf(name, PATH_MAX, "%s", path) < PATH_MAX;
}

void pki_rolling_keep(const char *path)
{
    char prev[PATH_MAX], from[PATH_MAX], to[PATH_MAX];
    bool any = false;
    if (snprintf(prev, sizeof prev, "%s.prev", path) >= (int)sizeof prev)
        return;
    for (unsigned part = 0; part < PKI_ROLLING_PARTS; part++)
        any = any || (part_of(path, part, from) && holds_any(from));
    for (unsigned part = 0; any && part < PKI_ROLLING_PARTS; part++) {
        if (!part_of(path, part, from) || !part_of(prev, part, to) || !pki_target_is_free(to))
            continue;
        if (holds_any(from))
            rename(from, to);
        else
            unlink(to); /* of a run before that one */
    }
}

bool pki_rolling_open(pki_rolling *r, const char *path, bool compressed, uint64_t most_bytes)
{
    r->compressed = compressed;
    r->part_bytes = most_bytes / PKI_ROLLING_PARTS;
    r->file = PKI_TRACE_FILE_NONE;
    if (r->path != path)
        snprintf(r->path, sizeof r->path, "%s", path);
    return begin(r);
}

/* Whatever cannot be renamed stays, and is replaced. */
static void shift_parts(const pki_rolling *r)
{
    char from[PATH_MAX], to[PATH_MAX];
    for (unsigned part = PKI_ROLLING_PARTS - 1; part > 0; part--) {
        bool named = pki_rolling_part(r->path, part, to) &&
                     (part > 1 ? pki_rolling_part(r->path, part - 1, from)
                               : snprintf(from, sizeof from, "%s", r->path) > 0);
        if (named)
            rename(from, to);
    }
}

static bool is_elsewhere(const pki_rolling *r)
{
    return pki_trace_file_location(&r->file, r->path) != PKI_TRACE_THERE;
}

/* Sees to it that the file is where it belongs, and has room. */
static bool prepare(pki_rolling *r, size_t n)
{
    if (r->open && is_elsewhere(r))
        pki_rolling_close(r);
    if (r->open && r->file.length && r->file.length + n > r->part_bytes) {
        pki_rolling_close(r);
        shift_parts(r);
    }
    return r->open || begin(r);
}

bool pki_rolling_append(pki_rolling *r, const char *lines, size_t n)
{
    if (n > r->part_bytes) {
        errno = EFBIG;
        return false;
    }
    if (prepare(r, n) && pki_trace_file_append(&r->file, lines, n, "", 0))
        return true;
    if (errno == EBADF)
        pki_rolling_close(r); /* its descriptor is not ours any more: a new file, next time */
    return false;
}

void pki_rolling_close(pki_rolling *r)
{
    if (r->open)
        pki_trace_file_close(&r->file);
    r->open = false;
}
