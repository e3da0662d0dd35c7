#include "session/captures/waits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.h"
#include "core/frames.h"
#include "core/names.h"
#include "core/registry.h"
#include "out/chrome/events.h"

#define OF_KERNEL 0x00200000u /* PF_KTHREAD of linux/sched.h, in field 9 */
#define THREADS_MOST 64u      /* of the process, that are looked at */

/* ---- what the kernel says of a thread ---- */

/* proc_pid_stat(5): the name is in parentheses, and may have some of its own. */
static bool parse_stat(char *text, pki_thread_stat *s)
{
    unsigned long long user, kernel, minor, major;
    unsigned processor, flags;
    char *name = strchr(text, '('), *end = strrchr(text, ')');
    *s = (pki_thread_stat){0};
    if (!name || !end || end < name)
        return false;
    *end = 0;
    snprintf(s->name, sizeof s->name, "%s", name + 1);
    int n = sscanf(end + 1,
                   " %c %*d %*d %*d %*d %*d %u %llu %*u %llu %*u %llu %llu %*d %*d %*d %*d %u %*d "
                   "%*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %u",
                   &s->state, &flags, &minor, &major, &user, &kernel, &s->threads, &processor);
    if (n != 8)
        return false;
    s->ticks = user + kernel;
    s->in_kernel = kernel;
    s->faults[0] = minor;
    s->faults[1] = major;
    s->processor = processor;
    s->of_kernel = flags & OF_KERNEL;
    return true;
}

bool pki_thread_stat_read(const char *folder, uint32_t id, pki_thread_stat *s)
{
    char path[96], text[1024];
    snprintf(path, sizeof path, "%s/%u/stat", folder, id);
    return pki_small_file_once(path, text, sizeof text) && parse_stat(text, s);
}

/* ---- in which call it is blocked ---- */

typedef enum call_kind {
    OF_READ, /* of the descriptor that is its first argument */
    OF_WRITE,
    OF_SYNC,
    OF_SOCKET,
    OF_POLL, /* of several, in an array of struct pollfd */
    OF_ANY,  /* of several, which the kernel does not tell */
    OF_SLEEP,
    OF_LOCK,
    OF_CHILD,
    OF_MEMORY,
    OF_DEVICE
} call_kind;

static const struct {
    long number;
    const char *name;
    call_kind kind;
} calls[] = {
#define CALL(name, kind)                                                                           \
    {                                                                                              \
        SYS_##name, #name, kind                                                                    \
    }
    CALL(read, OF_READ),
    CALL(readv, OF_READ),
    CALL(pread64, OF_READ),
    CALL(preadv, OF_READ),
    CALL(write, OF_WRITE),
    CALL(writev, OF_WRITE),
    CALL(pwrite64, OF_WRITE),
    CALL(pwritev, OF_WRITE),
    CALL(sendfile, OF_WRITE),
    CALL(splice, OF_READ),
    CALL(fsync, OF_SYNC),
    CALL(fdatasync, OF_SYNC),
    CALL(sync_file_range, OF_SYNC),
    CALL(syncfs, OF_SYNC),
    CALL(ftruncate, OF_SYNC),
    CALL(fallocate, OF_SYNC),
    CALL(recvfrom, OF_SOCKET),
    CALL(recvmsg, OF_SOCKET),
    CALL(recvmmsg, OF_SOCKET),
    CALL(sendto, OF_SOCKET),
    CALL(sendmsg, OF_SOCKET),
    CALL(sendmmsg, OF_SOCKET),
    CALL(connect, OF_SOCKET),
    CALL(accept, OF_SOCKET),
    CALL(accept4, OF_SOCKET),
#ifdef SYS_poll
    CALL(poll, OF_POLL),
#endif
    CALL(ppoll, OF_POLL),
#ifdef SYS_select
    CALL(select, OF_ANY),
#endif
    CALL(pselect6, OF_ANY),
#ifdef SYS_epoll_wait
    CALL(epoll_wait, OF_ANY),
#endif
    CALL(epoll_pwait, OF_ANY),
    CALL(nanosleep, OF_SLEEP),
    CALL(clock_nanosleep, OF_SLEEP),
    CALL(futex, OF_LOCK),
    CALL(wait4, OF_CHILD),
    CALL(waitid, OF_CHILD),
    CALL(mmap, OF_MEMORY),
    CALL(munmap, OF_MEMORY),
    CALL(mprotect, OF_MEMORY),
    CALL(madvise, OF_MEMORY),
    CALL(brk, OF_MEMORY),
    CALL(ioctl, OF_DEVICE),
#undef CALL
};

typedef struct blocked_call {
    int which;   /* in calls; -1: another one, or none */
    long number; /* -1: it is in none: it waits for a page */
    unsigned long arguments[3];
} blocked_call;

/* proc_pid_syscall(5). False: it runs by now, or that is not told. */
static bool read_call(uint32_t tid, blocked_call *c)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
    *c = (blocked_call){.which = -1, .number = -1};
    if (!pki_small_file_once(path, text, sizeof text))
        return false;
    int n = sscanf(text, "%ld %lx %lx %lx", &c->number, &c->arguments[0], &c->arguments[1],
                   &c->arguments[2]);
    for (size_t i = 0; n >= 1 && i < PKI_COUNT_OF(calls); i++)
        if (calls[i].number == c->number)
            c->which = (int)i;
    return n >= 1;
}

/* Of the process itself, where an address may be gone by now. */
static bool read_memory(unsigned long at, void *to, size_t size)
{
    struct iovec from = {(void *)(uintptr_t)at, size}, into = {to, size}; /* NOLINT */
    return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == (ssize_t)size;
}

/* ---- descriptors ---- */

static void peer_of(int fd, char *object)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
        char room[256];
    } a = {.room = ""};
    socklen_t size = sizeof a;
    char text[64] = "";
    object[0] = 0;
    if (getpeername(fd, &a.any, &size) != 0)
        return;
    if (a.any.sa_family == AF_INET && inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof text))
        snprintf(object, PKI_WAIT_TEXT, "%s:%u", text, ntohs(a.v4.sin_port));
    else if (a.any.sa_family == AF_INET6 && inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof text))
        snprintf(object, PKI_WAIT_TEXT, "[%s]:%u", text, ntohs(a.v6.sin6_port));
    else if (a.any.sa_family == AF_UNIX)
        snprintf(object, PKI_WAIT_TEXT, "%.100s", a.local.sun_path);
}

/* What it is, by its name; `file` is the word for what is a file. */
static const char *word_of(int fd, const char *file, char *object)
{
    char path[64], name[PATH_MAX];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, name, sizeof name - 1);
    object[0] = 0;
    if (n <= 0)
        return file;
    name[n] = 0;
    if (strncmp(name, "socket:", 7) == 0) {
        peer_of(fd, object);
        return PKI_WAITS_SOCKET;
    }
    if (strncmp(name, "pipe:", 5) == 0)
        return PKI_WAITS_PIPE;
    size_t cut = (size_t)n > PKI_WAIT_TEXT - 1 ? (size_t)n - (PKI_WAIT_TEXT - 1)
                                               : 0; /* its end tells more */
    snprintf(object, PKI_WAIT_TEXT, "%s", name + cut);
    bool terminal = strncmp(name, "/dev/pts/", 9) == 0 || strncmp(name, "/dev/tty", 8) == 0;
    return terminal ? PKI_WAITS_TERMINAL : file;
}

/* The first of them that there is. poll(2). */
static const char *word_of_poll(const blocked_call *c, char *object)
{
    struct {
        int fd;
        short wanted, got;
    } first;
    object[0] = 0;
    if (c->arguments[1] == 0)
        return PKI_WAITS_SLEEP;
    if (!read_memory(c->arguments[0], &first, sizeof first) || first.fd < 0)
        return PKI_WAITS_UNKNOWN;
    return word_of(first.fd, PKI_WAITS_READ, object);
}

/* ---- locks, and threads that others wait for ---- */

static unsigned innermost(const pki_thread *t, char *region)
{
    pki_open_frames frames = {0};
    region[0] = 0;
    if (!pki_open_frames_of(t, &frames) || !frames.depth)
        return 0;
    const pki_name *name = pki_name_at(frames.open[frames.depth - 1].id);
    snprintf(region, PKI_WAIT_TEXT, "%.150s", name ? name->name : "?");
    return frames.depth;
}

static void name_holder(const pki_session *s, uint32_t tid, pki_wait *out)
{
    pki_thread_stat stat;
    const pki_thread *t = pki_registry_thread_of(s->registry, tid);
    bool known = pki_thread_stat_read("/proc/self/task", tid, &stat);
    out->region[0] = 0;
    if (t)
        innermost(t, out->region);
    snprintf(out->holder, sizeof out->holder, "%.63s",
             t && t->name[0] ? t->name
             : known         ? stat.name
                             : "");
}

/* Is the word that is waited on a mutex's, whose holder it tells? 0: no. glibc, 64 bits
 * (struct_mutex.h): lock, 2 if others wait; count; owner; nusers; kind, of which these are the
 * plain ones. musl: the holder itself, but for a plain mutex, which has EBUSY. */
static uint32_t owner_of(unsigned long at, unsigned long value, uint32_t tid)
{
    uint32_t words[5] = {0}, owner;
    pki_thread_stat stat;
    if (!read_memory(at, words, sizeof words))
        return 0;
#ifdef __GLIBC__
    bool held =
        value == 2 && words[0] == 2 && words[3] && !(words[4] & ~0x303u) && LONG_MAX > INT_MAX;
    owner = words[2];
#else
    owner = words[0] & 0x3fffffffu;
    bool held = value && owner != EBUSY;
#endif
    bool other = held && owner && owner != tid;
    return other && pki_thread_stat_read("/proc/self/task", owner, &stat) ? owner : 0;
}

/* Who works, amid a region of its own, while this one waits for some thread that is not known: the
 * first that runs, else the first that waits for something outside the process. */
static void find_worker(const pki_session *s, uint32_t tid, pki_wait *out)
{
    uint32_t blocks = PKI_MIN(pki_registry_blocks(s->registry), THREADS_MOST), best = 0;
    for (uint32_t i = 0; i < blocks; i++) {
        const pki_thread *t = pki_registry_block(s->registry, i);
        uint32_t other = pki_load(&t->tid);
        pki_thread_stat stat;
        blocked_call c;
        char region[PKI_WAIT_TEXT];
        if (pki_load(&t->life) != PKI_THREAD_LIVE || other == tid || !innermost(t, region) ||
            !pki_thread_stat_read("/proc/self/task", other, &stat))
            continue;
        bool runs = stat.state == 'R';
        bool elsewhere =
            !runs && read_call(other, &c) && (c.which < 0 || calls[c.which].kind != OF_LOCK);
        if (runs || (elsewhere && !best))
            best = other;
        if (runs)
            break;
    }
    if (best)
        name_holder(s, best, out);
}

static const char *word_of_lock(const pki_session *s, const blocked_call *c, uint32_t tid,
                                pki_wait *out)
{
    uint32_t owner = owner_of(c->arguments[0], c->arguments[2], tid);
    if (owner)
        name_holder(s, owner, out);
    else
        find_worker(s, tid, out);
    return owner ? PKI_WAITS_LOCK : PKI_WAITS_THREAD;
}

/* ---- what it waits for ---- */

static const char *word_of_call(const pki_session *s, const blocked_call *c, uint32_t tid,
                                pki_wait *out)
{
    int fd = (int)c->arguments[0];
    if (c->number < 0)
        return PKI_WAITS_MEMORY;
    if (c->which < 0)
        return PKI_WAITS_UNKNOWN;
    switch (calls[c->which].kind) {
    case OF_READ:
        return word_of(fd, PKI_WAITS_READ, out->object);
    case OF_WRITE:
        return word_of(fd, PKI_WAITS_WRITE, out->object);
    case OF_SYNC:
        return word_of(fd, PKI_WAITS_SYNC, out->object);
    case OF_SOCKET:
        return word_of(fd, PKI_WAITS_SOCKET, out->object);
    case OF_POLL:
        return word_of_poll(c, out->object);
    case OF_SLEEP:
        return PKI_WAITS_SLEEP;
    case OF_LOCK:
        return word_of_lock(s, c, tid, out);
    case OF_MEMORY:
        return PKI_WAITS_MEMORY;
    case OF_DEVICE:
        word_of(fd, "", out->object);
        return PKI_WAITS_UNKNOWN;
    default:
        return PKI_WAITS_UNKNOWN;
    }
}

bool pki_wait_see(const pki_session *s, uint32_t tid, pki_wait *out)
{
    blocked_call c;
    *out = (pki_wait){.what = PKI_WAITS_UNKNOWN, .call = ""};
    if (!read_call(tid, &c))
        return false;
    out->what = word_of_call(s, &c, tid, out);
    out->call = c.which < 0 ? "" : calls[c.which].name;
    return true;
}
