/* tools/merge/operations.h - what ranks did together: each operation on a communicator, as one rank
 * saw it, kept until those of the other ranks are there.
 *
 * Files are read one after the other, so operations of the first one wait for those of the last:
 * millions. They lie in a file without a name, in parts by their key; each part is put in order
 * when it is looked at.
 */
#pragma once

#include "complaint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum operation_kind {
    OPERATION_ALL,   /* every rank's end follows every rank's start */
    OPERATION_FROM,  /* one rank gives: every end follows its start */
    OPERATION_TO,    /* one rank gets: its end follows every start */
    OPERATION_LOOSE, /* neither */
    OPERATION_SEND,
    OPERATION_RECEIVE,
} operation_kind;

/* Of a pk_comm_op; of one that is none: loose. */
operation_kind operation_kind_of(uint32_t op);

typedef struct operation {
    uint64_t key; /* of the communicator and the number on it; of a message: of its channel */
    uint64_t start, end; /* ns of its file */
    uint32_t pid, tid;   /* in the merged trace */
    uint32_t source;     /* which file */
    int32_t rank, peer;  /* in the communicator; peer: of a message, or the root; -1: none */
    uint32_t ranks;
    uint8_t kind;
    uint8_t op;      /* a pk_comm_op */
    uint8_t written; /* it is in the merged trace, and arrows can be tied to it */
} operation;

typedef struct operations operations;

/* Its file lies beside `path`. */
operations *operations_create(const char *path);
void operations_destroy(operations *o);
bool operations_add(operations *o, const operation *op, complaint *why);
uint64_t operations_count(const operations *o);

/* Calls `group` with all operations of one key, by kind, rank and start (of their files), in any
 * order of keys; may be asked again. False and why. */
typedef void operations_group(void *user, operation *all, size_t count);
bool operations_each(operations *o, operations_group *group, void *user, complaint *why);

/* Are these one collective, each rank once? If not, communicators have the same name. */
bool operations_are_one(const operation *all, size_t count);

/* The first receive of a channel, behind its sends. */
size_t operations_receives(const operation *all, size_t count);
