#include "capture/budget.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

static void drop(pki_budget *b, size_t i)
{
    free(b->kept[i].path);
    memmove(&b->kept[i], &b->kept[i + 1], (--b->count - i) * sizeof *b->kept);
}

void pki_budget_finish(pki_budget *b)
{
    while (b->count)
        drop(b, b->count - 1);
    free(b->kept);
    *b = (pki_budget){0};
}

static void forget_old(pki_budget *b, uint64_t now)
{
    while (b->count && now - b->kept[0].ns >= PKI_BUDGET_HOUR_NS)
        drop(b, 0);
}

uint64_t pki_budget_allows(pki_budget *b, uint64_t now, double worth)
{
    uint64_t taken = 0;
    size_t stay = 0;
    forget_old(b, now);
    for (size_t i = 0; i < b->count; i++)
        if (b->kept[i].worth >= worth || !b->kept[i].path) {
            taken += b->kept[i].bytes;
            stay++;
        }
    uint64_t left = taken < b->bytes ? b->bytes - taken : 0;
    return stay >= b->captures || left < PKI_BUDGET_LEAST ? 0 : left;
}

/* Only what is still the file that was made. */
static void remove_file(const pki_kept *k)
{
    struct stat file;
    if (lstat(k->path, &file) == 0 && file.st_dev == k->device && file.st_ino == k->inode)
        unlink(k->path);
}

/* The one of least worth, of those the latest; SIZE_MAX: none of less. */
static size_t find_least(const pki_budget *b, double worth)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < b->count; i++)
        if (b->kept[i].path && b->kept[i].worth < worth &&
            (least == SIZE_MAX || b->kept[i].worth <= b->kept[least].worth))
            least = i;
    return least;
}

static bool is_over(const pki_budget *b, uint64_t bytes)
{
    uint64_t sum = bytes;
    for (size_t i = 0; i < b->count; i++)
        sum += b->kept[i].bytes;
    return b->count >= b->captures || sum > b->bytes;
}

void pki_budget_make_room(pki_budget *b, uint64_t now, double worth, uint64_t bytes)
{
    forget_old(b, now);
    for (size_t i; is_over(b, bytes) && (i = find_least(b, worth)) != SIZE_MAX;) {
        remove_file(&b->kept[i]);
        drop(b, i);
        b->removed++;
    }
}

void pki_budget_enter(pki_budget *b, uint64_t now, double worth, uint64_t bytes, const char *path)
{
    struct stat file = {0};
    if (!pki_array_fit(&b->kept, &b->room, b->count + 1, sizeof *b->kept)) {
        b->captures -= b->captures > 0; /* as if it stood there for ever */
        b->bytes -= bytes < b->bytes ? bytes : b->bytes;
        return;
    }
    pki_kept k = {.ns = now, .bytes = bytes, .worth = worth};
    if (lstat(path, &file) == 0)
        k.path = strdup(path);
    k.device = file.st_dev;
    k.inode = file.st_ino;
    b->kept[b->count++] = k;
}

bool pki_budget_has(const pki_budget *b, const char *path)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->kept[i].path && strcmp(b->kept[i].path, path) == 0)
            return true;
    return false;
}
