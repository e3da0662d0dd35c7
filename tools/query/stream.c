#include "query/stream.h"

#include "base/text.h"

#include <sys/stat.h>

#define GZ_RATIO 12u /* of a trace, to what gzip makes of it */

bool stream_is_worth(const stream_files *files, uint64_t bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < files->count; i++) {
        struct stat about;
        if (stat(files->paths[i], &about) || !S_ISREG(about.st_mode))
            return false;
        sum += (uint64_t)about.st_size * (pki_ends_with(files->paths[i], ".gz") ? GZ_RATIO : 1);
    }
    return files->count > 1 && sum > bytes;
}

/* What is asked of this table alone. */
static rows *make_rows(rows_table of, const rows_wish *wish)
{
    rows_wish one = {.lenient = wish->lenient};
    one.columns[of] = wish->columns[of];
    return rows_create(&one);
}

void stream_begin(stream *s, const stream_files *from, rows_table of, const rows_wish *wish)
{
    *s = (stream){.from = from, .of = of, .rows = make_rows(of, wish)};
}

static bool add(rows *r, const stream_files *from, size_t i, complaint *why)
{
    complaint said = {""};
    return rows_add_file(r, from->paths[i], true, &said) ||
           complaint_set(why, "%s: %s", from->paths[i], said.text);
}

bool stream_next(stream *s, size_t *count, complaint *why)
{
    for (*count = 0; *count == 0 && s->next < s->from->count; s->next++) {
        rows_forget(s->rows);
        if (!add(s->rows, s->from, s->next, why))
            return false;
        *count = (size_t)rows_count(s->rows, s->of);
    }
    return true;
}

rows *stream_whole(const stream_files *from, rows_table of, const rows_wish *wish, complaint *why)
{
    rows *r = make_rows(of, wish);
    for (size_t i = 0; i < from->count; i++)
        if (!add(r, from, i, why)) {
            rows_destroy(r);
            return NULL;
        }
    return r;
}
