#include "job/clocks/clocks.h"

#include "base/memory.h"
#include "comm/model/operation.h"
#include "memory.h"
#include "out/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARTS 256
#define CHUNK 256 /* operations that a part keeps in memory */

typedef struct part {
    pki_joint *waiting;
    size_t used, chunks, room;
    uint64_t *places; /* of its chunks in the file */
} part;

struct pki_joints {
    const char *path; /* of what lies beside it */
    int fd;
    uint64_t end, count;
    part parts[PARTS];
};

pki_joint_kind pki_joint_kind_of(uint32_t op)
{
    switch (op) {
    case PK_COMM_OP_ALL_REDUCE:
    case PK_COMM_OP_ALL_GATHER:
    case PK_COMM_OP_REDUCE_SCATTER:
    case PK_COMM_OP_ALL_TO_ALL:
    case PK_COMM_OP_BARRIER:
        return PKI_JOINT_ALL;
    case PK_COMM_OP_BROADCAST:
    case PK_COMM_OP_SCATTER:
        return PKI_JOINT_FROM;
    case PK_COMM_OP_REDUCE:
    case PK_COMM_OP_GATHER:
        return PKI_JOINT_TO;
    case PK_COMM_OP_SEND:
    case PK_COMM_OP_SEND_RECV:
        return PKI_JOINT_SEND;
    case PK_COMM_OP_RECV:
        return PKI_JOINT_RECEIVE;
    default:
        return PKI_JOINT_LOOSE;
    }
}

pki_joints *pki_joints_create(const char *path)
{
    pki_joints *o = memory_zeroed(1, sizeof *o);
    o->path = path;
    o->fd = -1;
    return o;
}

void pki_joints_destroy(pki_joints *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < PARTS; i++) {
        free(o->parts[i].waiting);
        free(o->parts[i].places);
    }
    if (o->fd >= 0)
        close(o->fd);
    free(o);
}

uint64_t pki_joints_count(const pki_joints *o)
{
    return o->count;
}

static bool fail(complaint *why)
{
    return complaint_set(why, "operations between ranks could not be stored: %s", strerror(errno));
}

static bool open_file(pki_joints *o, complaint *why)
{
    char name[PATH_MAX];
    if (o->fd >= 0)
        return true;
    o->fd = pki_file_fresh(o->path, PKI_FILE_PRIVATE, name, sizeof name);
    if (o->fd < 0)
        return fail(why);
    unlink(name);
    return true;
}

static bool write_all(int fd, const char *data, size_t n, uint64_t at)
{
    if (!pki_mem_may_grow(at + n))
        return false;
    while (n > 0) {
        ssize_t put = pwrite(fd, data, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        data += put;
        n -= (size_t)put;
        at += (uint64_t)put;
    }
    return true;
}

static bool read_all(int fd, char *data, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t got = pread(fd, data, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        data += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return true;
}

/* A part that has a chunk's worth goes to the file. */
static bool put_away(pki_joints *o, part *p, complaint *why)
{
    const size_t bytes = CHUNK * sizeof *p->waiting;
    if (!open_file(o, why))
        return false;
    if (!write_all(o->fd, (const char *)p->waiting, bytes, o->end))
        return fail(why);
    memory_fit(&p->places, &p->room, p->chunks + 1, sizeof *p->places);
    p->places[p->chunks++] = o->end;
    o->end += bytes;
    p->used = 0;
    return true;
}

bool pki_joints_add(pki_joints *o, const pki_joint *op, complaint *why)
{
    part *p = &o->parts[op->key % PARTS];
    if (!p->waiting)
        p->waiting = memory_zeroed(CHUNK, sizeof *p->waiting);
    p->waiting[p->used++] = *op;
    o->count++;
    return p->used < CHUNK || put_away(o, p, why);
}

static int in_order(const void *a, const void *b)
{
    const pki_joint *one = a, *other = b;
    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    if (one->rank != other->rank)
        return one->rank < other->rank ? -1 : 1;
    return one->start < other->start ? -1 : one->start > other->start;
}

static void each_group(pki_joint *all, size_t n, pki_joints_group *group, void *user)
{
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && all[next].key == all[i].key; next++)
            ;
        group(user, all + i, next - i);
    }
}

static bool each_group_of_part(const pki_joints *o, const part *p, pki_joints_group *group,
                               void *user, complaint *why)
{
    size_t n = p->chunks * CHUNK + p->used;
    pki_joint *all = memory_zeroed(n + 1, sizeof *all);
    bool whole = true;
    for (size_t i = 0; whole && i < p->chunks; i++)
        whole = read_all(o->fd, (char *)(all + i * CHUNK), CHUNK * sizeof *all, p->places[i]) ||
                fail(why);
    if (whole && n) {
        if (p->used)
            memcpy(all + p->chunks * CHUNK, p->waiting, p->used * sizeof *all);
        qsort(all, n, sizeof *all, in_order);
        each_group(all, n, group, user);
    }
    free(all);
    return whole;
}

bool pki_joints_each(pki_joints *o, pki_joints_group *group, void *user, complaint *why)
{
    for (size_t i = 0; i < PARTS; i++)
        if (!each_group_of_part(o, &o->parts[i], group, user, why))
            return false;
    return true;
}

bool pki_joints_are_one(const pki_joint *all, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (all[i].rank == all[i - 1].rank || all[i].kind != all[0].kind)
            return false;
    return count <= all[0].ranks;
}

size_t pki_joints_receives(const pki_joint *all, size_t count)
{
    size_t i = 0;
    while (i < count && all[i].kind != PKI_JOINT_RECEIVE)
        i++;
    return i;
}
