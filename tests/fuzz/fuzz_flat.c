/* Any line: what read/flat.h takes apart, jansson takes for the same object. */
#include "read/flat.h"
#include "read/scan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t taken;

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
    member ts = object_get(quick, "ts");
    bool a = ts.digits && scan_us(ts.digits, ts.length, &ns_a);
    bool b = scan_member_us(text, length, "ts", &ns_b);
    must(a == b && ns_a == ns_b);
}

static void try_line(const char *text, size_t length)
{
    flat_line line;
    char *copy = malloc(length + 1); /* on the heap, to its last byte */
    memcpy(copy, text, length);
    copy = realloc(copy, length ? length : 1);
    json_t *json = json_loadb(text, length, 0, NULL);
    if (flat_read(&line, copy, length)) {
        object quick = flat_object(&line), tree = {.tree = json};
        must(json_is_object(json));
        same_object(quick, tree);
        same_object(object_args(quick), object_args(tree));
        same_time(quick, text, length);
        taken++;
    } else {
        must(memcmp(copy, text, length) == 0);
    }
    json_decref(json);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = text + size;
    uint64_t before = taken;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((newline ? newline : end) - text);
        if (length && text[length - 1] == ',')
            try_line(text, length - 1);
        try_line(text, length);
        text += length + 1;
    }
    /* Were none of a trace's lines simple, this would compare nothing. */
    static bool looked;
    must(looked || taken > before);
    looked = true;
    return 0;
}
