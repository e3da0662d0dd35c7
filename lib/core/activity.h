/* lib/core/activity.h - what a backend hands over: something that a device did, or that a library
 * said about itself, with a beginning and an end.
 *
 * A pki_record is what a thread writes thousands of times a millisecond; a pki_activity is what a
 * backend makes on the collector's thread of what a driver tells it. Times are nanoseconds since
 * the session started, on the session's clock. Strings belong to the caller and are copied.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum pki_activity_kind {
    PKI_ACTIVITY_SPAN, /* a region on a stream, from one event to another: not kernel time */
    PKI_ACTIVITY_KERNEL,
    PKI_ACTIVITY_GRAPH, /* a graph's launch as a whole, on the device */
    PKI_ACTIVITY_MEMCPY,
    PKI_ACTIVITY_MEMSET,
    PKI_ACTIVITY_RUNTIME,   /* a call of the CUDA runtime, on a thread of the program */
    PKI_ACTIVITY_DRIVER,    /* a call of the CUDA driver, the same */
    PKI_ACTIVITY_SYNC,      /* a thread, a stream or an event that waited */
    PKI_ACTIVITY_OVERHEAD,  /* what measuring itself took, as the library that measures tells */
    PKI_ACTIVITY_OPERATION, /* a communicator's operation; with a device: on that stream of it */
    PKI_ACTIVITY_RANGE,     /* a range of some other library */
    PKI_ACTIVITY_EVENT,     /* an event that a call recorded on a stream; no time */
    PKI_ACTIVITY_STATE,     /* a thread had no processor; in captures only */
    PKI_ACTIVITY_KINDS
} pki_activity_kind;

typedef enum pki_copy { /* PKI_ACTIVITY_MEMCPY: from where to where */
                        PKI_COPY_UNKNOWN,
                        PKI_COPY_HTOD,
                        PKI_COPY_DTOH,
                        PKI_COPY_DTOD,
                        PKI_COPY_HTOH,
                        PKI_COPY_PTOP, /* from one device to another */
                        PKI_COPY_KINDS
} pki_copy;

/* One more argument in the trace. text NULL: the number. */
typedef struct pki_activity_arg {
    const char *key; /* plain ASCII without quotes: it is written as it stands */
    const char *text;
    int64_t number;
} pki_activity_arg;

/* A line of the viewer. pid and tid: 0 < x < 2^32, pid unique over ranks and devices of a job. */
typedef struct pki_track {
    uint32_t pid, tid;
    const char *process, *thread; /* names; process NULL: the program's own, already named */
    uint32_t sort;                /* among the process's tracks */
} pki_track;

#define PKI_NO_DEVICE UINT32_MAX

typedef struct pki_activity {
    pki_activity_kind kind;
    uint32_t track; /* of pki_track_add; 0: counted in statistics, not in the trace */
    const char *name;
    size_t name_length;
    uint64_t start, end;
    uint32_t level;  /* 0: touches no other of its track; else 1 and as many as can be around it */
    uint32_t region; /* name id of the region that asked for it; 0: none was open */
    uint32_t device; /* ordinal, or PKI_NO_DEVICE */
    uint32_t context, stream;
    uint32_t stream_hidden; /* 1: no "stream" argument, "on_stream" (trace-format.md says where) */
    uint32_t flow;          /* 1: the other end of its correlation is in the trace too */
    uint64_t correlation;   /* ties a launch to what it launched; 0: none */
    uint64_t external;      /* "External id"; 0: none */
    uint64_t bytes;
    uint64_t queued; /* ns since start when it was handed to the driver; 0: unknown */
    pki_copy copy;
    uint32_t grid[3], block[3], registers, shared_bytes; /* PKI_ACTIVITY_KERNEL */
    uint64_t graph, graph_node;                          /* 0: not of a graph */
    const struct pki_operation
        *operation;               /* on a communicator (comm/model/communicator.h); NULL: none */
    const pki_activity_arg *args; /* more of them */
    size_t arg_count;
} pki_activity;
