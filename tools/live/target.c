/* tools/live/target.c - the processes that `pk top`, `pk where` and `pk capture` are asked about */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "live/live.h"

/* Each file that the process has mapped for writing and shares, opened for reading; `take` owns the
 * descriptor and answers whether to go on. False and errno: it could not be looked into. */
typedef bool process_take_file(void *user, int fd, const char *path);

/* ---- one process ---- */

#define FIELD_STATE 3
#define FIELD_BEGAN 22

static bool read_stat_at(const char *path, char *text, size_t size)
{
    return pki_small_file(path, text, size) && pki_proc_stat_field(text, FIELD_STATE);
}

static bool read_stat(int pid, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return pid > 0 && read_stat_at(path, text, size);
}

static char state_in(const char *text)
{
    return *pki_proc_stat_field(text, FIELD_STATE);
}

static uint64_t began_in(const char *text)
{
    const char *began = pki_proc_stat_field(text, FIELD_BEGAN);
    return began ? strtoull(began, NULL, 10) : 0;
}

static bool has_ended(char state)
{
    return state == 'Z' || state == 'X' || state == 'x';
}

/* False: there is no such process, or it has ended and waits to be reaped. */
static bool process_is_there(int pid, process *is)
{
    char text[1024];
    *is = (process){0, 0};
    if (!read_stat(pid, text, sizeof text) || has_ended(state_in(text)))
        return false;
    *is = (process){pid, began_in(text)};
    return true;
}

char process_state(const process *p)
{
    char text[1024];
    if (!read_stat(p->pid, text, sizeof text) || has_ended(state_in(text)) ||
        began_in(text) != p->began)
        return 0;
    return state_in(text);
}

static FILE *open_file_of(int pid, const char *which)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, which);
    return fopen(path, "re");
}

/* The line "NSpid: 4711 12 1" has its number in each namespace; the last is what it calls itself.
 */
static uint32_t last_number(const char *text)
{
    uint32_t last = 0;
    for (char *end;; text = end) {
        unsigned long n = strtoul(text, &end, 10);
        if (end == text)
            return last;
        last = (uint32_t)n;
    }
}

/* Does the process call itself so, in a namespace of its own perhaps? */
static bool process_calls_itself(int pid, uint32_t own_pid)
{
    char line[512];
    bool is = false, found = false;
    FILE *status = open_file_of(pid, "status");
    while (status && !found && fgets(line, sizeof line, status)) {
        found = strncmp(line, "NSpid:", 6) == 0;
        is = found && last_number(line + 6) == own_pid;
    }
    if (status)
        fclose(status);
    return is;
}

/* ---- its threads ---- */

/* In a namespace of its own: by asking all of them. */
int process_thread(const process *p, uint32_t own_pid, uint32_t own_tid)
{
    char path[64];
    int found = 0;
    if ((uint32_t)p->pid == own_pid)
        return (int)own_tid;
    snprintf(path, sizeof path, "/proc/%d/task", p->pid);
    DIR *all = opendir(path);
    for (const struct dirent *e; all && !found && (e = readdir(all));) {
        int tid = isdigit((unsigned char)e->d_name[0]) ? (int)strtol(e->d_name, NULL, 10) : 0;
        if (tid > 0 && process_calls_itself(tid, own_tid))
            found = tid;
    }
    if (all)
        closedir(all);
    return found;
}

char process_thread_state(const process *p, int tid, char *waits_in, size_t size)
{
    char path[64], text[1024];
    waits_in[0] = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", p->pid, tid);
    if (tid <= 0 || !read_stat_at(path, text, sizeof text))
        return 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/wchan", p->pid, tid);
    pki_small_file(path, waits_in, size);
    waits_in[strcspn(waits_in, "\n")] = 0;
    if (strcmp(waits_in, "0") == 0)
        waits_in[0] = 0;
    return state_in(text);
}

/* ---- what it has mapped ---- */

typedef struct mapping {
    unsigned long start, end, inode;
    char path[PATH_MAX];
} mapping;

/* A line of /proc/PID/maps; false for one that is not shared, writable and a file's beginning. */
static bool read_mapping(const char *line, mapping *m)
{
    char flags[8];
    unsigned long offset;
    int at = 0;
    if (sscanf(line, "%lx-%lx %7s %lx %*s %lu %n", &m->start, &m->end, flags, &offset, &m->inode,
               &at) < 5)
        return false;
    snprintf(m->path, sizeof m->path, "%s", at > 0 ? line + at : "");
    m->path[strcspn(m->path, "\n")] = 0;
    return flags[3] == 's' && offset == 0 && m->inode != 0;
}

static bool next_mapping(FILE *maps, mapping *m)
{
    char line[PATH_MAX + 200];
    while (fgets(line, sizeof line, maps))
        if (read_mapping(line, m))
            return true;
    return false;
}

/* Has it mapped the file of this inode for writing, together with its other writers? `name`: the
 * last part of its path. */
/* The device is not compared: overlays and snapshots show another one here than stat does. */
static bool process_maps(int pid, uint64_t inode, const char *name)
{
    mapping m;
    bool is = false;
    FILE *maps = open_file_of(pid, "maps");
    while (maps && !is && next_mapping(maps, &m))
        is = m.inode == inode && strncmp(pki_base_name(m.path), name, strlen(name)) == 0;
    if (maps)
        fclose(maps);
    return is;
}

/* Who has it mapped and calls itself so; all zero: nobody that can be seen. */
static process process_find(uint32_t own_pid, uint64_t inode, const char *name)
{
    process found = {0, 0};
    if (own_pid <= INT_MAX && process_maps((int)own_pid, inode, name)) {
        process_is_there((int)own_pid, &found);
        return found;
    }
    DIR *all = opendir("/proc");
    for (const struct dirent *e; all && !found.pid && (e = readdir(all));) {
        int pid = isdigit((unsigned char)e->d_name[0]) ? (int)strtol(e->d_name, NULL, 10) : 0;
        if (pid > 0 && process_calls_itself(pid, own_pid) && process_maps(pid, inode, name))
            process_is_there(pid, &found);
    }
    if (all)
        closedir(all);
    return found;
}

/* ---- opening what it has mapped ---- */

/* Opened if it is the file of that inode, and a regular one: nothing happens to others. */
static int open_if(const char *path, unsigned long inode)
{
    struct stat file;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || file.st_ino != inode)
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int open_among_descriptors(int pid, unsigned long inode)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *all = opendir(path);
    int fd = -1;
    for (const struct dirent *e; all && fd < 0 && (e = readdir(all));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, e->d_name);
        if (e->d_name[0] != '.')
            fd = open_if(path, inode);
    }
    if (all)
        closedir(all);
    return fd;
}

/* By its descriptor; by its path, as the process sees it, should the descriptor be closed; of a
 * memory file without one by the mapping itself, which takes a privilege. */
static int open_mapping(int pid, const mapping *m)
{
    char path[PATH_MAX + 64];
    int fd = open_among_descriptors(pid, m->inode);
    if (fd < 0 && m->path[0] == '/') {
        snprintf(path, sizeof path, "/proc/%d/root%s", pid, m->path);
        fd = open_if(path, m->inode);
    }
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%d/map_files/%lx-%lx", pid, m->start, m->end);
        fd = open_if(path, m->inode);
    }
    return fd;
}

#define INODES_MOST 64

/* A mapping that grows in pieces has several lines. */
static bool is_new(unsigned long *seen, size_t *count, unsigned long inode)
{
    for (size_t i = 0; i < *count; i++)
        if (seen[i] == inode)
            return false;
    if (*count == INODES_MOST)
        return false;
    seen[(*count)++] = inode;
    return true;
}

static bool process_open_shared(int pid, process_take_file *take, void *user)
{
    unsigned long seen[INODES_MOST];
    size_t count = 0;
    mapping m;
    FILE *maps = open_file_of(pid, "maps");
    if (!maps)
        return false;
    bool go_on = true;
    while (go_on && next_mapping(maps, &m)) {
        int fd = is_new(seen, &count, m.inode) ? open_mapping(pid, &m) : -1;
        if (fd >= 0)
            go_on = take(user, fd, m.path);
    }
    fclose(maps);
    return true;
}

/* ---- reading ---- */

bool target_read(const target *t, uint64_t offset, void *to, size_t bytes)
{
    if (offset > t->bytes || bytes > t->bytes - offset)
        return false;
    return arena_file_read(t->fd, offset, to, bytes);
}

/* Is the file still locked by the one that writes it? A memory file has no lock, and needs none. */
static bool is_written(const target *t)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(t->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static target_state state_of(const target *t)
{
    bool there = t->in_memory ? t->process_state != 0 : is_written(t);
    if (!t->header->running)
        return TARGET_ENDED;
    if (!there)
        return TARGET_GONE;
    return t->process_state == 'T' || t->process_state == 't' ? TARGET_STOPPED : TARGET_RUNNING;
}

bool target_refresh(target *t)
{
    struct stat file;
    complaint why = {""};
    if (fstat(t->fd, &file) != 0 || file.st_size < 0)
        return false;
    t->bytes = (uint64_t)file.st_size;
    bool sound = arena_file_header(t->fd, t->bytes, t->header, &why);
    t->process_state = process_state(&t->process);
    t->state = state_of(t);
    return sound;
}

int target_reopen(const target *t, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", t->fd);
    return open(path, flags | O_CLOEXEC);
}

uint64_t target_now_ns(const target *t)
{
    const pki_clock_map *clock = &t->header->clock;
    uint64_t now = pki_monotonic_ns();
    bool alive = t->state == TARGET_RUNNING || t->state == TARGET_STOPPED;
    if (alive && now > clock->origin_ns)
        return pki_clock_session_ns(clock, now);
    uint64_t checked = clock->last.ns > clock->origin_ns ? clock->last.ns - clock->origin_ns : 0;
    uint64_t taken = pki_clock_ns(clock, t->header->commit[t->header->generation & 1].ticks);
    return PKI_MAX(checked, taken);
}

/* ---- words ---- */

const char *target_state_text(target_state state)
{
    static const char *const texts[] = {"running", "stopped", "gone", "ended"};
    return (size_t)state < PKI_COUNT_OF(texts) ? texts[state] : "?";
}

void target_describe(const target *t, char text[TARGET_TEXT])
{
    const pki_arena_header *h = t->header;
    char rank[32] = "";
    if (h->world_size > 0)
        snprintf(rank, sizeof rank, "rank %d, ", h->rank);
    snprintf(text, TARGET_TEXT, "%spid %u on %.*s (%.*s)", rank,
             t->process.pid ? (unsigned)t->process.pid : h->pid,
             (int)strnlen(h->host, sizeof h->host), h->host,
             (int)strnlen(h->program, sizeof h->program), h->program);
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
}

/* ---- from what was named on the command line to arenas ---- */

typedef struct gathering {
    targets *to;
    size_t room, skipped_room;
    complaint *why;
} gathering;

/* ---- one arena ---- */

static void close_one(target *t)
{
    if (t->fd >= 0)
        close(t->fd);
    free(t->path);
    free(t->header);
    *t = (target){.fd = -1};
}

static bool is_memory_file(const char *path)
{
    return strncmp(path, "/memfd:", 7) == 0;
}

/* fd is the target's from here on. `of`: the process whose it is known to be, or none. */
static bool open_one(target *t, int fd, const char *path, process of, complaint *why)
{
    struct stat file;
    *t = (target){.fd = fd, .process = of, .in_memory = is_memory_file(path)};
    t->path = strdup(path);
    t->header = calloc(1, sizeof *t->header);
    if (!t->path || !t->header)
        return complaint_set(why, "no memory");
    if (fstat(fd, &file) != 0)
        return complaint_set(why, "%s: %s", path, strerror(errno));
    t->inode = file.st_ino;
    t->bytes = (uint64_t)file.st_size;
    complaint wrong = {""};
    if (!arena_file_header(fd, t->bytes, t->header, &wrong))
        return complaint_set(why, "%s: %s", path, wrong.text);
    if (!target_refresh(t))
        return complaint_set(why, "%s: it changes while it is read", path);
    return true;
}

/* Only a file in use has a process; finding it may take a look at all of them. */
static void find_process(target *t)
{
    if (t->process.pid || t->state != TARGET_RUNNING)
        return;
    t->process = process_find(t->header->pid, t->inode, pki_base_name(t->path));
    target_refresh(t);
}

static bool is_known(const targets *all, const target *t)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->all[i].inode == t->inode &&
            all->all[i].header->start_unix == t->header->start_unix)
            return true;
    return false;
}

/* Closes it if there is one like it. */
static bool add(gathering *g, target *t)
{
    if (is_known(g->to, t)) {
        close_one(t);
        return true;
    }
    if (!pki_array_fit(&g->to->all, &g->room, g->to->count + 1, sizeof *g->to->all)) {
        close_one(t);
        return complaint_set(g->why, "no memory");
    }
    g->to->all[g->to->count++] = *t;
    return true;
}

/* ---- a process ---- */

typedef struct candidate {
    process of;
    target best; /* fd -1: none yet */
    complaint why;
} candidate;

/* The running session's arena; else that of the last one, which is kept for its statistics. */
static bool is_better(const target *t, const target *than)
{
    if (than->fd < 0 || t->header->running != than->header->running)
        return than->fd < 0 || t->header->running;
    return t->header->start_unix > than->header->start_unix;
}

static bool consider(void *user, int fd, const char *path)
{
    candidate *c = user;
    target t;
    if (!arena_file_recognise(fd)) {
        close(fd);
        return true;
    }
    if (open_one(&t, fd, path, c->of, &c->why) && is_better(&t, &c->best)) {
        close_one(&c->best);
        c->best = t;
    } else {
        close_one(&t);
    }
    return true;
}

static bool add_process(gathering *g, const char *name)
{
    candidate c = {.best = {.fd = -1}};
    int pid = strlen(name) < 10 ? (int)strtol(name, NULL, 10) : 0;
    if (!process_is_there(pid, &c.of))
        return complaint_set(g->why, "there is no process %s", name);
    if (!process_open_shared(pid, consider, &c))
        return complaint_set(g->why, "process %s: %s", name, strerror(errno));
    if (c.best.fd >= 0)
        return add(g, &c.best);
    if (c.why.text[0])
        return complaint_set(g->why, "process %s: %s", name, c.why.text);
    return complaint_set(g->why,
                         "process %s has no arena that can be read from here: it has not called "
                         "pk_start, or belongs to another user",
                         name);
}

/* ---- files and folders ---- */

static bool add_file(gathering *g, const char *path, complaint *why)
{
    target t;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return complaint_set(why, "%s: %s", path, strerror(errno));
    if (!open_one(&t, fd, path, (process){0, 0}, why)) {
        close_one(&t);
        return false;
    }
    find_process(&t);
    return add(g, &t);
}

static bool skip(gathering *g, const complaint *wrong)
{
    targets *t = g->to;
    if (!pki_array_fit(&t->skipped, &g->skipped_room, t->skipped_count + 1, sizeof *t->skipped))
        return complaint_set(g->why, "no memory");
    t->skipped[t->skipped_count++] = *wrong;
    return true;
}

/* What an earlier, killed run has left is kept under such a name, and is no part of this one. */
static bool is_candidate(const char *name)
{
    return pki_ends_with(name, ".arena") && !pki_ends_with(name, ".prev.arena");
}

static bool add_folder(gathering *g, const char *path)
{
    char whole[PATH_MAX];
    size_t before = g->to->count + g->to->skipped_count;
    DIR *folder = opendir(path);
    if (!folder)
        return complaint_set(g->why, "%s: %s", path, strerror(errno));
    bool sound = true;
    for (const struct dirent *e; sound && (e = readdir(folder));) {
        complaint wrong = {""};
        int n = snprintf(whole, sizeof whole, "%s/%s", path, e->d_name);
        if (!is_candidate(e->d_name) || n < 0 || (size_t)n >= sizeof whole)
            continue;
        if (!add_file(g, whole, &wrong))
            sound = skip(g, &wrong);
    }
    closedir(folder);
    if (sound && g->to->count + g->to->skipped_count == before)
        return complaint_set(g->why, "%s: no arena is in this folder", path);
    return sound;
}

static bool is_number(const char *name)
{
    return *name && strspn(name, "0123456789") == strlen(name);
}

static bool add_target(gathering *g, const char *name)
{
    struct stat file;
    if (stat(name, &file) == 0)
        return S_ISDIR(file.st_mode) ? add_folder(g, name) : add_file(g, name, g->why);
    if (is_number(name))
        return add_process(g, name);
    return complaint_set(g->why, "%s: %s (TARGET is a pid, an arena, or a folder of arenas)", name,
                         strerror(errno));
}

static int compare(const void *a, const void *b)
{
    const pki_arena_header *x = ((const target *)a)->header, *y = ((const target *)b)->header;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

bool targets_open(targets *t, char **names, size_t count, complaint *why)
{
    gathering g = {.to = t, .why = why};
    *t = (targets){NULL, 0, NULL, 0};
    for (size_t i = 0; i < count; i++)
        if (!add_target(&g, names[i]))
            return false;
    if (t->count == 0)
        return complaint_set(why, "%s",
                             t->skipped_count ? t->skipped[0].text : "no TARGET is given");
    qsort(t->all, t->count, sizeof *t->all, compare);
    return true;
}

void targets_close(targets *t)
{
    for (size_t i = 0; i < t->count; i++)
        close_one(&t->all[i]);
    free(t->all);
    free(t->skipped);
    *t = (targets){NULL, 0, NULL, 0};
}
