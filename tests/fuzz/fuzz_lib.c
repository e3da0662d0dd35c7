/* What libpk reads, from anybody: pk_options.capture and .tuning, what `pk machine` keeps, and
 * tables for unwinding. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/tuning.h"
#include "capture/capture.h"
#include "measure/machine/machine.h"
#include "measure/stacks/stacks.h"
#include "session/options/config.h"

/* ---- any text as pk_options.capture ---- */

/* It is taken or refused with a reason; what is taken is within bounds, and steps that go by it
 * give ranges that make sense. */

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

static void check(const pki_clauses *c)
{
    must(c->slow == 0 || (c->slow > 1 && c->slow <= 1000));
    must(c->range_count <= PKI_CAPTURE_RANGES);
    for (uint32_t i = 0; i < c->range_count; i++)
        must(c->ranges[i].first <= c->ranges[i].last);
    must(c->cycle.active <= PKI_CAPTURE_STEPS_MOST);
    uint64_t longest = pki_clauses_longest(c);
    must(longest >= 1 && longest <= PKI_CAPTURE_STEPS_MOST);
}

static void go(const pki_clauses *c, const uint8_t *data, size_t size)
{
    pki_chooser chooser = {.clauses = *c};
    pki_wish wishes[PKI_WISHES_MOST];
    uint64_t number = 0;
    for (size_t i = 0; i < size && i < 300; i++) {
        unsigned n = pki_choose(&chooser, number, data[i] % 3u, (uint64_t)data[i] * 100000, wishes);
        must(n <= PKI_WISHES_MOST);
        for (unsigned k = 0; k < n; k++)
            must(wishes[k].first <= wishes[k].last && wishes[k].last <= number && !wishes[k].cut);
        number += data[i] > 250 ? 2 : 1;
    }
    unsigned n = pki_choose_at_end(&chooser, wishes);
    must(n <= PKI_WISHES_MOST);
    for (unsigned k = 0; k < n; k++)
        must(wishes[k].first <= wishes[k].last && wishes[k].last < chooser.next && wishes[k].cut);
}

static int fuzz_clauses(const uint8_t *data, size_t size)
{
    char text[512], why[160] = "";
    pki_clauses clauses;
    size_t n = size < sizeof text ? size : sizeof text - 1;
    if (n)
        memcpy(text, data, n);
    text[n] = 0;
    if (!pki_clauses_parse(text, &clauses, why, sizeof why)) {
        must(why[0] != 0);
        return 0;
    }
    check(&clauses);
    go(&clauses, data, size);
    return 0;
}

/* ---- any text as pk_options.tuning ---- */

/* It is taken apart within itself, or refused with a reason; what is taken is the same when it is
 * put together again, and goes through all of the options. */

static void append(char **to, const char *value)
{
    *(*to)++ = '\'';
    for (; *value; *(*to)++ = *value++)
        if (*value == '\'')
            *(*to)++ = '\'';
    *(*to)++ = '\'';
    *(*to)++ = ',';
}

static void check_again(const char *const values[PKI_TUNING_COUNT])
{
    static char text[2048];
    const char *again[PKI_TUNING_COUNT];
    char why[160], *to = text;
    for (unsigned i = 0; i < PKI_TUNING_COUNT; i++)
        if (values[i]) {
            to += sprintf(to, "%s=", pki_tunings[i].key);
            append(&to, values[i]);
        }
    *to = 0;
    must(pki_tuning_split(text, again, why, sizeof why));
    for (unsigned i = 0; i < PKI_TUNING_COUNT; i++)
        must(values[i] ? again[i] && strcmp(values[i], again[i]) == 0 : !again[i]);
}

static int fuzz_tuning(const uint8_t *data, size_t size)
{
    static pki_config config;
    const char *values[PKI_TUNING_COUNT];
    char text[512], copy[512], why[160] = "";
    size_t n = size < sizeof text ? size : sizeof text - 1;
    if (n)
        memcpy(text, data, n);
    text[n] = 0;
    strcpy(copy, text);
    bool taken = pki_tuning_split(copy, values, why, sizeof why);
    must(taken || why[0]);
    pk_status status = pki_config_read(&config, pk_options(.tuning = text));
    must(taken || status == PK_EINVAL);
    for (unsigned i = 0; taken && i < PKI_TUNING_COUNT; i++)
        must(!values[i] || (values[i] >= copy && values[i] <= copy + n));
    if (taken)
        check_again(values);
    return 0;
}

/* ---- any bytes as a file of `pk machine` ---- */

/* It is taken or refused with a reason; what is taken is within bounds, and is read again as what
 * it was. */

static void fuzz_machine_check(const pki_machine *m)
{
    must(m->limit_count >= 1 && m->limit_count <= PKI_MACHINE_LIMITS && m->processors > 0);
    must(strlen(m->host) < sizeof m->host && strlen(m->cpu) < sizeof m->cpu);
    for (size_t i = 0; i < m->limit_count; i++) {
        const pki_limit *l = &m->limits[i];
        must(l->name[0] && memchr(l->name, 0, sizeof l->name) && !strchr(l->name, '\n'));
        must(l->worst > 0 && l->worst <= l->median && l->median <= l->best);
        must(l->best <= PKI_MACHINE_RATE_MOST);
    }
}

static int fuzz_machine(const uint8_t *data, size_t size)
{
    char why[160] = "", text[PKI_MACHINE_BYTES];
    pki_machine m, again;
    /* Of its own length: who reads behind it is found by the sanitizer. */
    char *copy = malloc(size + !size);
    must(copy != NULL);
    if (size)
        memcpy(copy, data, size);
    bool taken = pki_machine_parse(copy, size, &m, why, sizeof why);
    free(copy);
    if (!taken) {
        must(why[0] != 0);
        return 0;
    }
    fuzz_machine_check(&m);
    must(pki_machine_parse(text, pki_machine_print(&m, text), &again, why, sizeof why));
    must(memcmp(&m, &again, sizeof m) == 0);
    return 0;
}

/* ---- any bytes as the tables by which stacks are unwound, and as the stack ---- */

/* No byte beyond them is read, it ends, and who was called lies further down the stack. */

#define IMAGE 0x100000u
#define STACK 0x200000u

typedef struct image {
    const char *bytes;
    size_t size;
} image;

static bool read_image(void *user, uint64_t at, void *to, size_t size)
{
    const image *i = user;
    uint64_t from = at >= STACK ? STACK : IMAGE;
    if (at < from || at - from > i->size || size > i->size - (at - from))
        return false;
    memcpy(to, i->bytes + (at - from), size);
    return true;
}

static void unwind_from(image *i, uint64_t pc)
{
    pki_registers r = {.known = (UINT64_C(1) << PKI_FRAMES_REGISTERS) - 1};
    for (unsigned n = 0; n < PKI_FRAMES_REGISTERS; n++)
        r.value[n] = STACK + 8 * n;
    r.value[PKI_FRAMES_PC] = pc;
    for (unsigned n = 0; n < 64; n++) {
        pki_frame_row row;
        uint64_t before = r.value[PKI_FRAMES_SP];
        bool known = pki_frame_row_find(read_image, i, IMAGE, r.value[PKI_FRAMES_PC], &row);
        must(!known || row.start <= r.value[PKI_FRAMES_PC]);
        if (!pki_frame_leave(known ? &row : NULL, read_image, i, &r))
            return;
        must(r.value[PKI_FRAMES_SP] >= before);
    }
}

static int fuzz_frames(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + !size);
    image i = {copy, size};
    must(copy != NULL);
    if (size)
        memcpy(copy, data, size);
    for (size_t at = 12; at + 4 <= size && at < 12 + 8 * 16; at += 8) {
        int32_t from;
        memcpy(&from, copy + at, sizeof from);
        for (unsigned more = 0; more < 64; more += 7)
            unwind_from(&i, IMAGE + (uint64_t)(int64_t)from + more);
    }
    free(copy);
    return 0;
}

/* ---- the targets ---- */

const fuzz_target fuzz_targets[] = {
    {"clauses", fuzz_clauses},
    {"tuning", fuzz_tuning},
    {"machine", fuzz_machine},
    {"frames", fuzz_frames},
    {NULL, NULL},
};
