/* What a program does itself that makes a step slow. */
#include "causes.h"

#include <pk/comm.h>
#include <pk/pk.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

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
        cause_sleep(2);
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
    cause_need(file >= 0 && fstatfs(file, &at) == 0, path);
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
        cause_need(write(file, block, sizeof block) == sizeof block, "a file of 128 MiB");
    }
    cause_need(fsync(file) == 0, "fsync");
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
    cause_span begun = cause_begin();
    if (!slow)
        cause_compute(0.2);
    for (int i = 0; slow && i < BLOCKS && cause_waited(cause_since(begun)) < cause_ms; i++)
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
    cause_span begun = cause_begin();
    do {
        if (pwrite(file, block, sizeof block, 0) != sizeof block || (slow && fsync(file) != 0))
            abort();
    } while (slow && cause_waited(cause_since(begun)) < cause_ms);
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
    cause_need(pipe(line) == 0, "pipe");
}

/* More than it has room for. */
static void fill_pipe(bool slow)
{
    if (slow)
        cause_ring_until(&cause_both->heard);
    write_all(slow ? 80 * KIB : 100);
}

static void make_terminal(void)
{
    line[0] = posix_openpt(O_RDWR | O_NOCTTY);
    cause_need(line[0] >= 0 && grantpt(line[0]) == 0 && unlockpt(line[0]) == 0, "a pty");
    line[1] = open(ptsname(line[0]), O_RDWR | O_NOCTTY);
    cause_need(line[1] >= 0, "a pty's other end");
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
        cause_ring_until(&cause_both->heard);
    cause_span begun = cause_begin();
    do
        write_all(200);
    while (slow && cause_waited(cause_since(begun)) < cause_ms);
    if (slow)
        cause_both->done = 1;
}

static void make_connection(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    line[1] = socket(AF_INET, SOCK_STREAM, 0);
    cause_need(listener >= 0 && bind(listener, (void *)&at, sizeof at) == 0 &&
                   listen(listener, 1) == 0 && getsockname(listener, (void *)&at, &size) == 0 &&
                   connect(line[1], (void *)&at, size) == 0 &&
                   (line[0] = accept(listener, NULL, NULL)) >= 0,
               "a connection to 127.0.0.1");
    for (int i = 0; i < 2; i++)
        setsockopt(line[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
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
    cause_need(silent >= 0 && bind(silent, (void *)&at, sizeof at) == 0 &&
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
static cause_group group;

static void remove_group(void)
{
    cause_group_remove(&group);
}

static void make_memory_group(void)
{
    fill_file();
    cause_group_make(&group, "memory", "memory.limit_in_bytes", "memory.max");
}

static void look_at_pages(double most)
{
    cause_span begun = cause_begin();
    for (int i = 0; i < BLOCKS && cause_wall() - begun.wall < most; i++) {
        const char *block = mapped + next_block();
        for (size_t page = 0; page < BLOCK; page += 4 * KIB)
            (void)*(const volatile char *)(block + page);
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

/* The helper, told the first time to take room away, and then to give it back. */
static void limit_memory(void)
{
    static bool limited;
    const char *limit = group.second ? "memory.max" : "memory.limit_in_bytes";
    const char *used = group.second ? "memory.current" : "memory.usage_in_bytes";
    char text[32];
    snprintf(text, sizeof text, "%lld", cause_group_read(&group, used) - 96ll * MIB);
    cause_group_write(&group, limit, !limited ? text : group.second ? "max" : "-1");
    limited = true;
}

static double had(cause_span passed)
{
    return passed.wall - passed.delay;
}

static void look_up(bool slow)
{
    cause_span begun = cause_begin();
    if (slow)
        cause_ring();
    do
        look_at_pages(slow ? 10 : 0.5);
    while (slow && had(cause_since(begun)) < cause_ms);
    if (slow)
        cause_ring();
}

/* The machine's free memory is put together, again and again, by who asks for it. */
static int compactor = -1;

static void may_compact(void)
{
    compactor = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC);
    cause_need(compactor >= 0, "/proc/sys/vm/compact_memory");
}

static void compact(bool slow)
{
    double until = cause_cpu() + cause_ms;
    cause_compute(0.2);
    while (slow && cause_cpu() < until)
        if (pwrite(compactor, "1", 1, 0) != 1)
            abort();
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

const cause causes_inside[] = {
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
    {"compaction", "huge-pages", NULL, false, TRUTH_COMPUTED, PLACE_MLP, .prepare = may_compact,
     .act = compact},
    {"reclaim", "memory", NULL, false, TRUTH_WAITED, PLACE_MLP, .prepare = make_memory_group,
     .join = join_and_map, .act = look_up, .help = limit_memory, .finish = remove_group},
    {"batch", "more-work", "sample", false, TRUTH_COMPUTED, PLACE_EMBED, .prepare = batch_more},
    {"other-kind", "other-kind", "evaluate", false, TRUTH_STEP, PLACE_NONE,
     .prepare = be_other_kind},
    {"loader-computes", "thread@loader compute@loader lock@loader wait@loader", "decode", false,
     TRUTH_LOADED, PLACE_NONE, .prepare = decode_longer},
    {"loader-waits", "thread@loader socket@loader lock@loader wait@loader", "fetch", false,
     TRUTH_LOADED, PLACE_NONE, .prepare = make_connection, .begin = fetch_late, .help = be_server},
    {"terminal", "terminal", NULL, false, TRUTH_WAITED, PLACE_LOG, .prepare = make_terminal,
     .begin = cause_ring, .act = log_lines, .help = be_terminal},
    {"late-rank", "collective", NULL, false, TRUTH_WAITED, PLACE_REDUCE, .prepare = make_connection,
     .begin = join_world, .act = reduce_with_late, .help = be_server},
    {"slow-link", "collective socket", NULL, false, TRUTH_WAITED, PLACE_REDUCE,
     .prepare = make_connection, .begin = join_world, .act = reduce_over_slow, .help = be_server},
    {"function", "compute", "normalise", false, TRUTH_COMPUTED, PLACE_MLP,
     .prepare = normalise_longer},
    {.name = NULL},
};
