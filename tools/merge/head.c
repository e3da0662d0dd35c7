#include "merge/head.h"

#include "memory.h"

#include <jansson.h>
#include <pk/session.h>
#include <stdlib.h>
#include <string.h>

#define OPENS ",\n\"traceEvents\":["

const char *clock_method_name(const pki_clock *c)
{
    static const char *const names[] = {[PKI_CLOCK_SAME] = "same clock",
                                        [PKI_CLOCK_BOUNDED] = "messages and collectives",
                                        [PKI_CLOCK_REAL_TIME] = "real time"};
    return names[c->method];
}

static void set(json_t *object, const char *key, json_t *value)
{
    memory_needed(json_object_set_new(object, key, value) == 0);
}

static json_t *clock_as_json(const pki_clock *c)
{
    json_t *o = json_object();
    int64_t doubt = pki_clock_doubt(c);
    memory_needed(o != NULL);
    set(o, "host", json_string(c->host));
    set(o, "clock", json_string(c->name));
    set(o, "method", json_string(clock_method_name(c)));
    set(o, "offset_ns", json_integer(c->knots[0].offset));
    set(o, "uncertainty_ns", doubt < 0 ? json_null() : json_integer(doubt));
    set(o, "drift_ppm", json_real(pki_clock_drift(c)));
    set(o, "bounds", json_integer((json_int_t)c->bounds));
    set(o, "broken", json_boolean(c->broken));
    return o;
}

static json_t *metadata(const merge_sources *s, const pki_clocks *c)
{
    json_t *o = json_object(), *clocks = json_array();
    memory_needed(o && clocks);
    for (size_t i = 0; i < c->count; i++)
        memory_needed(json_array_append_new(clocks, clock_as_json(&c->all[i])) == 0);
    set(o, "perfkit", json_string(pk_version()));
    set(o, "merged", json_integer((json_int_t)s->count));
    set(o, "clocks", clocks);
    return o;
}

char *merged_head(const merge_sources *s, const pki_clocks *c, size_t *length)
{
    json_t *o = json_object();
    memory_needed(o != NULL);
    set(o, "schemaVersion", json_integer(1));
    set(o, "displayTimeUnit", json_string("ns"));
    set(o, "baseTimeNanoseconds", json_integer((json_int_t)c->origin_unix));
    set(o, "metadata", metadata(s, c));
    char *text = json_dumps(o, JSON_COMPACT);
    memory_needed(text != NULL);
    json_decref(o);
    size_t n = strlen(text) - 1; /* it goes on */
    text = memory_resized(text, n + sizeof OPENS);
    memcpy(text + n, OPENS, sizeof OPENS);
    *length = n + sizeof OPENS - 1;
    return text;
}
