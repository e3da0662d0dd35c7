#include "session/trace/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "core/registry.h"
#include "out/file.h"
#include "session/activity.h"
#include "session/report/run.h"
#include "session/session.h"
#include "session/trace/rotate.h"

/* ---- the output span in the arena, and the way from there to the file ---- */

#define PKI_TRACE_GONE_TEXT "it was deleted or replaced while it was written"

/* Events go to the file in pieces of so many bytes: what is written soon is still in the cache of
 * the processor that has formatted it. */
#define PKI_OUTPUT_PIECE ((size_t)128 << 10)

/* ---- the commit: see lib/core/arena.h ---- */

uint32_t pki_output_in_force(const pki_session *s)
{
    return s->arena->header->generation & 1;
}

uint32_t pki_output_in_preparation(const pki_session *s)
{
    return !pki_output_in_force(s);
}

static void commit(pki_session *s, bool turns)
{
    pki_arena_header *h = s->arena->header;
    s->pending.ticks = pki_ticks(s->config.monotonic);
    s->pending.history = pki_history_end(s->history);
    h->commit[pki_output_in_preparation(s)] = s->pending;
    pki_store_release(&h->generation, h->generation + 1);
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        uint64_t taken = t->taken[pki_output_in_force(s)];
        t->taken[pki_output_in_preparation(s)] = taken;
        bool same = (taken ^ t->released) >> 32 == 0; /* turn */
        if (taken != t->released && (turns || same))
            pki_spare_release(t, taken);
    }
}

void pki_output_commit(pki_session *s)
{
    commit(s, true);
}

void pki_output_commit_little(pki_session *s)
{
    commit(s, false);
}

/* ---- output ---- */

void pki_output_error(pki_session *s, int error)
{
    pk_status status = pki_status_of_errno(error);
    if (s->error_status != status)
        pki_log(PK_LOG_ERROR, "trace %s: %s; recording goes on, and events not written are counted",
                s->paths.trace, pki_own_why(error));
    s->error_status = s->error_status ? s->error_status : status;
    s->unreported = status;
}

static void (*look_behind)(pki_session *);

/* Who wants to look behind each write that has brought all there was into the file; one, NULL:
 * none.
 */
static void pki_output_on_written(void (*look)(pki_session *))
{
    look_behind = look;
}

void pki_output_write(pki_session *s)
{
    s->last_write = pki_monotonic_ns();
    if (!s->writing || s->full || s->trace_location == PKI_TRACE_GONE || s->pending.buffered == 0)
        return;
    if (!pki_trace_file_append(&s->file, s->buffer, s->pending.buffered, PKI_CHROME_TAIL,
                               sizeof PKI_CHROME_TAIL - 1)) {
        s->stuck = s->full = true;
        pki_output_error(s, errno);
        return;
    }
    s->stuck = false;
    s->file_events = s->pending.events;
    s->pending.file_bytes += s->pending.buffered;
    s->pending.buffered = 0;
    pki_output_commit(s);
    if (look_behind)
        look_behind(s);
}

void pki_output_round(pki_session *s)
{
    s->full = false;
}

void pki_output_check(pki_session *s)
{
    pki_trace_location now = s->writing && s->trace_location != PKI_TRACE_GONE
                                 ? pki_trace_file_location(&s->file, s->trace_at)
                                 : s->trace_location;
    if (now == PKI_TRACE_MOVED && s->trace_location != PKI_TRACE_MOVED)
        pki_log(PK_LOG_WARNING,
                "trace %s: has been moved or renamed; it is written where it is now",
                s->paths.trace);
    s->trace_location = now;
    if (now != PKI_TRACE_GONE)
        return;
    if (s->error_status != PK_EIO)
        pki_log(PK_LOG_ERROR,
                "trace %s: " PKI_TRACE_GONE_TEXT
                "; recording goes on for the report, but the events are lost",
                s->paths.trace);
    s->error_status = s->unreported = PK_EIO;
}

/* Room for one more event: in a buffer that cannot be written out there may be none. */
bool pki_output_room_for(pki_session *s, uint32_t events)
{
    size_t most = (size_t)events * PKI_EVENT_BYTES;
    if (!s->writing || s->trace_location == PKI_TRACE_GONE)
        return false;
    if (pki_output_free(s) < most)
        pki_output_write(s);
    uint64_t size = s->earlier_bytes + s->pending.file_bytes + s->pending.buffered;
    return pki_output_free(s) >= most && size + most <= s->config.trace_max_bytes;
}

bool pki_output_room(pki_session *s)
{
    return pki_output_room_for(s, 1);
}

/* Compressed pieces are larger: each of them ends a block of the stream. */
void pki_output_write_piece(pki_session *s)
{
    size_t piece = s->config.compressed ? PKI_OUTPUT_BYTES / 2 : PKI_OUTPUT_PIECE;
    if (s->pending.buffered >= piece)
        pki_output_write(s);
}

void pki_output_wrote(pki_session *s, size_t n, unsigned events)
{
    s->pending.buffered += n;
    s->pending.events += events;
}

void pki_output_counts(const pki_session *s, pk_counts *c)
{
    bool gone = s->trace_location == PKI_TRACE_GONE;
    c->written = gone ? 0 : s->file_events;
    c->unwritten = s->pending.unwritten + (s->stuck || gone ? s->pending.events - c->written : 0);
    c->trace_bytes = s->earlier_bytes + s->pending.file_bytes;
}

const char *pki_output_error_text(const pki_session *s, pk_status status)
{
    return s->trace_location == PKI_TRACE_GONE ? PKI_TRACE_GONE_TEXT : pk_status_text(status);
}

/* ---- what stands behind the events of a trace ---- */

#define MEMBERS 8

typedef struct member {
    char *key, *json;
} member;

static member members[MEMBERS];
static size_t count;

static void after_fork(void)
{
    count = 0; /* it may be half of something */
}

void pki_tail_reset(void)
{
    for (size_t i = 0; i < count; i++) {
        free(members[i].key);
        free(members[i].json);
    }
    count = 0;
}

void pki_tail_set(const char *key, const char *json)
{
    member m = {strdup(key), strdup(json)};
    size_t i = 0;
    while (i < count && strcmp(members[i].key, key) != 0)
        i++;
    if (!m.key || !m.json || i == MEMBERS) {
        free(m.key);
        free(m.json);
        return;
    }
    if (i < count) {
        free(members[i].key);
        free(members[i].json);
    }
    members[i] = m;
    count = PKI_MAX(count, i + 1);
}

char *pki_tail_text(const char *report, size_t n, size_t *bytes)
{
    static const char before[] = "\n]", name[] = ",\"perfkitReport\":", after[] = "}\n";
    size_t room = sizeof before + sizeof name + n + sizeof after;
    for (size_t i = 0; i < count; i++)
        room += strlen(members[i].key) + strlen(members[i].json) + sizeof ",\n\"\":";
    char *text = malloc(room);
    if (!text)
        return NULL;
    size_t at = (size_t)snprintf(text, room, "%s", before);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, room - at, ",\"%s\":%s", members[i].key, members[i].json);
    at += (size_t)snprintf(text + at, room - at, "%s", name);
    memcpy(text + at, report, n);
    memcpy(text + at + n, after, sizeof after - 1);
    *bytes = at + n + sizeof after - 1;
    return text;
}

const pki_service pki_service_tail = {
    .name = "tail",
    .reset = pki_tail_reset,
    .after_fork = after_fork,
};

/* ---- a trace in several files, each one whole by itself ---- */

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
} rotation;

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
    const made *m = &rotation.kept[part % s->config.trace_keep];
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
    rotation.kept[part % keep] = (made){file->st_dev, file->st_ino};
    for (; rotation.oldest + keep - 1 <= part; rotation.oldest++)
        remove_part(s, rotation.oldest);
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
    rotation.events = s->pending.events;
    return true;
}

/* Behind a write, when nothing waits: the next one is of no more than there is room for. */
static void rotate_if_due(pki_session *s)
{
    bool due = s->file.length + PKI_PART_END + PKI_PART_LEAST > s->config.trace_rotate_bytes;
    if (!due || s->pending.events == rotation.events ||
        pki_trace_file_location(&s->file, s->trace_at) != PKI_TRACE_THERE)
        return;
    bool done = rotate(s);
    if (!done && !rotation.failing)
        pki_log(PK_LOG_WARNING,
                "trace %s: the next file cannot be made: %s; writing goes on in this one",
                s->paths.trace, pki_own_why(errno));
    rotation.failing = !done;
}

void pki_rotate_open(pki_session *s)
{
    memset(&rotation, 0, sizeof rotation);
    rotation.oldest = 1;
    if (!s->config.trace_rotate_bytes || !s->writing)
        return;
    if (s->config.trace_keep) {
        rotation.kept = calloc(s->config.trace_keep, sizeof *rotation.kept);
        if (!rotation.kept)
            return;
    }
    pki_output_on_written(rotate_if_due);
}

void pki_rotate_close(void)
{
    pki_output_on_written(NULL);
    free(rotation.kept);
    rotation.kept = NULL;
}
