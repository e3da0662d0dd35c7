#include "failing_memory.h"

#include <stdarg.h>
#include <stddef.h>

static _Thread_local long left = -1;
static _Thread_local bool failed, once;

void memory_fails_after(long n)
{
    left = n;
    failed = once = false;
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

static bool fails(void)
{
    if (left != 0) {
        left -= left > 0;
        return false;
    }
    failed = true;
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
