#include "live/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/small_file.h"

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

bool process_is_there(int pid, process *is)
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

bool process_calls_itself(int pid, uint32_t own_pid)
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

/* The device is not compared: overlays and snapshots show another one here than stat does. */
bool process_maps(int pid, uint64_t inode, const char *name)
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

process process_find(uint32_t own_pid, uint64_t inode, const char *name)
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

bool process_open_shared(int pid, process_take_file *take, void *user)
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
