/* fake/driver_state.h - what the mock keeps; under its one lock. */
#ifndef TESTS_FAKE_DRIVER_STATE_H
#define TESTS_FAKE_DRIVER_STATE_H

#include <pthread.h>

#include "driver.h"

enum { MAGIC_CONTEXT = 0x63747830, MAGIC_STREAM = 0x73747230, MAGIC_EVENT = 0x65767430 };
enum { QUEUE = 16384, STAMPS = 4096, OBJECTS = 16, NODES = 1024, LAUNCHES = 1024 };
enum { EVENT_STEP = 500 }; /* ns, as cuda.h has it */

typedef struct CUctx_st context;
typedef struct CUstream_st stream;
typedef struct CUevent_st event;
typedef struct CUgraph_st graph;
typedef struct CUgraphNode_st node;
typedef struct CUgraphExec_st exec;
typedef struct CUuserObject_st object;

struct CUctx_st {
    int magic, device;
    bool alive, loaded; /* its kernels' code is there */
    unsigned long long id;
    CUresult poison;
    stream *legacy;
    context *next;
};

struct CUevent_st {
    int magic;
    context *ctx;
    bool captured;        /* last recorded into a capture, not as an external one */
    uint64_t asked, done; /* how often recorded, and the newest of those that was reached */
    uint64_t stamp;
    stream *on; /* where it was recorded last */
};

/* An event, a wait for a word, or (neither) a kernel. */
typedef struct work_item {
    event *event;
    uint64_t asked;
    uint64_t due; /* CLOCK_MONOTONIC; UINT64_MAX: when the script says so */
    uint64_t ns;  /* that it takes */
    const uint32_t *word;
    uint32_t value;
} work_item;

struct CUstream_st {
    int magic;
    context *ctx;
    unsigned long long id;
    bool blocking;
    bool green; /* it is of a green context, which the older form does not tell of */
    bool hasty; /* made by who is tested: its work is never held */
    CUstreamCaptureStatus status;
    graph *capturing;
    CUgraphNode last;
    CUgraphEdgeData edge; /* from it */
    uint64_t ends_at;     /* when all of its kernels will be done (fake/device.c) */
    work_item queue[QUEUE];
    unsigned head, tail;
    unsigned launched; /* kernels in the queue */
    uint64_t free_at;  /* when what ran last was done */
    uint64_t stamps[STAMPS];
    unsigned stamped;
    stream *next;
};

struct CUgraphNode_st {
    event *event; /* NULL: a kernel */
    graph *body;  /* of a conditional node */
};

struct CUgraph_st {
    unsigned long long capture;
    CUstreamCaptureMode mode;
    pthread_t owner;
    bool active, invalid;
    bool is_body; /* of a conditional node */
    node *nodes[NODES];
    size_t count;
    object *objects[OBJECTS];
    unsigned object_count;
    graph *next; /* of those being captured */
};

struct CUgraphExec_st {
    graph *origin;
    node *nodes[NODES]; /* of the origin */
    event *events[NODES];
    size_t count;
    object *objects[OBJECTS];
    unsigned object_count;
};

struct CUuserObject_st {
    CUhostFn destroy;
    void *ptr;
    unsigned references;
};

/* Counts the call and says what the script has for it; with the lock held from here on. */
CUresult fake_enter(fake_call call);
CUresult fake_leave(CUresult code); /* gives it back */

/* Is the capture of anybody spoilt by an unsafe call on this thread? Then it is, now. */
bool fake_unsafe(void);

uint64_t fake_device_ns(void);
stream *fake_stream(CUstream handle); /* default ones resolved; NULL: not one */
void fake_enqueue(stream *s, event *e);
bool fake_legacy_blocked(const context *ctx);

struct fake_failure {
    unsigned after, times;
    CUresult code;
};

extern struct fake {
    pthread_mutex_t lock;
    unsigned counts[FAKE_CALLS];
    struct fake_failure failures[FAKE_CALLS];
    int version, devices;
    CUresult init_code, count_code;
    bool is_initialised, holding, lagging;
    uint64_t lag;
    double rate, base_device;
    uint64_t base_ns;
    unsigned long long ids;
    unsigned event_count, exchanged, invalidated;
    context *contexts;
    stream *streams;
    graph *captures;
    const fake_cuda_time *time; /* NULL: CLOCK_MONOTONIC */
    bool waiting, no_waits;     /* has a stream waited for memory */
    unsigned hung, misused;
} fake;
extern _Thread_local context *fake_current;
/* Told of what is allocated and freed, of the host too. */
extern void (*fake_on_memory)(uint64_t address, size_t bytes, bool frees, bool pinned);
extern void (*fake_on_query)(CUresult answer); /* told of each cuEventQuery, without the lock */
extern void (*fake_on_call)(fake_call call);   /* told before each call, likewise */

/* Zeroed memory that stays: whoever uses a handle for too long is told so, and does not crash.
 * Under the lock. */
void *fake_keep(size_t bytes);

stream *fake_make_stream(context *ctx, bool blocking);
void fake_stamp(stream *s, work_item w, uint64_t when); /* CLOCK_MONOTONIC */
uint64_t fake_monotonic(void);
uint64_t fake_device_at(uint64_t monotonic);
void fake_release(object **objects, unsigned *count);

/* fake/driver.c: what the device has done by now; under the lock. */
void fake_go_on(void);
void fake_push(stream *s, work_item w);
void fake_live_on(const fake_cuda_time *time);
void fake_no_waits(void);
CUresult fake_kernel(CUstream handle, uint64_t launch_ns, uint64_t ns);
CUresult fake_synchronize(CUstream handle);
void fake_run(stream *s, uint64_t ns);

uint64_t fake_walk_ns(void); /* of a kernel that reads: twice as long behind a flush of the cache */
bool fake_await_room(stream *s);

/* For what the device does; they take the lock themselves. False: for ever. */
bool fake_wait_for(stream *s);
bool fake_settle(void);

/* What the device finds at that address of host memory; NULL: nothing. */
const uint32_t *fake_host_word(CUdeviceptr address);

/* The script's part of fake/driver_graph.c. */
CUresult fake_capture_begin(CUstream handle, CUstreamCaptureMode mode);
CUresult fake_capture_end(CUstream handle, CUgraph *out);
void fake_capture_join(CUstream other, CUstream handle);
void fake_work(CUstream handle);
CUgraph fake_graph_create(void);
CUresult fake_capture_begin_to(CUstream handle, CUgraph g, CUstreamCaptureMode mode);
CUgraph fake_conditional(CUstream handle);
void fake_programmatic(CUstream handle);
CUgraphExec fake_instantiate(CUgraph g);
CUresult fake_instantiate_for_device(CUgraph g, CUgraphExec *out);
CUresult fake_launch(CUgraphExec x, CUstream handle);
void fake_graph_destroy(CUgraph g);
void fake_exec_destroy(CUgraphExec x);
void fake_graph_again(CUgraph g);
void fake_add_node(stream *s, event *e);
CUresult fake_record_node(stream *s, event *e);

#endif
