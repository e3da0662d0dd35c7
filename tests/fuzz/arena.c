#include "arena.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/pk.h>

#include "core/arena.h"
#include "core/thread.h"
#include "history/history.h"
#include "session/activity.h"
#include "session/session.h"

#define THREADS 3
#define MEMORY ((uint64_t)4 << 20)

static pk_region outer = PK_REGION("outer"), data = PK_REGION_OF(PK_DATA, "data \"quoted\"\n");
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
        pk_region_begin(&data);
        pk_region_add(&data, 4096, (uint64_t)i);
        pk_region_next(&data, pk_region_variant(&outer, "size", i));
        pk_region_end(pk_region_variant(&outer, "size", i));
        pk_counter_set(&level, -1.5 * i);
        pk_region_mark(&outer);
        if (argument && i % 3 == 0)
            pk_step(32);
    }
    pk_region_begin(&data);
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

void arena_restore(const arena_copy *a, size_t at, size_t bytes)
{
    need(pwrite(a->fd, a->original + at, bytes, (off_t)at) == (ssize_t)bytes, "a memory file");
}

const arena_copy *arena_made(void)
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
    arena_restore(&a, 0, a.bytes);
    find_areas(&a);
    return &a;
}
