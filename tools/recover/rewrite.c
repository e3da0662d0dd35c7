#include "recover/rewrite.h"

#include "base/text.h"
#include "memory.h"
#include "files.h"
#include "out/chrome/chrome.h"
#include "out/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAIL PKI_CHROME_TAIL
#define TAIL_BYTES (sizeof TAIL - 1)

#define KEPT ((uint64_t)1 << 30) /* of a file, from its beginning, whoever else wants memory */
#define PART ((uint64_t)1 << 26)
#define PARTS_BEHIND 2

static bool fail(rewrite *r)
{
    return complaint_set(r->why, "%s: %s", r->path, pki_target_why(r->path, errno, NULL).text);
}

bool rewrite_open(rewrite *r, const char *path, const char *head, size_t n, complaint *why)
{
    *r = (rewrite){.path = path, .why = why, .file = PKI_TRACE_FILE_NONE};
    r->buffer = memory_resized(NULL, REWRITE_BUFFER);
    bool compressed = pki_ends_with(path, ".gz");
    if (!pki_trace_file_begin(&r->file, path, compressed, head, n, TAIL, TAIL_BYTES, r->part))
        return fail(r);
    output_begins(r->part);
    return true;
}

/* What of a large file is on the disk need not stay in memory, too: nobody reads all of it soon,
 * and what else is cached would have to go. This waits for no page to be written, at most for room
 * among the disk's requests; what is not written by then stays. */
static void leave_memory(rewrite *r)
{
    while (r->file.end >= KEPT + r->asked + PART) {
        sync_file_range(r->file.own.fd, (off_t)(KEPT + r->asked), PART, SYNC_FILE_RANGE_WRITE);
        if (r->asked >= PARTS_BEHIND * PART)
            posix_fadvise(r->file.own.fd, (off_t)(KEPT + r->asked - PARTS_BEHIND * PART), PART,
                          POSIX_FADV_DONTNEED);
        r->asked += PART;
    }
}

static bool flush(rewrite *r)
{
    if (r->used && !pki_trace_file_append(&r->file, r->buffer, r->used, TAIL, TAIL_BYTES))
        return fail(r);
    r->used = 0;
    leave_memory(r);
    return true;
}

bool rewrite_put_more(rewrite *r, const char *text, size_t n)
{
    while (n > 0) {
        size_t part = REWRITE_BUFFER - r->used < n ? REWRITE_BUFFER - r->used : n;
        memcpy(r->buffer + r->used, text, part);
        r->used += part;
        text += part;
        n -= part;
        if (r->used == REWRITE_BUFFER && !flush(r))
            return false;
    }
    return true;
}

bool rewrite_publish(rewrite *r)
{
    if (!flush(r))
        return false;
    pki_trace_file_close(&r->file);
    free(r->buffer);
    r->buffer = NULL;
    output_begins("");
    return pki_file_publish(r->part, r->path) || fail(r);
}

void rewrite_abandon(rewrite *r)
{
    bool created = r->file.own.fd >= 0;
    pki_trace_file_close(&r->file);
    free(r->buffer);
    output_begins("");
    if (created)
        unlink(r->part);
}
