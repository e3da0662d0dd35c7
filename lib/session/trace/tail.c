#include "session/trace/tail.h"
#include "session/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define MEMBERS 8

typedef struct member {
    char *key, *json;
} member;

static member members[MEMBERS];
static size_t count;

static void after_fork(void)
{
    count = 0; /* it may be half of something */
}

void pki_tail_reset(void)
{
    for (size_t i = 0; i < count; i++) {
        free(members[i].key);
        free(members[i].json);
    }
    count = 0;
}

void pki_tail_set(const char *key, const char *json)
{
    member m = {strdup(key), strdup(json)};
    size_t i = 0;
    while (i < count && strcmp(members[i].key, key) != 0)
        i++;
    if (!m.key || !m.json || i == MEMBERS) {
        free(m.key);
        free(m.json);
        return;
    }
    if (i < count) {
        free(members[i].key);
        free(members[i].json);
    }
    members[i] = m;
    count = PKI_MAX(count, i + 1);
}

char *pki_tail_text(const char *report, size_t n, size_t *bytes)
{
    static const char before[] = "\n]", name[] = ",\"perfkitReport\":", after[] = "}\n";
    size_t room = sizeof before + sizeof name + n + sizeof after;
    for (size_t i = 0; i < count; i++)
        room += strlen(members[i].key) + strlen(members[i].json) + sizeof ",\n\"\":";
    char *text = malloc(room);
    if (!text)
        return NULL;
    size_t at = (size_t)snprintf(text, room, "%s", before);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, room - at, ",\"%s\":%s", members[i].key, members[i].json);
    at += (size_t)snprintf(text + at, room - at, "%s", name);
    memcpy(text + at, report, n);
    memcpy(text + at + n, after, sizeof after - 1);
    *bytes = at + n + sizeof after - 1;
    return text;
}

const pki_service pki_service_tail = {
    .name = "tail",
    .reset = pki_tail_reset,
    .after_fork = after_fork,
};
