#include "core/function.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"

/* ---- signatures: RETURNED [NAMESPACE::CLASS::]NAME(PARAMETERS) [const ...] [[with T = ...]] ----
 */

static size_t without_template_arguments(const char *s, size_t n)
{
    const char *with = memmem(s, n, " [", 2);
    return with && s[n - 1] == ']' ? (size_t)(with - s) : n;
}

/* The parenthesis that opens what ends at s[close]; `close` if none does. */
static size_t opening(const char *s, size_t close)
{
    size_t depth = 0;
    for (size_t i = close + 1; i-- > 0;) {
        depth += s[i] == ')';
        if (s[i] == '(' && --depth == 0)
            return i;
    }
    return close;
}

/* Where the parameters begin: the last parentheses, with nothing but qualifiers behind them. A
 * lambda's are followed by "::" and a name. */
static size_t without_parameters(const char *s, size_t n)
{
    const char *close = memrchr(s, ')', n);
    if (!close || (size_t)(close - s) + 1 + strcspn(close + 1, ":<>") < n)
        return n;
    size_t open = opening(s, (size_t)(close - s));
    return open ? open : n;
}

/* The operator's own name may hold what encloses elsewhere: operator<, operator(). */
static size_t before_operator(const char *s, size_t n)
{
    static const char word[] = "operator";
    for (size_t i = n; i-- > 0;)
        if (n - i >= sizeof word - 1 && memcmp(s + i, word, sizeof word - 1) == 0 &&
            (i == 0 || s[i - 1] == ':' || s[i - 1] == ' '))
            return i;
    return n;
}

/* Behind the last space that nothing encloses. */
static size_t name_start(const char *s, size_t n)
{
    int depth = 0;
    for (size_t i = before_operator(s, n); i-- > 0;) {
        depth += s[i] == ')' || s[i] == '>';
        depth -= s[i] == '(' || s[i] == '<';
        if (depth == 0 && (s[i] == ' ' || s[i] == '*' || s[i] == '&'))
            return i + 1;
    }
    return 0;
}

void pki_function_name(const char *signature, char *out, size_t size)
{
    size_t n = strlen(signature);
    if (n && strchr(signature, '(')) {
        n = without_template_arguments(signature, n);
        n = without_parameters(signature, n);
        size_t start = name_start(signature, n);
        signature += start;
        n -= start;
    }
    snprintf(out, size, "%.*s", (int)PKI_MIN(n, size - 1), signature);
}

bool pki_function_has_name(const char *name)
{
    return !strstr(name, "lambda") && !strstr(name, "(anonymous class)");
}

/* ---- places ---- */

uint64_t pki_function_place(const pk_region *region)
{
    const char *file = region->file ? region->file : "";
    return (uint64_t)pki_hash(file, strlen(file), 0) << 32 | region->line | 1u << 31;
}

void pki_function_append_place(const pk_region *region, char *name, size_t size)
{
    char place[80];
    int n = snprintf(place, sizeof place, " (%.60s:%u)",
                     pki_base_name(region->file ? region->file : "?"), region->line);
    size_t at = PKI_MIN(strlen(name), size - 1 - (size_t)n);
    memcpy(name + at, place, (size_t)n + 1);
}
