/* tools/live/target_open.c - from what was named on the command line to arenas. */
#include "live/target.h"

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

#include "base/array.h"
#include "base/text.h"
#include "live/arena_file.h"

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
