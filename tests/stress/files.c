/* What is in files at any moment: of who is killed, of who goes on, and on a disk that is full. */
#include "kit.h"
#include "trace.h"
#include "tuning.h"

#include <pk/pk.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "session/session.h"

/* ---- a program killed at any moment leaves a run that can be read ---- */

/* A victim numbers its regions and writes, next to each end, the number to memory that outlives
 * it. After the kill `pk recover` makes the trace whole; in it every number up to the last one
 * written has to be there, once, in order, with its fields as they were: but for the very last per
 * thread, which may have been on its way. */

#define THREADS 4
#define LANES 4 /* victims at a time */

typedef struct journal {
    uint64_t ended[2][THREADS]; /* the last number whose pk_region_end has returned; by session */
    uint64_t steps;
    uint64_t session; /* that has been started */
    uint64_t stopping;
    uint64_t dropped; /* regions, as far as was asked: 0 at least until the first */
} journal;

typedef struct plan {
    const char *ending; /* of the trace's name */
    unsigned times, delay_us;
    uint32_t ring_records;
    unsigned pause; /* between regions, in turns of a loop */
    bool drops;     /* killed only after the first, so there are some; else there are none */
    void (*run)(const struct plan *p, const char *path);
    unsigned spares; /* segments that full rings reach into */
} plan;

static journal *shared;     /* one of each lane */
static unsigned lane, side; /* side: the session's last bit */
static const char *pk_command;

static void note(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static uint64_t noted(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* -- victims -- */

static const plan *victims_plan;

static void number_one(unsigned me, pk_region *region, pk_region *inner, uint64_t n)
{
    static _Thread_local uint64_t chance;
    chance = chance ? chance : 77 + me;
    pk_region_begin(region);
    pk_region_begin(inner);
    for (volatile uint64_t i = kit_random(&chance) % (2 * victims_plan->pause); i > 0; i--)
        ;
    pk_region_end(inner);
    pk_region_add(region, n, 3 * n);
    pk_region_end(region);
    note(&shared[lane].ended[side][me], n);
}

static void note_drops(void)
{
    pk_counts counts = {.size = sizeof counts};
    must_equal(pk_get_counts(&counts), PK_OK);
    note(&shared[lane].dropped, counts.dropped);
}

static void *number_regions(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    char name[16], inside[16];
    snprintf(name, sizeof name, "thread-%u", me);
    snprintf(inside, sizeof inside, "inside-%u", me);
    pk_region *region = pk_region_named(name), *inner = pk_region_named(inside);
    for (uint64_t n = 1;; n++) {
        number_one(me, region, inner, n);
        if (me == 0 && n % 100 == 0) {
            pk_step(n);
            note(&shared[lane].steps, n / 100);
            if (victims_plan->drops)
                note_drops();
        }
    }
    return NULL;
}

static void start(const plan *p, const char *path)
{
    must_equal(
        pk_start(pk_options(.trace_path = path, .memory_bytes = 64u << 20, .backends = "none",
                            .tuning = kit_tuning("ring_records=%u,flush_ms=20", p->ring_records))),
        PK_OK);
    pki_session *s = &pki_the_session;
    pthread_mutex_lock(&pki_drain_lock);
    for (unsigned i = 0; i < p->spares; i++)
        must(pki_spare_make(&s->registry->spares, s->arena, p->ring_records * 32, p->spares));
    pthread_mutex_unlock(&pki_drain_lock);
}

static void record_for_ever(const plan *p, const char *path)
{
    pthread_t threads[THREADS];
    start(p, path);
    for (unsigned i = 1; i < THREADS; i++)
        must_equal(pthread_create(&threads[i], NULL, number_regions, (void *)(uintptr_t)i), 0);
    number_regions(NULL);
}

static pthread_barrier_t all_open;

/* Ten regions that stay open until the session has ended. */
static void *number_and_stay_open(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    char name[16];
    snprintf(name, sizeof name, "thread-%u", me);
    pk_region *region = pk_region_named(name), *inner = pk_region_named("inside");
    for (unsigned i = 0; i < 10; i++)
        pk_region_begin(pk_region_named("stays open"));
    for (uint64_t n = 1; n <= 100; n++)
        number_one(me, region, inner, n);
    pthread_barrier_wait(&all_open);
    pthread_barrier_wait(&all_open); /* stopped */
    return NULL;
}

/* One session after the other, each with files of its own. */
static void stop_for_ever(const plan *p, const char *path)
{
    pthread_t threads[THREADS];
    char numbered[600];
    pthread_barrier_init(&all_open, NULL, THREADS + 1);
    for (uint64_t session = 1;; session++) {
        snprintf(numbered, sizeof numbered, "%.500s.%llu%s", path, (unsigned long long)session,
                 p->ending);
        side = session & 1;
        memset(shared[lane].ended[side], 0, sizeof shared[lane].ended[side]);
        start(p, numbered);
        note(&shared[lane].session, session);
        for (unsigned i = 0; i < THREADS; i++)
            must_equal(
                pthread_create(&threads[i], NULL, number_and_stay_open, (void *)(uintptr_t)i), 0);
        pthread_barrier_wait(&all_open);
        note(&shared[lane].stopping, session);
        must_equal(pk_stop(), PK_OK);
        pthread_barrier_wait(&all_open);
        for (unsigned i = 0; i < THREADS; i++)
            must_equal(pthread_join(threads[i], NULL), 0);
    }
}

static bool under_way(const plan *p)
{
    const journal *j = &shared[lane];
    if (p->drops)
        return noted(&j->dropped) > 0;
    return p->run == stop_for_ever ? noted(&j->stopping) > 0 : noted(&j->ended[0][0]) > 0;
}

static void kill_after(const plan *p, const char *path, unsigned us)
{
    int status;
    memset(&shared[lane], 0, sizeof *shared);
    side = 0;
    fflush(NULL);
    pid_t victim = fork();
    must(victim >= 0);
    if (victim == 0) {
        kit_watchdog(240);
        victims_plan = p;
        p->run(p, path);
        _exit(1);
    }
    while (!under_way(p) && waitpid(victim, &status, WNOHANG) == 0)
        kit_sleep_us(100);
    kit_sleep_us(us);
    kill(victim, SIGKILL);
    must_equal(waitpid(victim, &status, 0), victim);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* -- what is left of them -- */

static bool is_there(const char *path, const char *ending)
{
    char whole[700];
    snprintf(whole, sizeof whole, "%s%s", path, ending);
    return access(whole, F_OK) == 0;
}

static void recover(const char *path)
{
    char command[2000];
    snprintf(command, sizeof command, "'%s' recover '%s.arena' -o '%s' >'%s.said' 2>&1", pk_command,
             path, path, path);
    must_equal(system(command), 0);
}

/* The numbers of one thread's regions in the order of the file: 1, 2, 3, ... The last one of all
 * may be missing, or be there although its end had not returned. */
static void check_thread(const trace *t, unsigned me, bool drops)
{
    char name[16];
    uint64_t last = 0, missing = 0, ended = shared[lane].ended[side][me];
    snprintf(name, sizeof name, "thread-%u", me);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        if (strcmp(e->name, name) != 0 || e->unbalanced)
            continue;
        must(e->bytes > last); /* none twice, none out of order */
        must_equal(e->flops, 3 * e->bytes);
        missing += e->bytes - last - 1;
        last = e->bytes;
    }
    must(last <= ended + 1);
    must(drops || (missing == 0 && last + 1 >= ended));
}

static void check_steps(const trace *t)
{
    uint64_t steps = 0, known = shared[lane].steps;
    for (size_t i = 0; i < t->count; i++)
        steps += t->events[i].step;
    must(steps + 1 >= known && steps <= known + 1);
}

static void read_trace(trace *t, const char *path)
{
    if (!trace_read(t, path) || !trace_nests(t)) {
        fprintf(stderr, "%s: %s\n", path, t->why);
        kit_give_up(__FILE__, __LINE__, "the trace is whole and nests", 0, 0);
    }
}

static void check_recording(const plan *p, const char *path)
{
    trace t;
    recover(path);
    read_trace(&t, path);
    must_equal(t.count, t.written);
    must_equal(t.begun, t.recorded + t.dropped);
    must(t.dropped >= noted(&shared[lane].dropped));
    must(t.dropped > 0 || !p->drops); /* a slow disk drops some in any run */
    for (unsigned i = 0; i < THREADS; i++)
        check_thread(&t, i, t.dropped > 0);
    if (t.dropped == 0)
        check_steps(&t);
    trace_free(&t);
}

/* Killed while a session began or ended: before there was a trace, between, or behind. */
static void check_stopping(const plan *p, const char *path)
{
    trace t;
    char numbered[600];
    uint64_t session = noted(&shared[lane].session);
    side = session & 1;
    snprintf(numbered, sizeof numbered, "%.500s.%llu%s", path, (unsigned long long)session,
             p->ending);
    if (is_there(numbered, ".arena"))
        recover(numbered);
    read_trace(&t, numbered);
    for (unsigned i = 0; i < THREADS; i++)
        check_thread(&t, i, false);
    if (noted(&shared[lane].stopping) == session) /* all are open, and closed by one or the other */
        must_equal(trace_slices(&t, "stays open"), 10 * THREADS);
    trace_free(&t);
}

static void kill_in_lane(const plan *p)
{
    uint64_t chance = 4711 + 100 * lane + strlen(p->ending);
    for (unsigned i = 0; i < p->times; i++) {
        char name[64], path[600];
        snprintf(name, sizeof name, "run-%u-%u%s", lane, i,
                 p->run == stop_for_ever ? "" : p->ending);
        snprintf(path, sizeof path, "%s", kit_path(name));
        kill_after(p, path, (unsigned)(kit_random(&chance) % p->delay_us));
        if (p->run == stop_for_ever)
            check_stopping(p, path);
        else
            check_recording(p, path);
    }
}

/* In lanes beside each other, since a victim spends its time waiting. */
static void kill_many(plan p)
{
    pid_t lanes[LANES];
    int status;
    kit_clean();
    (void)kit_folder();
    fflush(NULL);
    for (unsigned i = 0; i < LANES; i++) {
        lanes[i] = fork();
        assert_true(lanes[i] >= 0);
        if (lanes[i] == 0) {
            lane = i;
            kill_in_lane(&p);
            _exit(0);
        }
    }
    int worst = 0;
    for (unsigned i = 0; i < LANES; i++) {
        assert_int_equal(waitpid(lanes[i], &status, 0), lanes[i]);
        worst = status ? status : worst;
    }
    assert_int_equal(worst, 0);
}

static void plain(void **state)
{
    (void)state;
    kill_many((plan){".json", kit_scaled(15), 100000, 1u << 16, 15000, false, record_for_ever, 0});
}

static void compressed(void **state)
{
    (void)state;
    kill_many(
        (plan){".json.gz", kit_scaled(10), 100000, 1u << 16, 15000, false, record_for_ever, 0});
}

static void with_drops(void **state)
{
    (void)state;
    kill_many((plan){".json", kit_scaled(5), 50000, 64, 50, true, record_for_ever, 0});
}

static void in_segments(void **state)
{
    (void)state;
    kill_many((plan){".json", kit_scaled(5), 50000, 64, 15000, false, record_for_ever, 60});
}

static void within_stop(void **state)
{
    (void)state;
    kill_many((plan){".json", kit_scaled(40), 20000, 4096, 500, false, stop_for_ever, 0});
}

static void within_stop_compressed(void **state)
{
    (void)state;
    kill_many((plan){".json.gz", kit_scaled(20), 20000, 4096, 500, false, stop_for_ever, 0});
}

static int run_kill(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),       cmocka_unit_test(compressed),
        cmocka_unit_test(with_drops),  cmocka_unit_test(in_segments),
        cmocka_unit_test(within_stop), cmocka_unit_test(within_stop_compressed),
    };
    if (argc < 2)
        kit_skip("needs the pk command: its path is the first argument");
    pk_command = argv[1];
    shared = mmap(NULL, LANES * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                  -1, 0);
    if (shared == MAP_FAILED)
        kit_skip("no memory to share with a child");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- live ---- */

/* Whoever opens the trace of a program that is still running finds a whole document, at any
 * moment; after a flush with everything in it that was recorded before. */

static pk_region numbered = PK_REGION("numbered"), other = PK_REGION_OF(PK_IO, "other");
static pk_counter counter = PK_COUNTER("live.counter", "");

static void record_numbered(uint64_t number)
{
    pk_region_begin(&numbered);
    pk_region_begin(&other);
    pk_region_end(&other);
    pk_region_add(&numbered, number, 0);
    pk_region_end(&numbered);
}

/* Numbers from 1 on without a gap; the last one. */
static uint64_t last_number(trace *t, const char *path)
{
    uint64_t last = 0;
    if (!trace_read(t, path) || !trace_nests(t))
        fail_msg("%s", t->why);
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->events[i].name, "numbered") == 0 && t->events[i].bytes)
            assert_int_equal(t->events[i].bytes, ++last);
    trace_free(t);
    return last;
}

static void after_each_flush(const char *path)
{
    trace t;
    uint64_t number = 0, chance = 12345;
    assert_int_equal(
        pk_start(pk_options(.trace_path = path, .backends = "none", .tuning = "flush_ms=3600000")),
        PK_OK);
    for (unsigned i = 0; i < kit_scaled(50); i++) {
        for (uint64_t n = kit_random(&chance) % 60; n > 0; n--)
            record_numbered(++number);
        assert_int_equal(pk_flush(), PK_OK);
        assert_int_equal(last_number(&t, path), number);
        assert_false(t.complete || t.has_report);
    }
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(last_number(&t, path), number);
    assert_true(t.has_report);
}

static void flushed(void **state)
{
    (void)state;
    after_each_flush(kit_path("flushed.json"));
}

static void flushed_compressed(void **state)
{
    (void)state;
    after_each_flush(kit_path("flushed.json.gz"));
}

/* -- a program that is held at any moment -- */

static uint64_t *returned; /* the last number whose end has returned */

static void *make_noise(void *argument)
{
    for (unsigned i = 0;; i++) {
        pk_region_begin(&other);
        pk_region_end(&other);
        if (i % 64 == 0)
            pk_counter_set(&counter, i);
        kit_sleep_us(100);
    }
    return argument;
}

static void run_for_ever(const char *path)
{
    pthread_t noise;
    kit_watchdog(240);
    must_equal(pk_start(pk_options(.trace_path = path, .backends = "none",
                                   .tuning = "flush_ms=10,ring_records=4096")),
               PK_OK);
    must(pthread_create(&noise, NULL, make_noise, NULL) == 0);
    for (uint64_t number = 1;; number++) {
        record_numbered(number);
        __atomic_store_n(returned, number, __ATOMIC_RELEASE);
        kit_sleep_us(100);
    }
}

/* Held: nobody is inside a write. */
static void hold_and_look(pid_t child, const char *path, uint64_t *seen)
{
    int status;
    trace t;
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    uint64_t last = last_number(&t, path);
    assert_true(last >= *seen);
    assert_true(last <= __atomic_load_n(returned, __ATOMIC_ACQUIRE) + 1);
    *seen = last;
    assert_int_equal(kill(child, SIGCONT), 0);
}

static void look_at(const char *path)
{
    int status;
    uint64_t seen = 0, chance = 99;
    *returned = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        run_for_ever(path);
    while (__atomic_load_n(returned, __ATOMIC_ACQUIRE) == 0 &&
           waitpid(child, &status, WNOHANG) == 0)
        kit_sleep_us(100);
    /* A busy machine may write nothing for a while. */
    for (unsigned i = 0; i < kit_scaled(50) || (!seen && i < 2000); i++) {
        kit_sleep_us((unsigned)(kit_random(&chance) % 15000));
        hold_and_look(child, path, &seen);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(seen > 0);
}

static void held(void **state)
{
    (void)state;
    look_at(kit_path("held.json"));
}

static void held_compressed(void **state)
{
    (void)state;
    look_at(kit_path("held.json.gz"));
}

static int run_live(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flushed),
        cmocka_unit_test(flushed_compressed),
        cmocka_unit_test(held),
        cmocka_unit_test(held_compressed),
    };
    returned =
        mmap(NULL, sizeof *returned, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (returned == MAP_FAILED)
        kit_skip("no memory to share with a child");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- a disk that is full, a real one ---- */

/* A small tmpfs, mounted where only this process sees it. Two million regions, flushed and stopped
 * on it and beside it: all are counted, whichever disk it was. How long both take is printed; that
 * the full one is asked once in a round is tests/unit/test_session.c's. */

#define REGIONS 2000000u
#define BATCH 100000u

static pk_region region = PK_REGION("region");
static uint64_t flushed_ns, stopped_ns;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static pk_counts counts_now(void)
{
    pk_counts counts = {.size = sizeof counts};
    must_equal(pk_get_counts(&counts), PK_OK);
    return counts;
}

/* None is dropped: each batch waits until the collector has taken the one before. */
static void record(unsigned n)
{
    for (unsigned done = 0; done < n; done += BATCH) {
        while (counts_now().recorded < done)
            usleep(1000);
        for (unsigned i = 0; i < BATCH; i++) {
            PK_REGION_SCOPE(region);
        }
    }
}

static pk_counts run(const char *file, pk_status wanted, unsigned n)
{
    must_equal(pk_start(pk_options(.trace_path = file, .backends = "none",
                                   .tuning = "arena_path=none,ring_records=262144")),
               PK_OK);
    record(n);
    uint64_t at = now_ns();
    must_equal(pk_flush(), wanted);
    flushed_ns = now_ns() - at;
    must_equal(pk_stop(), wanted);
    stopped_ns = now_ns() - at - flushed_ns;
    pk_counts counts = counts_now();
    must_equal(counts.dropped, 0);
    must_equal(counts.recorded, n);
    must_equal(counts.written + counts.unwritten, n);
    printf("%u regions, %s: %llu written, flush %.3f s, stop %.3f s\n", n, wanted ? "full" : "room",
           (unsigned long long)counts.written, (double)flushed_ns * 1e-9,
           (double)stopped_ns * 1e-9);
    return counts;
}

static void mount_small(const char *folder, const char *size)
{
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", folder, "tmpfs", 0, size))
        kit_skip("a file system cannot be mounted here (root may)");
}

static int run_full(int argc, char **argv)
{
    (void)argc, (void)argv;
    unsigned batches = kit_scaled(REGIONS / BATCH);
    unsigned n = (batches < 4 ? 4 : batches) * BATCH; /* two, compressed, have room in 1 MiB */
    char full[4200], room[4200], tiny[4200];
    kit_watchdog(280);
    snprintf(room, sizeof room, "%s", kit_path("room.json"));
    must_equal(run(room, PK_OK, n).unwritten, 0);
    unlink(room);
    mount_small(kit_folder(), "size=1m");
    snprintf(full, sizeof full, "%s", kit_path("full.json"));
    must(run(full, PK_ENOSPC, n).unwritten > 0);
    unlink(full); /* the next one has room for its head */
    snprintf(full, sizeof full, "%s", kit_path("full.json.gz"));
    must(run(full, PK_ENOSPC, n).unwritten > 0);
    kit_clean();
    /* The arena finds room for its header and for nothing else. */
    snprintf(tiny, sizeof tiny, "%s", kit_path("tiny.arena"));
    must_equal(pk_start(pk_options(.backends = "none",
                                   .tuning = kit_tuning("arena_path=%s,ring_records=1M", tiny))),
               PK_OK);
    {
        PK_REGION_SCOPE(region);
    }
    must_equal(pk_stop(), PK_ENOSPC);
    must(strstr(pk_error_message(), "nothing could be recorded") != NULL);
    umount2(kit_folder(), MNT_DETACH);
    return 0;
}

/* stress-files NAME [ARGUMENT] */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"kill", run_kill},
        {"live", run_live},
        {"full", run_full},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
