/* tools/recover/cut.c - a trace that lost its end: kept up to its last whole line.
 *
 * perfkit writes one event per line, so a line that parses as an object is an event, and the first
 * that does not is where the file was cut.
 */
#include "read/json_read.h"
#include "read/lines.h"
#include "progress.h"
#include "recover/recover.h"
#include "recover/rewrite.h"

#include <string.h>

#define EVENTS "\"traceEvents\":["

static bool is_event(line l)
{
    l = line_trim(l);
    return l.length > 1 && l.text[0] == '{' && json_text_is_object(l.text, l.length);
}

/* Lines up to the one that opens the list of events. */
static bool read_head(lines *from, rewrite *out, recovery *done, complaint *why)
{
    static char head[65536];
    size_t used = 0;
    line l;
    while (lines_next(from, &l) && used + l.length + 1 < sizeof head) {
        memcpy(head + used, l.text, l.length);
        used += l.length;
        head[used++] = '\n';
        if (l.length >= sizeof EVENTS - 1 &&
            memcmp(l.text + l.length - (sizeof EVENTS - 1), EVENTS, sizeof EVENTS - 1) == 0)
            return rewrite_open(out, done->out, head, used - 1, why);
    }
    return why->text[0]
               ? false
               : complaint_set(why, "not a trace of perfkit, or cut before its first event");
}

/* What a line is to the copy. */
typedef enum part { EVENT, END, CUT } part;

static part part_of(line l)
{
    if (l.length && l.text[0] == ']')
        return END; /* the file was whole */
    return is_event(l) ? EVENT : CUT;
}

static bool copy_events(lines *from, rewrite *out, recovery *done, progress *telling)
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
            progress_tell(telling, source_progress(from->from));
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
    progress telling = progress_start(path, true);
    bool written = read_head(&from, &to, done, why) && copy_events(&from, &to, done, &telling) &&
                   rewrite_publish(&to);
    progress_end(&telling);
    if (!written)
        rewrite_abandon(&to);
    lines_close(&from);
    return written;
}
