#include "live/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static char *copy(const char *text, size_t n)
{
    char *to = malloc(n + 1);
    if (to) {
        memcpy(to, text, n);
        to[n] = 0;
    }
    return to;
}

static bool is_whole(const pki_names_entry *e, size_t left)
{
    return left >= sizeof *e && e->bytes >= sizeof *e && e->bytes <= left && e->bytes % 8 == 0 &&
           e->id < PKI_NAMES_MAX && sizeof *e + e->length + e->key_length <= e->bytes &&
           e->length <= PKI_NAME_BYTES && e->key_length <= PKI_NAME_BYTES &&
           !memchr(e->text, 0, e->length + (size_t)e->key_length);
}

static void add_name(live_names *names, const pki_names_entry *e)
{
    if (!pki_array_fit(&names->all, &names->room, e->id + (size_t)1, sizeof *names->all))
        return;
    live_name *n = &names->all[e->id];
    if (n->text)
        return;
    *n = (live_name){e->kind, e->value, copy(e->text, e->length),
                     copy(e->text + e->length, e->key_length)};
}

/* So many bytes of entries. */
static void add_names(live_names *names, const char *entries, size_t bytes)
{
    while (bytes > 0) {
        const pki_names_entry *e = (const void *)entries;
        if (!is_whole(e, bytes))
            return;
        add_name(names, e);
        entries += e->bytes;
        bytes -= e->bytes;
    }
}

#define ENTRIES (PKI_NAMES_SPAN_BYTES - sizeof(pki_names_span))

/* Of the span that is read now, what is new. False: there is no span. */
static bool read_span(live_names *names, const target *t, pki_names_span *head)
{
    if (!target_read(t, names->span, head, sizeof *head) || head->used > ENTRIES)
        return false;
    if (head->used <= names->used)
        return true;
    size_t bytes = (size_t)(head->used - names->used);
    _Alignas(pki_names_entry) char entries[ENTRIES];
    if (!target_read(t, names->span + sizeof *head + names->used, entries, bytes))
        return false;
    add_names(names, entries, bytes);
    names->used = head->used;
    return true;
}

void live_names_read(live_names *names, const target *t)
{
    pki_names_span head;
    if (!names->span)
        names->span = t->header->names;
    /* a damaged list may go round in circles */
    for (unsigned i = 0; i < PKI_NAMES_MAX && names->span && read_span(names, t, &head); i++) {
        if (!head.next || head.next % 8 != 0)
            return;
        names->span = head.next;
        names->used = 0;
    }
}

void live_names_finish(live_names *names)
{
    for (size_t i = 0; i < names->room; i++) {
        free(names->all[i].text);
        free(names->all[i].key);
    }
    free(names->all);
    *names = (live_names){0};
}

const live_name *live_name_of(const live_names *names, uint32_t id)
{
    static char unknown[] = "(unknown)", none[] = "";
    static const live_name nobody = {0, 0, unknown, none};
    bool known = id < names->room && names->all[id].text && names->all[id].key;
    return known ? &names->all[id] : &nobody;
}
