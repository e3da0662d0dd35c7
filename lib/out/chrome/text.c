#include "out/chrome/text.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/names.h"
#include "out/emit.h"

typedef pki_chrome_text text;

char *pki_chrome_put_escaped(char *p, const char *s, size_t n)
{
    return p + pki_json_escape(p, 6 * n + 1, s, n);
}

static char *put_before(char *p, const pki_chrome *c, const pki_chrome_name *n)
{
    bool counter = n->kind == PKI_KIND_COUNTER;
    p = counter ? PKI_PUT(p, ",\n{\"ph\":\"C\",\"cat\":\"counter\",\"name\":\"")
                : PKI_PUT(p, ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"");
    p = pki_chrome_put_escaped(p, n->name, n->length);
    const char *colour_name = pki_chrome_colour(n->kind);
    if (colour_name) {
        p = PKI_PUT(p, "\",\"cname\":\"");
        p = pki_put_text(p, colour_name);
    }
    p = PKI_PUT(p, "\",\"pid\":");
    p = pki_put_u64(p, c->pid);
    return PKI_PUT(p, ",\"tid\":");
}

static char *put_key(char *p, const pki_chrome_name *n)
{
    bool counter = n->kind == PKI_KIND_COUNTER;
    if (!n->key_length && !counter)
        return p;
    *p++ = '"';
    p = n->key_length ? pki_chrome_put_escaped(p, n->key, n->key_length) : PKI_PUT(p, "value");
    p = PKI_PUT(p, "\":");
    return counter ? p : pki_put_i64(p, n->value);
}

static text *make_text(const pki_chrome *c, uint32_t id)
{
    pki_chrome_name n = c->names(c->user, id);
    size_t room = 256 + 6u * n.length, args_room = 6u * n.key_length;
    text *t = calloc(1, sizeof *t + room + args_room + room + PKI_CHROME_BLOCK);
    if (!t)
        return NULL;
    char *args = put_before(t->before, c, &n);
    t->counter = n.kind == PKI_KIND_COUNTER;
    t->before_length = (uint32_t)(args - t->before);
    t->args = args;
    t->args_length = (uint32_t)(put_key(args, &n) - args);
    t->line = t->before + room + args_room;
    return t;
}

pki_chrome_text *pki_chrome_text_of(pki_chrome *c, uint32_t id)
{
    if (PKI_UNLIKELY(id >= PKI_NAMES_MAX ||
                     (id >= c->text_count &&
                      !pki_array_fit(&c->texts, &c->text_count, id + (size_t)1, sizeof(text *)))))
        return NULL;
    if (PKI_UNLIKELY(!c->texts[id]))
        c->texts[id] = make_text(c, id);
    return c->texts[id];
}

void pki_chrome_text_line(pki_chrome_text *t, uint32_t tid)
{
    char *end = pki_put(t->line, t->before, t->before_length);
    end = PKI_PUT(pki_put_u64(end, tid), ",\"ts\":");
    t->tid = tid;
    t->line_length = (uint32_t)(end - t->line);
}
