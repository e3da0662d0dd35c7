#include "session/captures/capture_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

typedef struct writer {
    char *at, *end;
    bool full;
} writer;

static void put(writer *w, const char *text, size_t n)
{
    w->full = w->full || n >= (size_t)(w->end - w->at);
    if (w->full)
        return;
    memcpy(w->at, text, n);
    w->at += n;
    *w->at = 0;
}

static writer write_to(char out[PATH_MAX])
{
    *out = 0;
    return (writer){out, out + PATH_MAX, false};
}

/* A plain name as a pattern of itself. */
static void put_plain(writer *w, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(w, text[i] == '%' ? "%%" : &text[i], text[i] == '%' ? 2 : 1);
}

bool pki_capture_path_prepare(const char *path, char out[PATH_MAX])
{
    writer w = write_to(out);
    for (; *path; path++) {
        bool field = path[0] == '%' && (path[1] == 's' || path[1] == '%');
        if (!field)
            put(&w, path, 1);
        else if (*++path == 's')
            put(&w, "%%s", 3);
        else
            put(&w, "%%%%", 4);
    }
    return !w.full;
}

bool pki_capture_path_is_one(const char *pattern)
{
    for (; *pattern; pattern++)
        if (*pattern == '%' && *++pattern == 's')
            return true;
    return false;
}

static const char *ending_of(const char *path)
{
    const char *name = pki_base_name(path);
    const char *ending =
        pki_ends_with(name, ".json.gz") ? path + strlen(path) - 8 : strrchr(name, '.');
    return ending && ending > name ? ending : path + strlen(path);
}

bool pki_capture_path_derive(const char *trace, char out[PATH_MAX])
{
    writer w = write_to(out);
    const char *ending = ending_of(trace);
    put_plain(&w, trace, (size_t)(ending - trace));
    put(&w, "-%s", 3);
    put_plain(&w, ending, strlen(ending));
    return !w.full;
}

bool pki_capture_path_expand(const char *pattern, const char *step, char out[PATH_MAX])
{
    writer w = write_to(out);
    for (; *pattern; pattern++) {
        bool field = pattern[0] == '%' && (pattern[1] == 's' || pattern[1] == '%');
        if (!field)
            put(&w, pattern, 1);
        else if (*++pattern == 's')
            put(&w, step, strlen(step));
        else
            put(&w, "%", 1);
    }
    return !w.full;
}

void pki_capture_path_anchor(char pattern[PATH_MAX])
{
    char folder[PATH_MAX], whole[PATH_MAX];
    if (!pattern[0] || pattern[0] == '/' || !getcwd(folder, sizeof folder))
        return;
    writer w = write_to(whole);
    put_plain(&w, folder, strlen(folder));
    put(&w, "/", 1);
    put(&w, pattern, strlen(pattern));
    if (!w.full)
        memcpy(pattern, whole, (size_t)(w.at - whole) + 1);
}
