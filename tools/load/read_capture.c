/* tools/load/read_capture.c - "perfkitCapture" of a trace (docs/internals/trace-format.md) as a
 * part of its summary. */
#include "load/load.h"

#include "memory.h"
#include "read/json.h"

static void read_step(json_reader *j, json_t *from, pki_captured_step *s, const pki_capture *c)
{
    json_read_uint(j, from, "step", &s->index);
    json_read_uint(j, from, "start_ns", &s->start);
    json_read_uint(j, from, "duration_ns", &s->duration);
    json_read_uint(j, from, "items", &s->items);
    json_read_text(j, from, "kind", &s->kind);
    s->captured = s->index >= c->first && s->index <= c->last;
}

static void read_steps(json_reader *j, json_t *from, pki_capture *c)
{
    json_t *rows = json_read_array(j, from, "steps");
    c->steps = json_read_rows(j, from, "steps", sizeof *c->steps, &c->step_count);
    for (size_t i = 0; i < c->step_count; i++)
        read_step(j, json_array_get(rows, i), &c->steps[i], c);
}

static void read_kernels(json_t *numbers, pki_capture *c)
{
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        json_int_t index = json_integer_value(json_array_get(numbers, i));
        for (size_t k = 0; k < c->step_count; k++)
            c->steps[k].kernels |= index >= 0 && c->steps[k].index == (uint64_t)index;
    }
}

void load_capture(json_t *from, pki_capture *c)
{
    complaint ignored = {""};
    json_reader j = {.why = &ignored};
    if (!from)
        return;
    json_read_text(&j, from, "reason", &c->reason);
    json_read_text(&j, from, "text", &c->text);
    json_read_uint(&j, from, "first", &c->first);
    json_read_uint(&j, from, "last", &c->last);
    json_read_uint(&j, from, "slow_step", &c->slow_step);
    json_read_uint(&j, from, "slow_ns", &c->slow);
    json_read_uint(&j, from, "median_ns", &c->median);
    json_read_bool(&j, from, "cut", &c->cut);
    json_read_bool(&j, from, "beginning_gone", &c->beginning_gone);
    json_read_bool(&j, from, "full", &c->full);
    json_read_uint(&j, from, "records_lost", &c->records_lost);
    json_read_uint(&j, from, "refused", &c->refused);
    read_steps(&j, from, c);
    read_kernels(json_object_get(from, "kernels"), c);
    c->captured = c->step_count;
}
