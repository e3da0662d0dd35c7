#include "base/arguments.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/small_file.h"

#define HIDDEN "***"
#define COMMAND_MOST 8192

static bool is_secret(const char *text, size_t n)
{
    static const char *const words[] = {"passw",   "secret",  "token",   "credential",
                                        "apikey",  "api-key", "api_key", "auth",
                                        "private", "-key",    "_key"};
    char lower[256];
    size_t length = PKI_MIN(n, sizeof lower - 1);
    for (size_t i = 0; i < length; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    lower[length] = 0;
    for (size_t i = 0; i < PKI_COUNT_OF(words); i++)
        if (strstr(lower, words[i]))
            return true;
    return false;
}

typedef struct writer {
    char *out;
    size_t used, size;
} writer;

static void put(writer *w, const char *text, size_t n)
{
    size_t fits = PKI_MIN(n, w->size - 1 - w->used);
    memcpy(w->out + w->used, text, fits);
    w->used += fits;
    w->out[w->used] = 0;
}

static void put_text(writer *w, const char *text)
{
    put(w, text, strlen(text));
}

/* "https://user:word@host": what stands between // and @ is nobody's business. */
static void put_value(writer *w, const char *text, size_t n)
{
    const char *user = memmem(text, n, "://", 3);
    const char *at = user ? memchr(user, '@', n - (size_t)(user - text)) : NULL;
    const char *path = user ? memchr(user + 3, '/', n - (size_t)(user + 3 - text)) : NULL;
    if (!at || (path && path < at)) {
        put(w, text, n);
        return;
    }
    put(w, text, (size_t)(user + 3 - text));
    put_text(w, HIDDEN);
    put(w, at, n - (size_t)(at - text));
}

/* "--token=x", "TOKEN=x": what follows the =. */
static void put_argument(writer *w, const char *text, size_t n)
{
    const char *equals = memchr(text, '=', n);
    bool blank = memchr(text, ' ', n) || memchr(text, '\t', n) || n == 0;
    put_text(w, blank ? "'" : "");
    if (equals && is_secret(text, (size_t)(equals - text))) {
        put(w, text, (size_t)(equals + 1 - text));
        put_text(w, HIDDEN);
    } else {
        put_value(w, text, n);
    }
    put_text(w, blank ? "'" : "");
}

void pki_arguments_show(const char *arguments, size_t length, char *out, size_t size)
{
    writer w = {out, 0, size};
    bool secret = false;
    out[0] = 0;
    for (size_t at = 0; at < length;) {
        const char *text = arguments + at;
        size_t n = strnlen(text, length - at);
        put_text(&w, at ? " " : "");
        bool option = n > 1 && text[0] == '-';
        if (secret && !option)
            put_text(&w, HIDDEN);
        else
            put_argument(&w, text, n);
        secret = option && !memchr(text, '=', n) && is_secret(text, n);
        at += n + 1;
    }
    if (w.used + 4 >= size)
        memcpy(out + size - 4, "...", 4);
}

void pki_arguments_read(char *out, size_t size)
{
    char text[COMMAND_MOST];
    size_t n = pki_small_file("/proc/self/cmdline", text, sizeof text);
    pki_arguments_show(text, n, out, size);
}
