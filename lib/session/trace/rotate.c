#include "session/trace/rotate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "out/file.h"
#include "session/activity.h"
#include "session/trace/output.h"
#include "session/report/run.h"

/* A file that was made, so that nobody else's is removed. */
typedef struct made {
    dev_t device;
    ino_t inode;
} made;

static struct {
    made *kept; /* those of part n at n % trace_keep */
    uint32_t oldest;
    uint64_t events; /* up to the file that is written */
    bool failing;    /* said once */
} now;

/* ---- what each file begins with ---- */

typedef struct beginning {
    pki_session *session;
    pki_trace_file file;
    uint64_t bytes; /* of text */
    size_t used;    /* of the output span */
    bool failed;
    char temporary[PATH_MAX];
} beginning;

static void write_beginning(beginning *b)
{
    pki_session *s = b->session;
    b->failed = b->failed || !pki_trace_file_append(&b->file, s->buffer, b->used, PKI_CHROME_TAIL,
                                                    sizeof PKI_CHROME_TAIL - 1);
    b->bytes += b->used;
    b->used = 0;
}

/* Nothing waits in the output span, so it is free for this. */
static void put(void *user, const char *text, size_t n)
{
    beginning *b = user;
    if (PKI_OUTPUT_BYTES - b->used < n)
        write_beginning(b);
    memcpy(b->session->buffer + b->used, text, n);
    b->used += n;
}

static void emit_thread(beginning *b, pki_thread *t)
{
    char event[PKI_EVENT_BYTES], name[sizeof t->name];
    pki_registry_lock();
    memcpy(name, t->name, sizeof name);
    bool named = t->name_written != 0;
    pki_registry_unlock();
    if (named)
        put(b, event, pki_chrome_thread(&b->session->chrome, event, t->tid, name, t->index));
}

static void emit_threads(beginning *b)
{
    const pki_session *s = b->session;
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry) && !b->failed; i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        if (pki_load(&t->life) != PKI_THREAD_FREE)
            emit_thread(b, t);
    }
}

static bool begin(beginning *b)
{
    char head[PKI_HEAD_BYTES];
    pki_chrome_run run;
    pki_session *s = b->session;
    pki_run_describe(s, false, &run);
    size_t n = pki_chrome_head(&s->chrome, head, &run);
    if (!pki_trace_file_begin(&b->file, s->trace_at, s->config.compressed, head, n, PKI_CHROME_TAIL,
                              sizeof PKI_CHROME_TAIL - 1, b->temporary))
        return false;
    b->bytes = n;
    emit_threads(b);
    pki_activity_repeat_metadata(put, b);
    write_beginning(b);
    if (!b->failed)
        return true;
    int error = errno;
    pki_trace_file_close(&b->file);
    unlink(b->temporary);
    errno = error;
    return false;
}

/* ---- names ---- */

/* A second name for what is written, in the place of an older run's part. Without hard links it
 * loses the first one for a moment. */
static bool name_part(const char *path, const char *part)
{
    if (!pki_target_is_free(part))
        return false;
    if (link(path, part) == 0)
        return true;
    if (errno == EEXIST && unlink(part) == 0 && link(path, part) == 0)
        return true;
    return rename(path, part) == 0;
}

static bool swap(const beginning *b, const char *part)
{
    const char *path = b->session->trace_at;
    if (!name_part(path, part)) {
        int error = errno;
        unlink(b->temporary);
        errno = error;
        return false;
    }
    if (pki_file_publish(b->temporary, path))
        return true;
    int error = errno;
    if (access(path, F_OK) == 0 || rename(part, path) != 0)
        unlink(part);
    errno = error;
    return false;
}

static void remove_part(const pki_session *s, uint32_t part)
{
    struct stat file;
    char name[PATH_MAX];
    const made *m = &now.kept[part % s->config.trace_keep];
    if (pki_part_name(s->trace_at, part, name) && lstat(name, &file) == 0 &&
        file.st_dev == m->device && file.st_ino == m->inode)
        unlink(name);
}

/* trace_keep files stay, with the one that is written. */
static void note_part(const pki_session *s, uint32_t part, const struct stat *file)
{
    uint32_t keep = s->config.trace_keep;
    if (!keep)
        return;
    now.kept[part % keep] = (made){file->st_dev, file->st_ino};
    for (; now.oldest + keep - 1 <= part; now.oldest++)
        remove_part(s, now.oldest);
}

/* ---- from one file to the next ---- */

static void close_part(pki_session *s, pki_trace_file *file)
{
    char head[PKI_HEAD_BYTES];
    pki_chrome_run run;
    pki_run_describe(s, true, &run);
    pki_trace_file_rewrite_head(file, head, pki_chrome_head(&s->chrome, head, &run));
    pki_trace_file_close(file);
}

static void describe(const pki_session *s, char text[40])
{
    snprintf(text, 40, "{\"part\":%u}", (unsigned)s->pending.part + 1);
}

static bool end_part(pki_session *s)
{
    char text[40], tail[96];
    describe(s, text);
    int n = snprintf(tail, sizeof tail, "\n],\n\"perfkitPart\":%s}\n", text);
    return pki_trace_file_append(&s->file, "", 0, tail, (size_t)n);
}

static bool rotate(pki_session *s)
{
    beginning b = {.session = s};
    struct stat old;
    char name[PATH_MAX], text[40];
    uint32_t part = (uint32_t)s->pending.part + 1;
    if (!pki_part_name(s->trace_at, part, name) || fstat(s->file.own.fd, &old) != 0 || !begin(&b))
        return false;
    if (!end_part(s) || !swap(&b, name)) {
        int error = errno;
        pki_trace_file_close(&b.file);
        errno = error;
        return false;
    }
    pki_trace_file before = s->file;
    s->file = b.file;
    s->earlier_bytes += s->pending.file_bytes;
    s->pending.file_bytes = b.bytes;
    s->pending.part = part;
    pki_output_commit(s);
    close_part(s, &before);
    note_part(s, part, &old);
    describe(s, text);
    pki_tail_set("perfkitPart", text);
    now.events = s->pending.events;
    return true;
}

/* Behind a write, when nothing waits: the next one is of no more than there is room for. */
static void rotate_if_due(pki_session *s)
{
    bool due = s->file.length + PKI_PART_END + PKI_PART_LEAST > s->config.trace_rotate_bytes;
    if (!due || s->pending.events == now.events ||
        pki_trace_file_location(&s->file, s->trace_at) != PKI_TRACE_THERE)
        return;
    bool done = rotate(s);
    if (!done && !now.failing)
        pki_log(PK_LOG_WARNING,
                "trace %s: the next file cannot be made: %s; writing goes on in this one",
                s->paths.trace, pki_own_why(errno));
    now.failing = !done;
}

void pki_rotate_open(pki_session *s)
{
    memset(&now, 0, sizeof now);
    now.oldest = 1;
    if (!s->config.trace_rotate_bytes || !s->writing)
        return;
    if (s->config.trace_keep) {
        now.kept = calloc(s->config.trace_keep, sizeof *now.kept);
        if (!now.kept)
            return;
    }
    pki_output_on_written(rotate_if_due);
}

void pki_rotate_close(void)
{
    pki_output_on_written(NULL);
    free(now.kept);
    now.kept = NULL;
}
