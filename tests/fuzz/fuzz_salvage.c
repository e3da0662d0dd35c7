/* A killed run's arena, spoilt: whatever is made of it, it is made without harm, it ends, and every
 * event and head is JSON.
 *
 * The input is a list of patches to a real arena (arena.h): which area, where in it, and what goes
 * there. With libFuzzer: ninja -C BUILD tests/fuzz/libfuzzer-salvage (a build with clang). Without:
 * spoil_salvage.c.
 */
#include "fuzz_salvage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "arena.h"
#include "history/salvage.h"
#include "live/live.h"
#include "out/salvage.h"

#define PATCHES_MOST 64
/* Of a document. Events behind the first thousands are of the same blocks again, and what gcc's
 * sanitizer sees has been parsed where there is none: spoil_salvage.c does the same there, and
 * more. */
#ifdef __SANITIZE_ADDRESS__
#define PARSED_MOST 50
#else
#define PARSED_MOST 2000
#endif

#define must(condition) ((condition) ? (void)0 : give_up(__LINE__, #condition))

static void give_up(int line, const char *what)
{
    fprintf(stderr, "fuzz_salvage.c:%d: not so: %s\n", line, what);
    abort();
}

typedef struct place {
    size_t at, bytes;
} place;

/* Values on which something may turn. */
static uint64_t value_of(const arena_copy *a, unsigned which)
{
    const uint64_t values[FUZZ_VALUES] = {0,
                                          1,
                                          31,
                                          32,
                                          33,
                                          63,
                                          64 * 32 - 32,
                                          64 * 32,
                                          0x7FFFFFFF,
                                          0xFFFFFFFF,
                                          UINT64_C(1) << 63,
                                          UINT64_MAX,
                                          UINT64_MAX - 31,
                                          a->bytes,
                                          a->bytes - 1,
                                          a->bytes - 4096};
    return values[which % FUZZ_VALUES];
}

/* One patch, in the file; returns how much of the input it took, 0 if there is none. */
static size_t apply(const arena_copy *a, const uint8_t *data, size_t size, place *done)
{
    uint8_t bytes[16];
    uint64_t value;
    if (size < 4)
        return 0;
    const arena_area *area = &a->areas[data[0] % a->area_count];
    size_t offset = (size_t)(data[1] | data[2] << 8) % area->bytes, n = data[3] % 16 + 1, took = 4;
    if (data[3] < 128) {
        n = n < size - 4 ? n : size - 4;
        memcpy(bytes, data + 4, n);
        took += n;
    } else {
        value = value_of(a, data[3] >> 1);
        n = data[3] & 1 ? 8 : 4;
        memcpy(bytes, &value, n);
    }
    n = n < area->bytes - offset ? n : area->bytes - offset;
    *done = (place){area->at + offset, n};
    must(pwrite(a->fd, bytes, n, (off_t)done->at) == (ssize_t)n);
    return took;
}

typedef struct seen {
    uint64_t events, bytes;
} seen;

static bool parse(void *user, const char *event, size_t n)
{
    seen *s = user;
    must(n > 2 && n <= PKI_EVENT_BYTES && memcmp(event, ",\n", 2) == 0);
    for (const char *p = event;
         p < event + n && s->events < PARSED_MOST;) { /* a thread's name and its place are two */
        const char *end = memmem(p + 2, (size_t)(event + n - p) - 2, ",\n{", 3);
        end = end ? end : event + n;
        json_t *parsed = json_loadb(p + 2, (size_t)(end - p) - 2, JSON_DECODE_INT_AS_REAL, NULL);
        if (!json_is_object(parsed))
            fprintf(stderr, "%.*s\n", (int)(end - p), p);
        must(json_is_object(parsed));
        json_decref(parsed);
        p = end;
    }
    s->events++;
    s->bytes += n;
    return true;
}

static void check_head(const pki_salvage *s)
{
    char document[PKI_HEAD_BYTES + sizeof PKI_CHROME_TAIL];
    size_t n = pki_salvage_head(s, document);
    must(n < PKI_HEAD_BYTES);
    memcpy(document + n, PKI_CHROME_TAIL, sizeof PKI_CHROME_TAIL);
    json_t *parsed = json_loads(document, JSON_DECODE_INT_AS_REAL, NULL);
    must(json_is_object(parsed));
    json_decref(parsed);
}

static void salvage(const arena_copy *a)
{
    pki_salvage s;
    seen all = {0, 0};
    size_t n;
    if (!pki_salvage_open(&s, a->path)) {
        must(s.why[0] != 0);
        return;
    }
    const char *text = pki_salvage_buffer(&s, &n);
    for (size_t i = 0; i < n; i += 4096)
        all.bytes += (uint8_t)text[i];
    must(pki_salvage_events(&s, parse, &all));
    must(pki_history_salvage(&s, parse, &all));
    /* No more than the file has room for, however its parts point at each other. */
    must(all.events <= a->bytes / 32 * 3);
    check_head(&s);
    pki_salvage_close(&s);
}

/* What `pk where` and `pk top` read of it. */
static void look_on(const arena_copy *a)
{
    static pk_stats stats;
    static FILE *nowhere;
    char *names[] = {(char *)(uintptr_t)a->path};
    complaint why = {""};
    targets t;
    view one = {0};
    where w = {.views = &one, .count = 1};
    nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
    must(nowhere);
    if (targets_open(&t, names, 1, &why)) {
        w.views[0].t = &t.all[0];
        must(snapshot_take(&w.views[0].s, &t.all[0]));
        for (size_t i = 0; i < w.views[0].s.call_count && i < 1000; i++)
            snapshot_stats(&t.all[0], &w.views[0].s.calls[i], &stats);
        must(behind_find(&w.behind, w.views, w.count));
        where_text(&w, nowhere);
        where_json(&w, nowhere);
        behind_finish(&w.behind);
        snapshot_finish(&w.views[0].s);
    } else {
        must(why.text[0] != 0);
    }
    targets_close(&t);
}

static place make_all_blocks_one(const arena_copy *a)
{
    static uint32_t blocks[PKI_BLOCKS_MAX];
    const pki_arena_header *h = (const pki_arena_header *)a->original;
    const uint32_t count = PKI_BLOCKS_MAX;
    for (uint32_t i = 0; i < count; i++)
        blocks[i] = h->blocks[0];
    must(pwrite(a->fd, &count, sizeof count, offsetof(pki_arena_header, block_count)) ==
         sizeof count);
    must(pwrite(a->fd, blocks, sizeof blocks, offsetof(pki_arena_header, blocks)) == sizeof blocks);
    return (place){0, sizeof *h};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const arena_copy *a = arena_made();
    place patched[PATCHES_MOST];
    unsigned patches = 0;
    size_t keep = a->bytes;
    if (size >= 3 && data[0] == FUZZ_CUT) {
        keep = (size_t)(data[1] | data[2] << 8) * 67 % (a->bytes + 1);
        data += 3;
        size -= 3;
    }
    if (size && data[0] == FUZZ_SAME) {
        patched[patches++] = make_all_blocks_one(a);
        data++;
        size--;
    }
    for (size_t took; patches < PATCHES_MOST; patches++, data += took, size -= took) {
        took = apply(a, data, size, &patched[patches]);
        if (!took)
            break;
    }
    must(ftruncate(a->fd, (off_t)keep) == 0);
    salvage(a);
    look_on(a);
    if (keep < a->bytes)
        arena_restore(a, 0, a->bytes);
    while (patches-- > 0)
        arena_restore(a, patched[patches].at, patched[patches].bytes);
    return 0;
}
