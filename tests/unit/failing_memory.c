#include "failing_memory.h"

#include "ways.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#define WATCHED_MOST 8192

static _Thread_local long left = -1;
static _Thread_local bool failed, once, watching;

static ways seen;
static long watched[WATCHED_MOST], watched_total;
static size_t watched_count;

void memory_fails_after(long n)
{
    left = n;
    failed = once = watching = false;
}

void memory_fails_once(long n)
{
    memory_fails_after(n);
    once = true;
}

bool memory_has_failed(void)
{
    return failed;
}

void memory_watch(long n)
{
    memset(&seen, 0, sizeof seen);
    memory_watch_on(n);
}

void memory_watch_on(long n)
{
    (void)n;
    memory_fails_after(-1);
    watched_count = 0;
    watched_total = 0;
    watching = true;
}

const long *memory_watched(size_t *count, long *total)
{
    *count = watched_count;
    *total = watched_total;
    return watched;
}

static void watch(void)
{
    watching = false; /* what looks for the way may allocate */
    if (way_tells(ways_count(&seen, way_here())) && watched_count < WATCHED_MOST)
        watched[watched_count++] = watched_total;
    watched_total++;
    watching = true;
}

static bool fails(void)
{
    if (watching)
        watch();
    if (left != 0) {
        left -= left > 0;
        return false;
    }
    failed = true;
    errno = ENOMEM;
    left = once ? -1 : 0;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t most);
int __real_vasprintf(char **out, const char *format, va_list args);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
int __wrap_vasprintf(char **out, const char *format, va_list args);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return fails() ? NULL : __real_realloc(block, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t most)
{
    return fails() ? NULL : __real_strndup(text, most);
}

int __wrap_vasprintf(char **out, const char *format, va_list args)
{
    return fails() ? -1 : __real_vasprintf(out, format, args);
}
