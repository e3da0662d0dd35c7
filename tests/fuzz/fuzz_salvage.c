/* A killed run's arena, spoilt: whatever is made of it, it is made without harm, it ends, and
 * every event and head is JSON.
 *
 * The input is a list of patches to a real arena: which area, where in it, and what goes there.
 * With libFuzzer: ninja -C BUILD tests/fuzz/libfuzzer-salvage (a build with clang). */
#include "fuzz.h"

#include <pk/pk.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "core/arena.h"
#include "core/thread.h"
#include "history/history.h"
#include "history/salvage.h"
#include "live/live.h"
#include "out/salvage.h"
#include "session/activity.h"
#include "session/session.h"

/* ---- a killed run's arena, to be spoilt: a real one, with a few of everything in it ---- */

typedef struct arena_area {
    size_t at, bytes; /* where what is worth spoiling lies */
} arena_area;

#define ARENA_AREAS 24

typedef struct arena_copy {
    int fd; /* a file in memory with the arena in it */
    char path[40];
    const uint8_t *original;
    size_t bytes;
    arena_area areas[ARENA_AREAS];
    size_t area_count;
} arena_copy;

/* ---- the form of a patch ---- */

/* The form of a patch: area, offset (two bytes, low first), kind, and for kinds below 128 up to 16
 * bytes; for others one of FUZZ_VALUES, (kind - 128) / 2, as 4 or (odd) 8 bytes. An input that
 * starts with FUZZ_CUT and two bytes first cuts the file; one that starts with FUZZ_SAME first
 * makes all blocks that an arena can have the first one. */

#define FUZZ_VALUES 16
#define FUZZ_CUT 0xC0
#define FUZZ_SAME 0xC1

/* ---- the arena ---- */

#define THREADS 3
#define MEMORY ((uint64_t)4 << 20)

static pk_region outer = PK_REGION("outer"),
                 arena_data = PK_REGION_OF(PK_DATA, "data \"quoted\"\n");
static pk_counter level = PK_COUNTER("level", "items");

static void need(bool true_one, const char *what)
{
    if (true_one)
        return;
    perror(what);
    exit(1);
}

/* Every kind of record, a thread's name, regions left open. */
static void *record(void *argument)
{
    pk_thread_set_name(argument ? "first" : "another thread");
    pk_region_begin(&outer);
    for (int i = 0; i < 9; i++) {
        pk_region_begin(&arena_data);
        pk_region_add(&arena_data, 4096, (uint64_t)i);
        pk_region_next(&arena_data, pk_region_variant(&outer, "size", i));
        pk_region_end(pk_region_variant(&outer, "size", i));
        pk_counter_set(&level, -1.5 * i);
        pk_region_mark(&outer);
        pk_region_note(&outer, &outer, 7);
        pk_region_note_text(&outer, &outer, "a text");
        if (argument && i % 3 == 0)
            pk_step(32);
    }
    pk_region_begin(&arena_data);
    return argument;
}

static void *record_and_stay(void *all_there)
{
    record(NULL);
    pthread_barrier_wait(all_there);
    pause();
    return NULL;
}

/* And what a device did. */
static void hand_over(void)
{
    const pki_operation operation = {.comm = "world",
                                     .comm_length = 5,
                                     .library = "ring",
                                     .library_length = 4,
                                     .size = 4,
                                     .sequence = 1,
                                     .count = 8};
    const pki_activity_arg args[] = {{"text", "value", 0}, {"number", NULL, 7}};
    const pki_track track = {pki_track_device_pid(0), 1, "gpu 0", "stream 7", 1};
    pki_activity a = {.kind = PKI_ACTIVITY_MEMCPY,
                      .name = "copy",
                      .name_length = 4,
                      .end = 1000,
                      .operation = &operation,
                      .args = args,
                      .arg_count = 2};
    pthread_mutex_lock(&pki_drain_lock);
    a.track = pki_track_add(&track);
    pki_activity_measures(0, true);
    pki_activity_add(&a);
    pthread_mutex_unlock(&pki_drain_lock);
}

static void die_amid_a_run(const char *path)
{
    pthread_t threads[THREADS];
    pthread_barrier_t all_there;
    pthread_barrier_init(&all_there, NULL, THREADS + 1);
    need(pk_start(pk_options(.trace_path = path, .memory_bytes = MEMORY, .backends = "none",
                             .history_steps = 4,
                             .tuning = "ring_records=64,flush_ms=3600000,history_bytes=1M")) ==
             PK_OK,
         pk_error_message());
    record(&outer);
    pk_comm_start(pk_comm_create("ring", "world", 0, 1, 4), PK_COMM_OP_SEND, PK_COMM_TYPE_BYTE, 9,
                  0);
    pk_flush();
    hand_over();
    record(&outer);
    for (int i = 0; i < THREADS; i++)
        need(pthread_create(&threads[i], NULL, record_and_stay, &all_there) == 0, "a thread");
    pthread_barrier_wait(&all_there);
    kill(getpid(), SIGKILL);
}

static void make(arena_copy *a, const char *folder)
{
    char trace[64], path[80];
    int status;
    snprintf(trace, sizeof trace, "%s/run.json", folder);
    snprintf(path, sizeof path, "%s.arena", trace);
    pid_t child = fork();
    if (child == 0)
        die_amid_a_run(trace);
    need(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "a run that is killed");
    int fd = open(path, O_RDONLY);
    struct stat file;
    need(fd >= 0 && fstat(fd, &file) == 0, path);
    a->bytes = (size_t)file.st_size;
    a->original = mmap(NULL, a->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    need(a->original != MAP_FAILED, "the arena");
    close(fd);
    unlink(trace);
    unlink(path);
}

static void add_area(arena_copy *a, size_t at, size_t bytes)
{
    need(a->area_count < ARENA_AREAS && at + bytes <= a->bytes, "an area");
    a->areas[a->area_count++] = (arena_area){at, bytes};
}

static void find_areas(arena_copy *a)
{
    const pki_arena_header *h = (const pki_arena_header *)a->original;
    add_area(a, 0, offsetof(pki_arena_header, clock));
    add_area(a, offsetof(pki_arena_header, clock),
             offsetof(pki_clock_map, segments) + 4 * sizeof(pki_clock_segment));
    add_area(a, offsetof(pki_arena_header, blocks), 64);
    add_area(a, h->output, 256);
    add_area(a, h->names, 512);
    need(h->comms != 0, "communicators");
    add_area(a, h->comms, 2 * sizeof(pki_comms_entry));
    need(h->live.totals != 0, "distributions");
    add_area(a, h->live.totals, sizeof(pki_slot));
    need(h->history != 0, "a history");
    const pki_history_head *kept = (const pki_history_head *)(a->original + h->history);
    add_area(a, h->history, sizeof *kept + 2 * sizeof *kept->steps);
    add_area(a, kept->chunks[0], 2048);
    need(h->block_count == THREADS + 1, "blocks");
    for (uint32_t i = 0; i < h->block_count && i < 2; i++) {
        size_t t = (size_t)h->blocks[i] * PKI_PAGE;
        add_area(a, t, 2 * PKI_LINE);
        add_area(a, t + offsetof(pki_thread, taken),
                 offsetof(pki_thread, deep) - offsetof(pki_thread, taken));
        add_area(a, t + offsetof(pki_thread, frames), 4 * sizeof(pki_frame));
        add_area(a, t + offsetof(pki_thread, home), 8 + 4 * sizeof(pki_turn));
        add_area(a, t + offsetof(pki_thread, turn), 8);
        add_area(a, t + sizeof(pki_thread), 24 * sizeof(pki_record));
    }
}

/* The original bytes again. */
static void arena_restore(const arena_copy *a, size_t at, size_t bytes)
{
    need(pwrite(a->fd, a->original + at, bytes, (off_t)at) == (ssize_t)bytes, "a memory file");
}

/* All of them; what the run never touched is a hole, as in its file. */
static void arena_restore_all(const arena_copy *a)
{
    static const uint8_t nothing[PKI_PAGE];
    need(ftruncate(a->fd, (off_t)a->bytes) == 0, "a memory file");
    for (size_t at = 0; at < a->bytes; at += PKI_PAGE) {
        size_t n = a->bytes - at < PKI_PAGE ? a->bytes - at : PKI_PAGE;
        if (memcmp(a->original + at, nothing, n) != 0)
            arena_restore(a, at, n);
    }
}

/* The same one at every call. Ends the process if it cannot be made. */
static const arena_copy *arena_made(void)
{
    static arena_copy a;
    char folder[] = "/tmp/pk-fuzz-XXXXXX";
    if (a.original)
        return &a;
    need(mkdtemp(folder) != NULL, folder);
    make(&a, folder);
    rmdir(folder);
    a.fd = memfd_create("arena", MFD_CLOEXEC);
    need(a.fd >= 0, "a memory file");
    snprintf(a.path, sizeof a.path, "/proc/self/fd/%d", a.fd);
    arena_restore_all(&a);
    find_areas(&a);
    return &a;
}

/* ---- what is made of it ---- */

#define PATCHES_MOST 64
/* Of a document. Events behind the first thousands are of the same blocks again, and what gcc's
 * sanitizer sees has been parsed where there is none: what follows does the same there, and
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

static int fuzz_salvage(const uint8_t *data, size_t size)
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
        arena_restore_all(a);
    while (patches-- > 0)
        arena_restore(a, patched[patches].at, patched[patches].bytes);
    return 0;
}

#ifndef FUZZ_TARGET

/* ---- every field set to every value that may matter, and many random patches ---- */

/* Every field of a killed run's arena set to every value that may matter, and many random patches;
 * the same every time. */

static uint64_t chance = 88172645463325252u;

static uint64_t next(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance;
}

static unsigned long spoil_fields(const arena_copy *a, size_t stride)
{
    unsigned long n = 0;
    for (size_t area = 0; area < a->area_count; area++)
        for (size_t at = 0; at < a->areas[area].bytes; at += stride)
            for (unsigned value = 0; value < 2 * FUZZ_VALUES; value++, n++) {
                uint8_t patch[] = {(uint8_t)area, (uint8_t)at, (uint8_t)(at >> 8),
                                   (uint8_t)(128 + value)};
                fuzz_salvage(patch, sizeof patch);
            }
    return n;
}

static void spoil_at_random(unsigned long times)
{
    uint8_t patches[200];
    for (unsigned long n = 0; n < times; n++) {
        size_t size = next() % sizeof patches;
        for (size_t i = 0; i < size; i++)
            patches[i] = (uint8_t)(next() >> 32);
        fuzz_salvage(patches, size);
    }
}

static void cut(unsigned long times)
{
    for (unsigned long n = 0; n < times; n++) {
        uint8_t patch[] = {FUZZ_CUT, (uint8_t)next(), (uint8_t)next()};
        fuzz_salvage(patch, sizeof patch);
    }
}

static void repeat_a_block(void)
{
    uint8_t patch[] = {FUZZ_SAME};
    fuzz_salvage(patch, sizeof patch);
}

/* STRIDE TIMES: fields every so many bytes, so many random ones. */
int main(int argc, char **argv)
{
    size_t stride = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
    unsigned long times = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    const arena_copy *a = arena_made();
    /* Whatever it finds, it ends; by its own time, not by that of a busy machine. */
    setrlimit(RLIMIT_CPU, &(struct rlimit){280, 280});
    unsigned long fields = spoil_fields(a, stride ? stride : 4);
    spoil_at_random(times);
    cut(times / 10);
    repeat_a_block();
    printf("%lu fields spoilt, %lu random patches\n", fields, times);
    return 0;
}

#endif
