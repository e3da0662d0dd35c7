/* tools/recover/arena.c - file + buffer + rings + open regions = the trace of a killed run. */
#include "base/text.h"
#include "history/salvage.h"
#include "out/file.h"
#include "out/salvage.h"
#include "files.h"
#include "recover/recover.h"
#include "recover/rewrite.h"
#include "read/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 65536

static bool count_only(void *user, const char *event, size_t n)
{
    (void)user, (void)event, (void)n;
    return true;
}

static bool put_event(void *user, const char *event, size_t n)
{
    return rewrite_put(user, event, n);
}

/* A run with a trace has in it, and in its buffer, all that its history holds. */
static bool has_trace(const pki_salvage *s)
{
    return s->header->output_bytes != 0;
}

/* A first walk for the counts that the head wants. */
static size_t make_head(const char *path, char head[PKI_HEAD_BYTES], recovery *done, complaint *why)
{
    pki_salvage s;
    if (!pki_salvage_open(&s, path)) {
        complaint_set(why, "%s", s.why);
        return 0;
    }
    uint64_t before = s.commit.events;
    if (!has_trace(&s))
        pki_history_salvage(&s, count_only, NULL);
    pki_salvage_events(&s, count_only, NULL);
    done->events = s.commit.events;
    done->from_memory = s.commit.events - before;
    size_t n = pki_salvage_head(&s, head);
    pki_salvage_close(&s);
    return n;
}

/* Where the parts of a trace are put together one event ends and another begins; anything else, and
 * the arena and the trace do not belong together, or one of them is spoilt. `next` is what stands
 * behind the end, if anything does: an event that has arguments ends in two braces. */
static bool is_seam(const char *before, const char *next, const char *behind, size_t left)
{
    return (!before || *before == '}') && (!next || *next != '}') &&
           (!behind || memcmp(behind, ",\n", left < 2 ? left : 2) == 0);
}

/* No line break stands within an event: are the braces of the last one closed? */
static bool ends_whole(const char *text, size_t n)
{
    size_t at = n;
    int open = 0;
    bool quoted = false;
    while (at > 0 && text[at - 1] != '\n')
        at--;
    for (; at < n; at++) {
        if (quoted && text[at] == '\\')
            at++;
        else if (text[at] == '"')
            quoted = !quoted;
        else if (!quoted)
            open += (text[at] == '{') - (text[at] == '}');
    }
    return open == 0 && !quoted;
}

/* The part of a piece that lies between two offsets of the whole. */
static bool put_part(rewrite *out, const char *piece, uint64_t at, uint64_t n, uint64_t skip,
                     uint64_t until, complaint *why)
{
    uint64_t from = skip > at ? skip - at : 0;
    uint64_t to = until - at < n ? until - at : n;
    if (from >= to)
        return true;
    bool last = at + to == until;
    if (!is_seam(last ? &piece[to - 1] : NULL, last && to < n ? &piece[to] : NULL,
                 at + from == skip ? &piece[from] : NULL, (size_t)(to - from)))
        return complaint_set(why, "it does not fit to its trace");
    return rewrite_put(out, piece + from, (size_t)(to - from));
}

static bool copy_pieces(source *in, uint64_t skip, uint64_t until, rewrite *out, progress *shown,
                        complaint *why)
{
    char piece[PIECE];
    for (uint64_t at = 0; at < until;) {
        long n = source_read(in, piece, sizeof piece, why);
        if (n == 0)
            return complaint_set(why, "its trace has been cut: less is there than was written");
        if (n < 0 || !put_part(out, piece, at, (uint64_t)n, skip, until, why))
            return false;
        at += (uint64_t)n;
        progress_show(shown, (double)at / (double)until);
    }
    return true;
}

/* Copies what the trace file is known to hold, all but its head: the new one has its length. */
static bool copy_trace(const char *trace, uint64_t skip, uint64_t until, rewrite *out,
                       complaint *why)
{
    source *in = source_open(trace, why);
    progress shown = progress_start(trace, true);
    bool copied = in && copy_pieces(in, skip, until, out, &shown, why);
    progress_end(&shown);
    source_close(in);
    return copied;
}

static bool put_all(pki_salvage *s, const char *trace, size_t head_bytes, rewrite *out,
                    complaint *why)
{
    size_t n;
    const char *buffer = pki_salvage_buffer(s, &n);
    if (!has_trace(s) && !s->header->history)
        return complaint_set(why, "the run wrote no trace and kept no history");
    if (!has_trace(s))
        return pki_history_salvage(s, put_event, out) && pki_salvage_events(s, put_event, out);
    if (n && (!is_seam(&buffer[n - 1], NULL, buffer, n) || !ends_whole(buffer, n)))
        return complaint_set(why, "damaged: its text is not what was written");
    return copy_trace(trace, head_bytes, s->commit.file_bytes, out, why) &&
           rewrite_put(out, buffer, n) && pki_salvage_events(s, put_event, out);
}

static bool recover_arena(const char *path, const char *trace, const char *out, recovery *done,
                          complaint *why)
{
    char head[PKI_HEAD_BYTES];
    pki_salvage s;
    rewrite to;
    size_t head_bytes = make_head(path, head, done, why);
    if (!head_bytes)
        return false;
    if (!pki_salvage_open(&s, path))
        return complaint_set(why, "%s", s.why);
    bool written = rewrite_open(&to, out, head, head_bytes, why) &&
                   put_all(&s, trace, head_bytes, &to, why) && rewrite_publish(&to);
    if (!written)
        rewrite_abandon(&to);
    pki_salvage_close(&s);
    done->was_arena = true;
    return written;
}

/* ---- a trace in several files (lib/session/trace/rotate.h) ---- */

static bool is_of_run(const char *path, uint64_t start_unix)
{
    char text[512], wanted[64];
    complaint why = {""};
    source *in = source_open(path, &why);
    long n = in ? source_read(in, text, sizeof text - 1, &why) : 0;
    source_close(in);
    if (n <= 0)
        return false;
    text[n] = 0;
    snprintf(wanted, sizeof wanted, "\"baseTimeNanoseconds\":%llu,",
             (unsigned long long)start_unix);
    return strstr(text, wanted) != NULL;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A run that was killed as it went on to another file: what its arena completes has a part's name
 * already, alone or beside its first one. */
static void find_part(const pki_salvage *s, char trace[PATH_MAX])
{
    char part[PATH_MAX];
    uint32_t number = (uint32_t)s->commit.part + 1;
    if (!pki_part_name(trace, number, part) || !is_of_run(part, s->header->start_unix))
        return;
    if (is_same_file(part, trace))
        unlink(part);
    else
        snprintf(trace, PATH_MAX, "%s", part);
}

/* Beside the arena, or where the run had it (an arena_path of its own lies elsewhere). A path out
 * of a file is believed if the trace there is of that very run. */
static bool find_whole(const pki_salvage *s, const char *arena, char trace[PATH_MAX],
                       complaint *why)
{
    const pki_arena_header *h = s->header;
    bool named = pki_ends_with(arena, ".arena");
    snprintf(trace, PATH_MAX, "%.*s", named ? (int)(strlen(arena) - strlen(".arena")) : 0, arena);
    if (named && (access(trace, F_OK) == 0 || !h->trace_name[0]))
        return true;
    if (!h->trace_name[0])
        return complaint_set(why, "the name of an arena ends in .arena; with another one say where "
                                  "its trace goes (-o)");
    if (!memchr(h->trace_path, 0, sizeof h->trace_path))
        return complaint_set(why, "damaged: its header makes no sense");
    snprintf(trace, PATH_MAX, "%s", h->trace_path);
    if (is_of_run(trace, h->start_unix))
        return true;
    char before[PATH_MAX];
    int n = snprintf(before, sizeof before, "%s.prev", trace); /* the next run has found it */
    if (n < PATH_MAX && is_of_run(before, h->start_unix)) {
        snprintf(trace, PATH_MAX, "%s", before);
        return true;
    }
    return complaint_set(why, "its trace %s %s: --trace says where it is now", trace,
                         access(trace, F_OK) == 0 ? "is another run's" : "is not there");
}

static bool find_trace(const char *arena, const recovery_wish *wish, char trace[PATH_MAX],
                       complaint *why)
{
    pki_salvage s;
    if (!pki_salvage_open(&s, arena))
        return complaint_set(why, "%s", s.why);
    bool found = true;
    if (wish->trace)
        snprintf(trace, PATH_MAX, "%s", wish->trace);
    else
        found = find_whole(&s, arena, trace, why);
    if (found)
        find_part(&s, trace);
    pki_salvage_close(&s);
    return found;
}

static bool recover_other(const char *path, const char *out, recovery *done, complaint *why)
{
    if (pki_ends_with(path, ".arena") && pki_salvage_is_blank(path)) {
        int writer = pki_salvage_writer(path);
        return writer ? complaint_set(why, "process %d is still writing it", writer)
                      : complaint_set(why, "%s", PKI_SALVAGE_UNFINISHED);
    }
    snprintf(done->out, sizeof done->out, "%s", out ? out : "");
    return out ? recover_cut(path, out, done, why)
               : complaint_set(why, "not an arena; to mend a trace, say where it goes with -o");
}

bool recover_file(const char *path, const recovery_wish *wish, recovery *done, complaint *why)
{
    char trace[PATH_MAX];
    if (access(path, R_OK) != 0)
        return complaint_set(why, "%s", strerror(errno));
    if (!pki_salvage_recognise(path))
        return recover_other(path, wish->out, done, why);
    int writer = pki_salvage_writer(path);
    if (writer > 0)
        return complaint_set(why, "process %d is still writing it", writer);
    if (writer < 0)
        return complaint_set(why, "another process is still writing it");
    if (!find_trace(path, wish, trace, why))
        return false;
    snprintf(done->out, sizeof done->out, "%s", wish->out ? wish->out : trace);
    return recover_arena(path, trace, done->out, done, why);
}
