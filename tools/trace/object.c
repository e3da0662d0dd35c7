#include "trace/object.h"

#include <stdlib.h>

member object_of_tree(json_t *json)
{
    member v = {.type = json ? VALUE_OTHER : VALUE_NONE};
    if (json_is_string(json)) {
        v.type = VALUE_TEXT;
        v.text = json_string_value(json);
    } else if (json_is_integer(json)) {
        v.type = VALUE_INTEGER;
        v.integer = json_integer_value(json);
    } else if (json_is_real(json)) {
        v.type = VALUE_REAL;
        v.real = json_real_value(json);
    }
    return v;
}

member object_of_flat(const flat_member *m)
{
    member v = {.type = m->type, .integer = m->integer, .length = m->length};
    if (m->type == VALUE_TEXT)
        v.text = m->text;
    else if (m->type != VALUE_OTHER)
        v.digits = m->text;
    return v;
}

object object_args(object o)
{
    if (o.members)
        return (object){.members = o.args};
    json_t *args = json_object_get(o.tree, "args");
    return (object){.tree = json_is_object(args) ? args : NULL};
}

static bool next_of_tree(json_t *tree, object_cursor *at, const char **key, member *v)
{
    at->member = at->begun ? json_object_iter_next(tree, at->member) : json_object_iter(tree);
    at->begun = true;
    if (!at->member)
        return false;
    *key = json_object_iter_key(at->member);
    *v = object_of_tree(json_object_iter_value(at->member));
    return true;
}

bool object_next(object o, object_cursor *at, const char **key, member *v)
{
    if (!o.members)
        return o.tree && next_of_tree(o.tree, at, key, v);
    if (at->next >= o.members->count)
        return false;
    *key = o.members->members[at->next].key;
    *v = object_of_flat(&o.members->members[at->next++]);
    return true;
}

/* What stands behind the digits ends the number. */
double value_number(const member *v)
{
    if (v->type == VALUE_INTEGER)
        return (double)v->integer;
    return v->type == VALUE_REAL ? v->digits ? strtod(v->digits, NULL) : v->real : 0;
}
