/* tools/recover/cut.c - a trace that lost its end: kept up to its last whole line.
 *
 * perfkit writes one event per line, so a line that parses as an object is an event, and the first
 * that does not is where the file was cut.
 */
#include "read/json.h"
#include "recover/recover.h"
#include "recover/rewrite.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

#define EVENTS "\"traceEvents\":["

static bool is_event(line l)
{
    bool too_large;
    l = line_trim(l);
    return l.length > 1 && l.text[0] == '{' && document_is_object(l, &too_large);
}

/* As perfkit writes it; what others write may go on in another way than ours. */
static bool is_head(json_t *head, line text)
{
    size_t length = sizeof EVENTS - 1;
    return json_is_object(head) && text.length > length &&
           memcmp(text.text + text.length - 1 - length, EVENTS, length) == 0;
}

static bool copy_head(lines *from, rewrite *out, recovery *done, complaint *why)
{
    json_t *head;
    line text;
    bool copied = trace_read_head(from, &head, &text, why);
    if (copied && !is_head(head, text))
        copied = complaint_set(why, "not a trace of perfkit, or cut before its first event");
    copied = copied && rewrite_open(out, done->out, text.text, text.length - 1, why);
    json_decref(head);
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

bool recover_cut(const char *path, const char *out, recovery *done, complaint *why)
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
