/* The causes: what is done to a step, or in it. */
#include "causes.h"

#include <pk/comm.h>
#include <pk/pk.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static bool all_of(bool good, const char *what)
{
    if (!good)
        cause_skip("%s: %s", what, strerror(errno));
    return good;
}

/* What has been waited since then: wall time without CPU time. */
typedef struct since {
    double wall, cpu;
} since;

static since from_now(void)
{
    return (since){cause_wall(), cause_cpu()};
}

static double waited(since s)
{
    return cause_wall() - s.wall - (cause_cpu() - s.cpu);
}

static void ring_and_see(const _Atomic int *until)
{
    cause_ring();
    while (!*until)
        ;
}

/* ---- others have the processor ---- */

static void bind_to(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Its thread alone: perfkit's are there by then. */
static void bind_worker(void)
{
    cause_both->cpu = sched_getcpu();
    bind_to(cause_both->cpu);
    cause_ring();
}

static void burn(double ms)
{
    for (double until = cause_wall() + ms; cause_wall() < until;)
        ;
}

/* Told the first time where, from then on to burn. */
static void be_neighbour(void)
{
    static bool bound;
    if (bound) {
        burn(cause_ms);
        return;
    }
    prctl(PR_SET_NAME, "neighbour");
    bind_to(cause_both->cpu);
    if (sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 10}) != 0)
        setpriority(PRIO_PROCESS, 0, -20);
    bound = true;
}

static void may_have_priority(void)
{
    errno = 0;
    bool can = setpriority(PRIO_PROCESS, 0, -20) == 0;
    int error = errno;
    setpriority(PRIO_PROCESS, 0, 0);
    errno = error;
    all_of(can, "a higher priority");
}

static void beside_neighbour(bool slow)
{
    if (slow)
        cause_ring();
    cause_compute(2);
}

static cause_group group;

static void make_quota_group(void)
{
    cause_group_make(&group, "cpu", "cpu.cfs_quota_us", "cpu.max");
}

static void join_group(void)
{
    cause_group_join(&group);
}

static void remove_group(void)
{
    cause_group_remove(&group);
}

/* A twentieth of a processor, in periods of 100 ms. */
static void under_quota(bool slow)
{
    if (slow && !cause_group_write(&group, group.second ? "cpu.max" : "cpu.cfs_quota_us",
                                   group.second ? "5000 100000" : "5000"))
        abort();
    since s = from_now();
    cause_compute(cause_ms / 19);
    while (slow && waited(s) < 0.9 * cause_ms)
        cause_compute(0.5);
    if (slow)
        cause_group_write(&group, group.second ? "cpu.max" : "cpu.cfs_quota_us",
                          group.second ? "max 100000" : "-1");
}

static void cannot_steal(void)
{
    cause_skip("a guest cannot make its host take a processor away");
}

#ifdef _OPENMP
/* On two processors, whose threads do not spin for more. */
static void bind_to_two(void)
{
    cpu_set_t all, two;
    int count = 0;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&two);
    for (size_t i = 0; i < CPU_SETSIZE && count < 2; i++)
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &two);
            count++;
        }
    if (count < 2)
        cause_skip("one processor");
    sched_setaffinity(0, sizeof two, &two);
}

/* The first thread ends last, so it hardly waits for others. */
static void in_team(bool slow)
{
    enum { EACH = 10 };
    int threads = slow ? 2 + (int)(2 * cause_ms / EACH) : 2;
#pragma omp parallel num_threads(threads)
    cause_compute(sched_getcpu() < 0 ? 0 : EACH);
}

static void needs_openmp(void) {}
#else
static void needs_openmp(void)
{
    cause_skip("built without OpenMP");
}

static void in_team(bool slow)
{
    (void)slow;
}

#define bind_to_two NULL
#endif

/* ---- it stands still ---- */

static void until_done(bool slow)
{
    cause_compute(1);
    if (slow)
        ring_and_see(&cause_both->done);
}

static void stop_it(void)
{
    kill(cause_both->worker, SIGSTOP);
    double begun = cause_wall();
    cause_sleep(cause_ms);
    kill(cause_both->worker, SIGCONT);
    cause_both->told = cause_wall() - begun;
    cause_both->done = 1;
}

static void make_freezer(void)
{
    cause_group_make(&group, "freezer", "freezer.state", "cgroup.freeze");
}

static void freeze(bool yes)
{
    const char *word = group.second ? (yes ? "1" : "0") : yes ? "FROZEN" : "THAWED";
    if (!cause_group_write(&group, group.second ? "cgroup.freeze" : "freezer.state", word))
        fprintf(stderr, "causes: %s: %s\n", group.path, strerror(errno));
}

static void freeze_it(void)
{
    freeze(true);
    double begun = cause_wall();
    cause_sleep(cause_ms);
    freeze(false);
    cause_both->told = cause_wall() - begun;
    cause_both->done = 1;
}

/* ---- locks ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static bool spins;
static sem_t wanted;
static _Atomic int held;

/* A spin lock for so long of the other's CPU time. */
static void keep(clockid_t of_taker)
{
    double until = cause_clock(of_taker) + cause_ms;
    if (!spins)
        cause_sleep(cause_ms);
    while (spins && cause_clock(of_taker) < until)
        cause_sleep(0.2);
}

/* Holds the lock once it is wanted. */
static void *keep_lock(void *taker)
{
    prctl(PR_SET_NAME, "janitor");
    pk_thread_set_name("janitor");
    while (sem_wait(&wanted) != 0)
        ;
    spins ? pthread_spin_lock(&spin) : pthread_mutex_lock(&mutex);
    held = 1;
    keep(*(clockid_t *)taker);
    spins ? pthread_spin_unlock(&spin) : pthread_mutex_unlock(&mutex);
    return NULL;
}

static void start_janitor(void)
{
    static clockid_t mine;
    pthread_t janitor;
    if (sem_init(&wanted, 0, 0) || pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) ||
        pthread_getcpuclockid(pthread_self(), &mine) ||
        pthread_create(&janitor, NULL, keep_lock, &mine) || pthread_detach(janitor))
        abort();
}

static void start_spinning_janitor(void)
{
    spins = true;
    start_janitor();
}

static void take_lock(bool slow)
{
    if (slow)
        sem_post(&wanted);
    while (slow && !held)
        ;
    spins ? pthread_spin_lock(&spin) : pthread_mutex_lock(&mutex);
    cause_compute(0.2);
    spins ? pthread_spin_unlock(&spin) : pthread_mutex_unlock(&mutex);
}

/* ---- files ---- */

enum { TMPFS = 0x01021994, BLOCK = 64 * KIB, BLOCKS = 2048 };

static int file = -1;

static void open_file(const char *name)
{
    char path[512];
    struct statfs at;
    snprintf(path, sizeof path, "%s/%s", cause_folder, name);
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    all_of(file >= 0 && fstatfs(file, &at) == 0, path);
    unlink(path);
    if (at.f_type == TMPFS)
        cause_skip("%s lies in memory", cause_folder);
}

static void fill_file(void)
{
    static char block[BLOCK];
    open_file("cold");
    for (int i = 0; i < BLOCKS; i++) {
        memset(block, i + 1, sizeof block);
        all_of(write(file, block, sizeof block) == sizeof block, "a file of 128 MiB");
    }
    all_of(fsync(file) == 0, "fsync");
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
}

/* Another block each time. */
static off_t next_block(void)
{
    static unsigned at;
    at = (at + 1237) % BLOCKS;
    return (off_t)at * BLOCK;
}

static void read_blocks(bool slow)
{
    static char block[BLOCK];
    since s = from_now();
    if (!slow)
        cause_compute(0.2);
    for (int i = 0; slow && i < BLOCKS && waited(s) < cause_ms; i++)
        if (pread(file, block, sizeof block, next_block()) != sizeof block)
            abort();
}

static void open_log_file(void)
{
    open_file("synced");
}

static void sync_file(bool slow)
{
    static char block[4 * KIB];
    since s = from_now();
    do {
        if (pwrite(file, block, sizeof block, 0) != sizeof block || (slow && fsync(file) != 0))
            abort();
    } while (slow && waited(s) < cause_ms);
}

/* ---- whoever should read, or answer, does not ---- */

static int line[2]; /* [0] the helper's end, [1] the worker's */

static void be_heard(void)
{
    cause_both->heard = 1;
}

static void write_all(size_t bytes)
{
    static char text[4 * KIB];
    memset(text, '\n', sizeof text);
    for (size_t at = 0; at < bytes;) {
        size_t most = bytes - at < sizeof text ? bytes - at : sizeof text;
        ssize_t n = write(line[1], text, most);
        if (n < 0)
            abort();
        at += (size_t)n;
    }
}

static void *drain(void *nothing)
{
    char bytes[4 * KIB];
    for (;;) {
        while (cause_both->heard)
            cause_sleep(0.2);
        if (read(line[0], bytes, sizeof bytes) <= 0)
            return nothing;
    }
}

static void be_sink(void)
{
    static bool drains;
    pthread_t sink;
    if (!drains) {
        prctl(PR_SET_NAME, "sink");
        drains = pthread_create(&sink, NULL, drain, NULL) == 0;
        return;
    }
    be_heard();
    cause_sleep(cause_ms);
    cause_both->heard = 0;
}

static void make_pipe(void)
{
    all_of(pipe(line) == 0, "pipe");
}

/* More than it has room for. */
static void fill_pipe(bool slow)
{
    if (slow)
        ring_and_see(&cause_both->heard);
    write_all(slow ? 80 * KIB : 100);
}

static void make_terminal(void)
{
    line[0] = posix_openpt(O_RDWR | O_NOCTTY);
    all_of(line[0] >= 0 && grantpt(line[0]) == 0 && unlockpt(line[0]) == 0, "a pty");
    line[1] = open(ptsname(line[0]), O_RDWR | O_NOCTTY);
    all_of(line[1] >= 0, "a pty's other end");
}

/* The master reads a little now and then. */
static void be_terminal(void)
{
    static bool drains;
    pthread_t sink;
    char bytes[KIB];
    if (!drains) {
        prctl(PR_SET_NAME, "terminal");
        drains = pthread_create(&sink, NULL, drain, NULL) == 0;
        return;
    }
    be_heard();
    while (!cause_both->done && read(line[0], bytes, sizeof bytes) > 0)
        cause_sleep(cause_ms / 60);
    cause_both->heard = 0;
}

static void log_lines(bool slow)
{
    if (slow)
        ring_and_see(&cause_both->heard);
    since s = from_now();
    do
        write_all(200);
    while (slow && waited(s) < cause_ms);
    if (slow)
        cause_both->done = 1;
}

static void make_connection(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    line[1] = socket(AF_INET, SOCK_STREAM, 0);
    all_of(listener >= 0 && bind(listener, (void *)&at, sizeof at) == 0 &&
               listen(listener, 1) == 0 && getsockname(listener, (void *)&at, &size) == 0 &&
               connect(line[1], (void *)&at, size) == 0 &&
               (line[0] = accept(listener, NULL, NULL)) >= 0,
           "a connection to 127.0.0.1");
    close(listener);
}

enum { ANSWER = 16 * KIB, SLICES = 16 };

static bool receive(int end, char *buffer, size_t bytes)
{
    ssize_t n = 1;
    for (size_t at = 0; at < bytes && n > 0; at += (size_t)n)
        n = recv(end, buffer + at, bytes - at, 0);
    return n > 0;
}

static bool put(int end, const char *what, size_t bytes)
{
    return send(end, what, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* Asked for it, waits first, or between slices of the answer. */
static void *answer(void *nothing)
{
    static char said[ANSWER];
    for (char how; receive(line[0], &how, 1);) {
        if (how == 'l')
            cause_sleep(cause_ms);
        for (int i = 0; i < SLICES; i++) {
            if (how == 's')
                cause_sleep(cause_ms / SLICES);
            put(line[0], said, ANSWER / SLICES);
        }
    }
    return nothing;
}

static void be_server(void)
{
    pthread_t server;
    prctl(PR_SET_NAME, "server");
    if (pthread_create(&server, NULL, answer, NULL) != 0)
        abort();
}

static void ask(char how)
{
    char said[ANSWER];
    if (!put(line[1], &how, 1) || !receive(line[1], said, sizeof said))
        abort();
}

static void ask_server(bool slow)
{
    ask(slow ? 'l' : 'n');
}

void cause_fetch(void)
{
    ask('l');
}

static void fetch_late(void)
{
    cause_fetches = cause_ms;
    cause_ring();
}

/* A resolver's wait: nobody answers, and it asks again. */
static int resolver;

static void make_resolver(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int silent = socket(AF_INET, SOCK_DGRAM, 0);
    resolver = socket(AF_INET, SOCK_DGRAM, 0);
    all_of(silent >= 0 && bind(silent, (void *)&at, sizeof at) == 0 &&
               getsockname(silent, (void *)&at, &size) == 0 &&
               connect(resolver, (void *)&at, size) == 0,
           "a socket of UDP");
}

static void resolve(bool slow)
{
    enum { TRIES = 2 };
    cause_compute(0.2);
    for (int i = 0; slow && i < TRIES; i++) {
        put(resolver, "name?", 5);
        poll(&(struct pollfd){.fd = resolver, .events = POLLIN}, 1, (int)(cause_ms / TRIES));
    }
}

/* ---- a job of two ranks ---- */

static pk_comm *world;
static pk_region all_reduce = PK_REGION_OF(PK_COMM, "all_reduce");

static void join_world(void)
{
    world = pk_comm_create("ring", "world", 0, 0, 2);
    cause_ring();
}

static void reduce_with(char how)
{
    PK_REGION_SCOPE(all_reduce);
    pk_comm_call(&all_reduce, world, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, ANSWER / 4, -1);
    ask(how);
}

static void reduce_with_late(bool slow)
{
    reduce_with(slow ? 'l' : 'n');
}

static void reduce_over_slow(bool slow)
{
    reduce_with(slow ? 's' : 'n');
}

/* ---- memory ---- */

/* Each page for the first time. */
static void touch_fresh(bool slow)
{
    enum { PIECE = 64 * MIB };
    static char *fresh;
    if (!fresh) {
        fresh = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED)
            abort();
        madvise(fresh, PIECE, MADV_NOHUGEPAGE);
    }
    cause_compute(0.2);
    for (double until = cause_cpu() + cause_ms; slow && cause_cpu() < until;) {
        for (size_t at = 0; at < PIECE && cause_cpu() < until; at += 64 * KIB)
            for (size_t page = 0; page < 64 * KIB; page += 4 * KIB)
                fresh[at + page] = 1;
        madvise(fresh, PIECE, MADV_DONTNEED);
    }
}

/* A heap that grows and shrinks: in the slow step the allocator gives back what it has freed, and
 * each time gets it anew. */
enum { PIECES = 64, ROUNDS_MOST = 200 };

static int rounds = 1;

static void grow_and_shrink(void)
{
    static char *pieces[PIECES];
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < PIECES; i++) {
            pieces[i] = malloc(64 * KIB);
            for (size_t page = 0; page < 64 * KIB; page += 4 * KIB)
                *(volatile char *)(pieces[i] + page) = 1;
        }
        for (int i = PIECES; i > 0; i--)
            free(pieces[i - 1]);
    }
}

static void keep_freed(bool keeps)
{
    mallopt(M_TRIM_THRESHOLD, keeps ? 512 * MIB : 64 * KIB);
}

/* So many rounds that trimming takes as long as asked for. */
static void calibrate_trimming(void)
{
    mallopt(M_MMAP_THRESHOLD, MIB);
    mallopt(M_TOP_PAD, 0);
    keep_freed(false);
    grow_and_shrink();
    enum { TRIALS = 5 };
    double cpu = cause_cpu();
    for (int i = 0; i < TRIALS; i++)
        grow_and_shrink();
    rounds = (int)(TRIALS * cause_ms / (cause_cpu() - cpu)) + 1;
    rounds = rounds < ROUNDS_MOST ? rounds : ROUNDS_MOST;
    keep_freed(true);
}

static void use_heap(bool slow)
{
    keep_freed(!slow);
    grow_and_shrink();
    keep_freed(true);
}

/* Pages of a file, which the group has no room for any more: they are thrown away and read again.
 */
static const char *mapped;

static void make_memory_group(void)
{
    fill_file();
    cause_group_make(&group, "memory", "memory.limit_in_bytes", "memory.max");
}

static void look_at_pages(double most)
{
    since s = from_now();
    volatile char sum = 0;
    for (int i = 0; i < BLOCKS && cause_wall() - s.wall < most; i++) {
        const char *block = mapped + next_block();
        for (size_t page = 0; page < BLOCK; page += 4 * KIB)
            sum += block[page];
    }
}

static void join_and_map(void)
{
    cause_group_join(&group);
    posix_fadvise(file, 0, 0, POSIX_FADV_NORMAL);
    mapped = mmap(NULL, (size_t)BLOCK * BLOCKS, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        abort();
    look_at_pages(1e9);
}

static void limit_memory(bool yes)
{
    const char *limit = group.second ? "memory.max" : "memory.limit_in_bytes";
    char text[32];
    snprintf(text, sizeof text, "%lld",
             cause_group_read(&group, group.second ? "memory.current" : "memory.usage_in_bytes") -
                 96ll * MIB);
    cause_group_write(&group, limit, yes ? text : group.second ? "max" : "-1");
}

static void look_up(bool slow)
{
    since s = from_now();
    if (slow)
        limit_memory(true);
    do
        look_at_pages(slow ? cause_ms - (cause_wall() - s.wall) : 0.5);
    while (slow && cause_wall() - s.wall < cause_ms);
    if (slow)
        limit_memory(false);
}

/* ---- the program's own doing ---- */

static void decode_longer(void)
{
    cause_decodes = cause_ms;
}

static void batch_more(void)
{
    cause_more_samples = (unsigned)(cause_ms / 0.5);
}

static void be_other_kind(void)
{
    cause_other_kind = true;
}

static void normalise_longer(void)
{
    cause_in_normalise = cause_ms;
}

/* ---- all of them ---- */

static const cause all[] = {
    {"sigstop", "stopped", NULL, true, TRUTH_TOLD, PLACE_BACK, .act = until_done, .help = stop_it},
    {"priority", "no-processor", "neighbour", true, TRUTH_OFF, PLACE_MLP,
     .prepare = may_have_priority, .begin = bind_worker, .act = beside_neighbour,
     .help = be_neighbour},
    {"quota", "no-processor", "quota", true, TRUTH_OFF, PLACE_MLP, .prepare = make_quota_group,
     .join = join_group, .act = under_quota, .finish = remove_group},
    {"freeze", "stopped", NULL, true, TRUTH_TOLD, PLACE_BACK, .prepare = make_freezer,
     .join = join_group, .act = until_done, .help = freeze_it, .finish = remove_group},
    {"steal", "no-processor", "steal", true, TRUTH_OFF, PLACE_MLP, .prepare = cannot_steal},
    {"openmp", "no-processor", "own", true, TRUTH_OFF, PLACE_MLP, .prepare = needs_openmp,
     .join = bind_to_two, .act = in_team},
    {"mutex", "lock", "janitor", false, TRUTH_WAITED, PLACE_APPLY, .begin = start_janitor,
     .act = take_lock},
    {"spin", "compute", NULL, false, TRUTH_COMPUTED, PLACE_APPLY, .begin = start_spinning_janitor,
     .act = take_lock},
    {"cold-read", "read", NULL, false, TRUTH_WAITED, PLACE_BACK, .prepare = fill_file,
     .act = read_blocks},
    {"fsync", "sync", NULL, false, TRUTH_WAITED, PLACE_LOG, .prepare = open_log_file,
     .act = sync_file},
    {"pipe", "pipe", NULL, false, TRUTH_WAITED, PLACE_LOG, .prepare = make_pipe,
     .begin = cause_ring, .act = fill_pipe, .help = be_sink},
    {"socket", "socket", NULL, false, TRUTH_WAITED, PLACE_APPLY, .prepare = make_connection,
     .begin = cause_ring, .act = ask_server, .help = be_server},
    {"dns", "socket", NULL, false, TRUTH_WAITED, PLACE_BACK, .prepare = make_resolver,
     .act = resolve},
    {"page-faults", "page-faults", NULL, false, TRUTH_COMPUTED, PLACE_MLP, .act = touch_fresh},
    {"trim", "page-faults", NULL, false, TRUTH_COMPUTED, PLACE_MLP, .begin = calibrate_trimming,
     .act = use_heap},
    {"reclaim", "memory", NULL, false, TRUTH_TOOK, PLACE_MLP, .prepare = make_memory_group,
     .join = join_and_map, .act = look_up, .finish = remove_group},
    {"batch", "more-work", "sample", false, TRUTH_COMPUTED, PLACE_EMBED, .prepare = batch_more},
    {"other-kind", "other-kind", "evaluate", false, TRUTH_STEP, PLACE_NONE,
     .prepare = be_other_kind},
    {"loader-computes", "compute@loader lock@loader wait@loader", "decode", false, TRUTH_LOADED,
     PLACE_NONE, .prepare = decode_longer},
    {"loader-waits", "socket@loader lock@loader wait@loader", "fetch", false, TRUTH_LOADED,
     PLACE_NONE, .prepare = make_connection, .begin = fetch_late, .help = be_server},
    {"terminal", "terminal", NULL, false, TRUTH_WAITED, PLACE_LOG, .prepare = make_terminal,
     .begin = cause_ring, .act = log_lines, .help = be_terminal},
    {"late-rank", "collective", NULL, false, TRUTH_WAITED, PLACE_REDUCE, .prepare = make_connection,
     .begin = join_world, .act = reduce_with_late, .help = be_server},
    {"slow-link", "collective socket", NULL, false, TRUTH_WAITED, PLACE_REDUCE,
     .prepare = make_connection, .begin = join_world, .act = reduce_over_slow, .help = be_server},
    {"function", "compute", "normalise", false, TRUTH_COMPUTED, PLACE_MLP,
     .prepare = normalise_longer},
};

const cause *cause_find(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

void cause_list(void)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        puts(all[i].name);
}
