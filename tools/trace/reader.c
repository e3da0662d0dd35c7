#include "trace/reader.h"

#include "read/json.h"

void event_reader_open(event_reader *r)
{
    r->tree = NULL;
    r->lines = line_cache_create();
}

void event_reader_close(event_reader *r)
{
    line_cache_destroy(r->lines);
    json_decref(r->tree);
    r->lines = NULL;
    r->tree = NULL;
}

static reading read_tree(event_reader *r, line l)
{
    complaint ignored = {""};
    bool too_large = false;
    json_decref(r->tree);
    r->tree = document_from_text(l.text, l.length, &too_large, &ignored);
    if (too_large)
        return READ_NO_MEMORY;
    if (!json_is_object(r->tree))
        return READ_NOTHING;
    event_read(&r->e, (object){.tree = r->tree}, l.text, l.length);
    return READ_EVENT;
}

reading event_reader_read(event_reader *r, line l, const event **e)
{
    *e = line_cache_find(r->lines, l.text, l.length);
    if (*e)
        return READ_EVENT;
    *e = &r->e;
    if (!flat_read(&r->flat, l.text, l.length))
        return read_tree(r, l);
    event_read(&r->e, flat_object(&r->flat), l.text, l.length);
    line_cache_add(r->lines, &r->flat, l.text, &r->e);
    return READ_EVENT;
}
