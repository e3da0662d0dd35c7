#include "recover/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/text.h"
#include "command.h"
#include "files.h"
#include "history/salvage.h"
#include "memory.h"
#include "out/chrome/chrome.h"
#include "out/salvage.h"
#include "read/source.h"
#include "read/token.h"
#include "trace/trace.h"

static bool recover_cut(const char *path, const char *out, recovery *done, complaint *why);

/* ---- a trace written anew: under another name until it is whole ---- */

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

/* ---- file + buffer + rings + open regions = the trace of a killed run ---- */

#define PIECE 65536

static bool count_only(void *user, const char *text, size_t n)
{
    (void)user, (void)text, (void)n;
    return true;
}

static bool put_event(void *user, const char *text, size_t n)
{
    return rewrite_put(user, text, n);
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
static bool copy_trace(const char *trace_path, uint64_t skip, uint64_t until, rewrite *out,
                       complaint *why)
{
    source *in = source_open(trace_path, why);
    progress shown = progress_start(trace_path, true);
    bool copied = in && copy_pieces(in, skip, until, out, &shown, why);
    progress_end(&shown);
    source_close(in);
    return copied;
}

static bool put_all(pki_salvage *s, const char *trace_path, size_t head_bytes, rewrite *out,
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
    return copy_trace(trace_path, head_bytes, s->commit.file_bytes, out, why) &&
           rewrite_put(out, buffer, n) && pki_salvage_events(s, put_event, out);
}

static bool recover_arena(const char *path, const char *trace_path, const char *out, recovery *done,
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
                   put_all(&s, trace_path, head_bytes, &to, why) && rewrite_publish(&to);
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
static void find_part(const pki_salvage *s, char trace_path[PATH_MAX])
{
    char part[PATH_MAX];
    uint32_t number = (uint32_t)s->commit.part + 1;
    if (!pki_part_name(trace_path, number, part) || !is_of_run(part, s->header->start_unix))
        return;
    if (is_same_file(part, trace_path))
        unlink(part);
    else
        snprintf(trace_path, PATH_MAX, "%s", part);
}

/* Beside the arena, or where the run had it (an arena_path of its own lies elsewhere). A path out
 * of a file is believed if the trace there is of that very run. */
static bool find_whole(const pki_salvage *s, const char *arena, char trace_path[PATH_MAX],
                       complaint *why)
{
    const pki_arena_header *h = s->header;
    bool named = pki_ends_with(arena, ".arena");
    snprintf(trace_path, PATH_MAX, "%.*s", named ? (int)(strlen(arena) - strlen(".arena")) : 0,
             arena);
    if (named && (access(trace_path, F_OK) == 0 || !h->trace_name[0]))
        return true;
    if (!h->trace_name[0])
        return complaint_set(why, "the name of an arena ends in .arena; with another one say where "
                                  "its trace goes (-o)");
    if (!memchr(h->trace_path, 0, sizeof h->trace_path))
        return complaint_set(why, "damaged: its header makes no sense");
    snprintf(trace_path, PATH_MAX, "%s", h->trace_path);
    if (is_of_run(trace_path, h->start_unix))
        return true;
    char before[PATH_MAX];
    int n = snprintf(before, sizeof before, "%s.prev", trace_path); /* the next run has found it */
    if (n < PATH_MAX && is_of_run(before, h->start_unix)) {
        snprintf(trace_path, PATH_MAX, "%s", before);
        return true;
    }
    return complaint_set(why, "its trace %s %s: --trace says where it is now", trace_path,
                         access(trace_path, F_OK) == 0 ? "is another run's" : "is not there");
}

static bool find_trace(const char *arena, const recovery_wish *wish, char trace_path[PATH_MAX],
                       complaint *why)
{
    pki_salvage s;
    if (!pki_salvage_open(&s, arena))
        return complaint_set(why, "%s", s.why);
    bool found = true;
    if (wish->trace)
        snprintf(trace_path, PATH_MAX, "%s", wish->trace);
    else
        found = find_whole(&s, arena, trace_path, why);
    if (found)
        find_part(&s, trace_path);
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
    char trace_path[PATH_MAX];
    if (access(path, R_OK) != 0)
        return complaint_set(why, "%s", strerror(errno));
    if (!pki_salvage_recognise(path))
        return recover_other(path, wish->out, done, why);
    int writer = pki_salvage_writer(path);
    if (writer > 0)
        return complaint_set(why, "process %d is still writing it", writer);
    if (writer < 0)
        return complaint_set(why, "another process is still writing it");
    if (!find_trace(path, wish, trace_path, why))
        return false;
    snprintf(done->out, sizeof done->out, "%s", wish->out ? wish->out : trace_path);
    return recover_arena(path, trace_path, done->out, done, why);
}

/* ---- a trace that lost its end: kept up to its last whole line ---- */

/* Perfkit writes one event per line, so a line that parses as an object is an event, and the first
 * that does not is where the file was cut. */

#define EVENTS "\"traceEvents\":["

static bool is_event(line l)
{
    l = line_trim(l);
    return l.length > 1 && l.text[0] == '{' && token_is_object(l.text, l.length);
}

/* As perfkit writes it; what others write may go on in another way than ours. */
static bool is_head(trace_head head, line text)
{
    size_t length = sizeof EVENTS - 1;
    return head == HEAD_OBJECT && text.length > length &&
           memcmp(text.text + text.length - 1 - length, EVENTS, length) == 0;
}

static bool copy_head(lines *from, rewrite *out, recovery *done, complaint *why)
{
    trace_head head;
    trace_about about;
    line text;
    bool copied = trace_read_head(from, &head, &about, &text);
    if (copied && !is_head(head, text))
        copied = complaint_set(why, "not a trace of perfkit, or cut before its first event");
    copied = copied && rewrite_open(out, done->out, text.text, text.length - 1, why);
    trace_about_forget(&about);
    free(text.text);
    return copied;
}

/* What a line is to the copy. */
typedef enum part { EVENT, END, CUT } part;

static part part_of(line l)
{
    if (l.length && l.text[0] == ']')
        return END; /* the file was whole */
    return is_event(l) ? EVENT : CUT;
}

static bool copy_events(lines *from, rewrite *out, recovery *done, progress *shown)
{
    line l;
    while (lines_next(from, &l)) {
        part what = part_of(l);
        done->cut_bytes = what == CUT ? l.length : 0;
        if (what != EVENT)
            return true;
        l = line_trim(l);
        if (!rewrite_put(out, done->events ? ",\n" : "\n", done->events ? 2 : 1) ||
            !rewrite_put(out, l.text, l.length))
            return false;
        if (++done->events % 4096 == 0)
            progress_show(shown, source_progress(from->from));
    }
    /* The end of a file after a crash may be any amount of zeros. */
    if (from->overlong)
        done->cut_bytes = from->end - from->start;
    return from->overlong || !from->failed;
}

/* Of a trace; out is not NULL. */
static bool recover_cut(const char *path, const char *out, recovery *done, complaint *why)
{
    lines from;
    rewrite to = {.file = PKI_TRACE_FILE_NONE};
    (void)out;
    if (!lines_open(&from, path, LINES_LONGEST, why))
        return false;
    progress shown = progress_start(path, true);
    bool written = copy_head(&from, &to, done, why) && copy_events(&from, &to, done, &shown) &&
                   rewrite_publish(&to);
    progress_end(&shown);
    if (!written)
        rewrite_abandon(&to);
    lines_close(&from);
    return written;
}

/* ---- pk recover ---- */

/* A whole trace from what a killed run has left, or from a trace that was cut. */

typedef struct wish {
    recovery_wish is;
    operands files;
} wish;

static bool parse_output(void *to, const option_given *given)
{
    wish *w = to;
    if (given->text && w->is.out)
        return complain("recover: -o needs the name of one file (pk recover --help)"), false;
    return option_text(to, given);
}

static const option all_options[] = {
    {"-o", "TRACE",
     "where the trace goes (.gz: compressed). Without it an arena's trace is completed in its "
     "place; a cut trace is never overwritten unasked",
     PKI_OPTION_FILE, parse_output, offsetof(wish, is.out),
     .needs = "the name of a file (pk recover --help)"},
    {"--trace", "FILE",
     "the trace that the run wrote, if it lies neither beside the arena nor where the run had it",
     PKI_OPTION_FILE, option_text, offsetof(wish, is.trace),
     .needs = "the name of a file (pk recover --help)"},
};

static const option_table command_options = {
    .command = "recover",
    .usage = "FILE [-o TRACE]",
    .about =
        "Completes the trace of a run that was killed, or a trace that was cut. FILE is\n"
        "  an arena      the file ending in .arena that a killed run leaves beside its trace, or\n"
        "                where arena_path had it: the trace is completed by what was still in\n"
        "                memory, and regions that were open at the end are closed there and\n"
        "                marked\n"
        "  a cut trace   (.gz too): kept up to its last whole line",
    .notes = "The arena is left where it is. Exit status: 0; 2 if FILE cannot be used.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .files = "arena json gz",
    .who = "recover: ",
    .operands = offsetof(wish, files),
};

int command_recover(int argc, char **argv)
{
    wish w = {0};
    complaint why = {""};
    recovery done = {0};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    const char *path = w.files.all[0];
    if (!w.files.count)
        return complain("recover needs a file (pk recover --help)");
    if (w.files.count > 1)
        return complain("recover takes one file: \"%s\" or \"%s\"?", path, w.files.all[1]);
    if (!recover_file(path, &w.is, &done, &why))
        return complain("%s: %s", path, why.text);
    if (done.from_memory || done.was_arena)
        printf("%s: %llu events, %llu of them from memory\n", done.out,
               (unsigned long long)done.events, (unsigned long long)done.from_memory);
    else
        printf("%s: %llu lines kept, %llu bytes of a cut line dropped\n", done.out,
               (unsigned long long)done.events, (unsigned long long)done.cut_bytes);
    return EXIT_OK;
}
