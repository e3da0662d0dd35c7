/* tests/fake/fake_cupti.h - a mock of libcupti, and of as much of libcuda as it takes to be live.
 *
 * It is opened by the path in PK_CUPTI_LIBRARY and PK_CUDA_LIBRARY, and by the test, which gets the
 * table below from its fake_cupti(). It writes records as CUPTI does, into a buffer for each
 * thread, which stays with it while something in it still runs, and calls back as CUPTI does; what
 * it was asked for, in which order, stands in `log`.
 *
 * play: what a program does on its thread, told to whoever subscribed. Kernels and copies stay on
 * the device until `finish`.
 */
#ifndef TESTS_FAKE_CUPTI_H
#define TESTS_FAKE_CUPTI_H

#include <stdbool.h>

#include <cupti.h>

#define FAKE_KINDS 64
#define FAKE_LOG_BYTES 16384

/* What a call does to memory. The double keeps what is allocated, and pools: those grow by whole
 * FAKE_POOL_PIECEs and keep what they have until they are trimmed. */
#define FAKE_POOL_PIECE 2097152u

typedef enum fake_memory_what {
    FAKE_ALLOCATE,
    FAKE_FREE,
    FAKE_POOL_CREATE,
    FAKE_POOL_TRIM, /* to `bytes` */
    FAKE_POOL_DESTROY
} fake_memory_what;

typedef struct fake_memory {
    fake_memory_what what;
    CUpti_ActivityMemoryKind kind; /* 0: on the device */
    uint64_t address, bytes;
    uint64_t pool;  /* its address; 0: none */
    bool imported;  /* the pool is another process's */
    bool unknown;   /* freed, and allocated before anybody looked */
    bool by_driver; /* the driver's call has a correlation of its own, and the record has that */
    bool dropped;   /* there was no room for the record */
    bool late;      /* the record lies in another buffer, and comes with `finish` */
} fake_memory;

/* One call, and what it puts on the device. */
typedef struct fake_call {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId id, inner; /* inner: the driver's call within one of the runtime; 0: none */
    CUpti_ActivityKind device;  /* what it launches; 0: nothing */
    const char *kernel;
    uint32_t stream, device_id, context;
    uint64_t ns, delay; /* on the device: how long, and how long after the call; 0: 1000 each */
    uint64_t at;        /* when it starts on the device, by the double's clock; 0: by delay */
    uint64_t *started;  /* not NULL: when it does, which is not before it has been launched */
    uint64_t bytes;
    uint32_t result;
    uint64_t graph;
    CUpti_ActivitySynchronizationType wait; /* also a record of a wait, which a question
                                                makes, too: result is its answer; 0: none */
    unsigned kernels;                       /* how many of them; 0: one */
    uint32_t records, waits_for; /* an event's id: a record of the first on the stream; the second
                                    in that of the wait */
    const fake_memory *memory;   /* NULL: none */
} fake_call;

typedef struct fake_cupti_table {
    /* What it says. Set before it is asked. */
    uint32_t version;
    CUptiResult subscribe, register_buffers, register_clock, kinds[FAKE_KINDS];
    const char *holder;
    bool several;               /* subscribers are allowed, to whoever asks for it */
    bool forgets_clock;         /* one's clock is taken and not used */
    int driver, devices;        /* cuInit's result, how many there are */
    size_t dropped;             /* answered once */
    size_t lengths[FAKE_KINDS]; /* of records; the newest ones of the header */
    bool external_last;         /* the record that names the region comes after the kernel's */
    void (*on_flush)(uint32_t flag);
    void (*on_call)(const char *function); /* before each, by who makes it */

    /* What it was asked for. */
    char log[FAKE_LOG_BYTES];
    bool (*noted)(const char *what); /* is it in the log; any thread */
    unsigned flushes, forced, nulls, clocks, pushes, pops, finalized;
    uint64_t enabled; /* kinds, as bits */
    size_t buffers;   /* asked for */
    size_t smallest;  /* of them, bytes */
    unsigned misaligned;
    size_t outstanding; /* buffers that it has and has not given back */
    unsigned misuses;   /* what the documentation forbids: the first is in `misuse` */
    char misuse[80];

    /* What it does. */
    uint32_t (*play)(const fake_call *call); /* its correlation */
    void (*finish)(void);
    void (*finish_some)(size_t oldest);
    void (*write)(const void *record); /* into this thread's buffer, as it is */
    void (*complete)(void);            /* buffers of what is done, as a worker of CUPTI's would */
    uint32_t (*correlate)(void);       /* a new one */
    uint64_t (*clock)(void);
    CUptiResult (*set_clock)(
        CUpti_TimestampCallbackFunc); /* as another tool does; one per process */
    CUptiResult (*register_other)(CUpti_BuffersCallbackRequestFunc,
                                  CUpti_BuffersCallbackCompleteFunc); /* as another tool does */
    CUptiResult (*all_waits)(uint8_t on); /* as if nobody had switched them off */
    CUptiResult (*next)(uint8_t *buffer, size_t valid, CUpti_Activity **record);
    void (*reset)(void);
} fake_cupti_table;

#endif
