/* Any line: what trace/trace.h takes apart, jansson takes for the same object; and its event is the
 * same by way of flat.h, and of the lines before it (trace/trace.h), as by way of jansson. */
#include "trace/trace.h"
#include "read/json.h"
#include "read/token.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

static void same_number(const member *quick, const member *tree)
{
    double a = value_number(quick), b = value_number(tree);
    must(memcmp(&a, &b, sizeof a) == 0);
    must(quick->integer == tree->integer && quick->digits && quick->length);
}

static void same_member(const member *quick, const member *tree)
{
    must(quick->type == tree->type);
    if (value_is_number(quick))
        same_number(quick, tree);
    else if (quick->type == VALUE_TEXT)
        must(strcmp(quick->text, tree->text) == 0);
}

/* In the same order. */
static void same_object(object quick, object tree)
{
    object_cursor a = {0}, b = {0};
    const char *key_a, *key_b;
    member of_a, of_b;
    while (object_next(quick, &a, &key_a, &of_a)) {
        must(object_next(tree, &b, &key_b, &of_b) && strcmp(key_a, key_b) == 0);
        same_member(&of_a, &of_b);
        of_a = object_get(quick, key_a);
        same_member(&of_a, &of_b);
    }
    must(!object_next(tree, &b, &key_b, &of_b));
}

/* A time is read from its digits in one way, and found in the text in the other. */
static void same_time(object quick, const char *text, size_t length)
{
    uint64_t ns_a = 0, ns_b = 0;
    uint32_t ps = 0;
    member ts = object_get(quick, "ts");
    bool a = ts.digits && scan_us(ts.digits, ts.length, &ns_a);
    bool b = scan_member_us(text, length, "ts", &ns_b, &ps);
    must(a == b && ns_a == ns_b && (!a || ps == scan_ps(ts.digits, ts.length)));
}

/* What our own reader passes over is what jansson takes, but for numbers beyond its own, and a byte
 * that is zero, which it does not see. */
static void same_verdict(const char *text, size_t length, const json_t *json,
                         const json_error_t *error)
{
    bool ours = token_is_object(text, length);
    must(ours || !json_is_object(json) || memchr(text, 0, length));
    must(!ours || json || strstr(error->text, "too big") || strstr(error->text, "overflow"));
}

static void try_line(const char *text, size_t length)
{
    json_error_t error;
    flat_line parts;
    char *copy = malloc(length + 1); /* on the heap, to its last byte */
    memcpy(copy, text, length);
    copy = realloc(copy, length ? length : 1);
    json_t *json = json_loadb(text, length, 0, &error);
    same_verdict(text, length, json, &error);
    if (flat_read(&parts, copy, length)) {
        object quick = flat_object(&parts), tree = {.tree = json};
        must(json_is_object(json));
        same_object(quick, tree);
        same_object(object_args(quick), object_args(tree));
        same_time(quick, text, length);
    } else {
        must(memcmp(copy, text, length) == 0);
    }
    json_decref(json);
    free(copy);
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static void same_event(const event *a, const event *b)
{
    must(a->type == b->type);
    if (a->type == EVENT_OTHER)
        return;
    must(same_text(a->name, b->name) && strcmp(a->track, b->track) == 0);
    must(strcmp(a->stepper, b->stepper) == 0);
    must(a->kind == b->kind && a->tid == b->tid && a->start == b->start && a->end == b->end);
    must(a->index == b->index && a->items == b->items && a->bytes == b->bytes);
    must(a->flops == b->flops && a->unbalanced == b->unbalanced && a->on == b->on);
    must(same_text(a->comm.op, b->comm.op) && same_text(a->comm.name, b->comm.name));
    must(a->comm.sequence == b->comm.sequence && a->comm.ranks == b->comm.ranks);
    must(a->activity.kind == b->activity.kind && a->activity.device == b->activity.device);
    must(a->activity.bytes == b->activity.bytes && a->activity.copy == b->activity.copy);
    must(strcmp(event_launcher(a), event_launcher(b)) == 0);
}

/* The lines before it are those of the same file. */
static void try_event(event_reader *r, const char *text, size_t length)
{
    event slow;
    const event *quick;
    line trimmed = line_trim((line){(char *)text, length});
    json_t *json = json_loadb(trimmed.text, trimmed.length, 0, NULL);
    char *copy = malloc(trimmed.length + 1);
    memcpy(copy, trimmed.text, trimmed.length);
    copy = realloc(copy, trimmed.length ? trimmed.length : 1);
    reading found = event_reader_read(r, (line){copy, trimmed.length}, &quick);
    must((found == READ_EVENT) == json_is_object(json));
    if (found == READ_EVENT) {
        event_read(&slow, (object){.tree = json}, trimmed.text, trimmed.length);
        same_event(quick, &slow);
    }
    json_decref(json);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    event_reader reader;
    json_limit_memory((size_t)256 << 20);
    event_reader_open(&reader);
    const char *text = (const char *)data, *end = text + size;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((newline ? newline : end) - text);
        if (length && text[length - 1] == ',')
            try_line(text, length - 1);
        try_line(text, length);
        try_event(&reader, text, length);
        text += length + 1;
    }
    event_reader_close(&reader);
    return 0;
}
