/* lib/comm/plugin/abi.h - what NCCL's profiler interface looks like in memory, version by version.
 *
 * NCCL looks up a constant table of functions by name in a library, ncclProfiler_v6 first, then
 * older ones, and fills in an event's description as that version of the table wants it. The
 * layouts are those that NCCL's documentation gives (github.com/NVIDIA/nccl, plugins/profiler),
 * declared in our own words so that no header of NCCL's is needed; sizes and offsets are checked
 * below.
 *
 *     version   first NCCL   what changed
 *     2         2.24.3       the communicator's name and hash in each collective
 *     3         2.26.2       less in collectives; kernel channels, network events
 *     4         2.27.3       init names the communicator; a step's bytes; the GPU's timer
 *     5         2.28.3       calls of the API and kernel launches; a type of 64 bits
 *     6         2.29.2       collectives by copy engines
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of events, one bit each. */
enum {
    PKI_NCCL_GROUP = 1 << 0,
    PKI_NCCL_COLL = 1 << 1,
    PKI_NCCL_P2P = 1 << 2,
    PKI_NCCL_PROXY_OP = 1 << 3,
    PKI_NCCL_PROXY_STEP = 1 << 4,
    PKI_NCCL_PROXY_CTRL = 1 << 5,
    PKI_NCCL_KERNEL_CH = 1 << 6,
    PKI_NCCL_NET = 1 << 7,
    PKI_NCCL_GROUP_API = 1 << 8,
    PKI_NCCL_COLL_API = 1 << 9,
    PKI_NCCL_P2P_API = 1 << 10,
    PKI_NCCL_LAUNCH = 1 << 11,
    PKI_NCCL_CE_COLL = 1 << 12,
    PKI_NCCL_CE_SYNC = 1 << 13,
    PKI_NCCL_CE_BATCH = 1 << 14
};

/* States that recordEventState reports. */
enum {
    PKI_NCCL_SEND_GPU_WAIT = 8,
    PKI_NCCL_SEND_WAIT = 9,
    PKI_NCCL_RECV_WAIT = 10,
    PKI_NCCL_RECV_FLUSH_WAIT = 11,
    PKI_NCCL_RECV_GPU_WAIT = 12,
    PKI_NCCL_CTRL_IDLE = 13,
    PKI_NCCL_CTRL_APPEND_END = 18,
    PKI_NCCL_SEND_PEER_WAIT = 20,
    PKI_NCCL_KERNEL_STOP = 22
};

/* ncclResult_t, as far as it is answered. */
enum { PKI_NCCL_SUCCESS = 0, PKI_NCCL_SYSTEM_ERROR = 2 };

/* ---- parts that versions share ---- */

typedef struct pki_nccl_proxy_op {
    int32_t pid; /* of the process that asked for it: perhaps not this one */
    uint8_t channel;
    int32_t peer, steps, chunk, sends;
} pki_nccl_proxy_op;

typedef struct pki_nccl_kernel_ch {
    uint8_t channel;
    uint64_t timer; /* of the GPU, ns; not in version 3 */
} pki_nccl_kernel_ch;

typedef struct pki_nccl_net {
    int64_t id;
    void *data;
} pki_nccl_net;

/* ---- descriptions ---- */

typedef struct pki_nccl_coll_v2 {
    const char *name;
    uint64_t hash, sequence;
    const char *func;
    const void *sent;
    void *received;
    size_t count;
    int32_t root;
    const char *type;
    size_t traffic;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
} pki_nccl_coll_v2;

typedef struct pki_nccl_coll_v4 {
    uint64_t sequence;
    const char *func;
    const void *sent;
    void *received;
    size_t count;
    int32_t root;
    const char *type;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
} pki_nccl_coll_v4;

typedef struct pki_nccl_coll_v3 {
    const char *name;
    uint64_t hash;
    pki_nccl_coll_v4 v4;
} pki_nccl_coll_v3;

typedef struct pki_nccl_coll_v5 {
    pki_nccl_coll_v4 v4;
    void *group;
} pki_nccl_coll_v5;

typedef struct pki_nccl_p2p_v4 {
    const char *func;
    void *buffer;
    const char *type;
    size_t count;
    int32_t peer;
    uint8_t channels;
} pki_nccl_p2p_v4;

typedef struct pki_nccl_p2p_v2 {
    const char *name;
    uint64_t hash;
    pki_nccl_p2p_v4 v4; /* but for its channels */
} pki_nccl_p2p_v2;

typedef struct pki_nccl_p2p_v5 {
    pki_nccl_p2p_v4 v4;
    void *group;
} pki_nccl_p2p_v5;

typedef struct pki_nccl_coll_api {
    const char *func;
    size_t count;
    const char *type;
    int32_t root;
    void *stream;
    bool captured;
} pki_nccl_coll_api;

typedef struct pki_nccl_p2p_api {
    const char *func;
    size_t count;
    const char *type;
    void *stream;
    bool captured;
} pki_nccl_p2p_api;

typedef struct pki_nccl_ce_coll {
    uint64_t sequence;
    const char *func;
    const void *sent;
    void *received;
    size_t count;
    int32_t root;
    const char *type, *synchronisation;
    bool inside_batch;
    uint32_t batch, batches, ce_sequence;
    void *stream;
} pki_nccl_ce_coll;

#define PKI_NCCL_DESCRIPTION(VERSION, TYPE, ...)                                                   \
    typedef struct pki_nccl_description_v##VERSION {                                               \
        TYPE type;                                                                                 \
        void *parent;                                                                              \
        int32_t rank;                                                                              \
        union {                                                                                    \
            pki_nccl_proxy_op proxy_op;                                                            \
            int32_t proxy_step;                                                                    \
            __VA_ARGS__                                                                            \
        } u;                                                                                       \
    } pki_nccl_description_v##VERSION

PKI_NCCL_DESCRIPTION(2, uint8_t, pki_nccl_coll_v2 coll; pki_nccl_p2p_v2 p2p;);

PKI_NCCL_DESCRIPTION(3, uint8_t, pki_nccl_coll_v3 coll; pki_nccl_p2p_v2 p2p; uint8_t kernel_ch;
                     pki_nccl_net net;);

PKI_NCCL_DESCRIPTION(4, uint8_t, pki_nccl_coll_v4 coll; pki_nccl_p2p_v4 p2p;
                     pki_nccl_kernel_ch kernel_ch; pki_nccl_net net;);

/* Version 6 is version 5 and one more: it is read as the same. */
PKI_NCCL_DESCRIPTION(5, uint64_t, pki_nccl_coll_v5 coll; pki_nccl_p2p_v5 p2p;
                     pki_nccl_kernel_ch kernel_ch; pki_nccl_net net; pki_nccl_coll_api coll_api;
                     pki_nccl_p2p_api p2p_api; void *launch_stream; bool group_captured;);

PKI_NCCL_DESCRIPTION(6, uint64_t, pki_nccl_coll_v5 coll; pki_nccl_p2p_v5 p2p;
                     pki_nccl_kernel_ch kernel_ch; pki_nccl_net net; pki_nccl_coll_api coll_api;
                     pki_nccl_p2p_api p2p_api; void *launch_stream; bool group_captured;
                     pki_nccl_ce_coll ce;);

/* What comes with a state. */
typedef union pki_nccl_state_v2 {
    struct {
        size_t bytes;
        int32_t steps;
    } proxy_op;
    int32_t appended;
} pki_nccl_state_v2;

typedef union pki_nccl_state_v4 {
    size_t bytes; /* of a proxy's step */
    int32_t appended;
    void *net;
    uint64_t timer; /* of a kernel's channel */
} pki_nccl_state_v4;

/* ---- tables ---- */

typedef int pki_nccl_stop(void *event);
typedef int pki_nccl_finalize(void *context);
typedef int pki_nccl_state(void *event, int state, void *args);

/* The same place for all; init and start differ. */
#define PKI_NCCL_TABLE(VERSION, INIT)                                                              \
    typedef struct pki_nccl_table_v##VERSION {                                                     \
        const char *name;                                                                          \
        int(*init) INIT;                                                                           \
        int (*start)(void *context, void **event, pki_nccl_description_v##VERSION *description);   \
        pki_nccl_stop *stop;                                                                       \
        pki_nccl_state *state;                                                                     \
        pki_nccl_finalize *finalize;                                                               \
    } pki_nccl_table_v##VERSION

typedef void pki_nccl_logger(void);

PKI_NCCL_TABLE(2, (void **context, int *mask));
PKI_NCCL_TABLE(3, (void **context, int *mask));
PKI_NCCL_TABLE(4, (void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                   int rank, pki_nccl_logger *log));
PKI_NCCL_TABLE(5, (void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                   int rank, pki_nccl_logger *log));
PKI_NCCL_TABLE(6, (void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                   int rank, pki_nccl_logger *log));

#define PKI_NCCL_VERSIONS(X) X(2) X(3) X(4) X(5) X(6)

/* ---- as it lies in memory ---- */

#define PKI_NCCL_AT(VERSION, field, offset)                                                        \
    _Static_assert(offsetof(pki_nccl_description_v##VERSION, field) == (offset),                   \
                   "version " #VERSION ": " #field)
#define PKI_NCCL_SIZE(VERSION, bytes)                                                              \
    _Static_assert(sizeof(pki_nccl_description_v##VERSION) == (bytes), "version " #VERSION);       \
    _Static_assert(sizeof(pki_nccl_table_v##VERSION) == 48, "table of version " #VERSION)
#define PKI_NCCL_HEAD_AT(VERSION)                                                                  \
    PKI_NCCL_AT(VERSION, parent, 8);                                                               \
    PKI_NCCL_AT(VERSION, rank, 16);                                                                \
    PKI_NCCL_AT(VERSION, u, 24);                                                                   \
    PKI_NCCL_AT(VERSION, u.proxy_op.pid, 24);                                                      \
    PKI_NCCL_AT(VERSION, u.proxy_op.channel, 28);                                                  \
    PKI_NCCL_AT(VERSION, u.proxy_op.peer, 32);                                                     \
    PKI_NCCL_AT(VERSION, u.proxy_op.steps, 36);                                                    \
    PKI_NCCL_AT(VERSION, u.proxy_op.chunk, 40);                                                    \
    PKI_NCCL_AT(VERSION, u.proxy_op.sends, 44);

#if UINTPTR_MAX == UINT64_MAX
PKI_NCCL_VERSIONS(PKI_NCCL_HEAD_AT)

PKI_NCCL_SIZE(2, 128);
PKI_NCCL_AT(2, u.coll.hash, 32);
PKI_NCCL_AT(2, u.coll.sequence, 40);
PKI_NCCL_AT(2, u.coll.func, 48);
PKI_NCCL_AT(2, u.coll.count, 72);
PKI_NCCL_AT(2, u.coll.root, 80);
PKI_NCCL_AT(2, u.coll.type, 88);
PKI_NCCL_AT(2, u.coll.traffic, 96);
PKI_NCCL_AT(2, u.coll.channels, 104);
PKI_NCCL_AT(2, u.coll.algorithm, 112);
PKI_NCCL_AT(2, u.coll.protocol, 120);
PKI_NCCL_AT(2, u.p2p.v4.func, 40);
PKI_NCCL_AT(2, u.p2p.v4.type, 56);
PKI_NCCL_AT(2, u.p2p.v4.count, 64);
PKI_NCCL_AT(2, u.p2p.v4.peer, 72);

PKI_NCCL_SIZE(3, 120);
PKI_NCCL_AT(3, u.coll.v4.type, 88);
PKI_NCCL_AT(3, u.coll.v4.channels, 96);
PKI_NCCL_AT(3, u.coll.v4.warps, 97);
PKI_NCCL_AT(3, u.coll.v4.algorithm, 104);
PKI_NCCL_AT(3, u.coll.v4.protocol, 112);
PKI_NCCL_AT(3, u.p2p.v4.peer, 72);
PKI_NCCL_AT(3, u.kernel_ch, 24);
PKI_NCCL_AT(3, u.net.data, 32);

PKI_NCCL_SIZE(4, 104);
PKI_NCCL_AT(4, u.coll.sequence, 24);
PKI_NCCL_AT(4, u.coll.func, 32);
PKI_NCCL_AT(4, u.coll.count, 56);
PKI_NCCL_AT(4, u.coll.root, 64);
PKI_NCCL_AT(4, u.coll.type, 72);
PKI_NCCL_AT(4, u.coll.channels, 80);
PKI_NCCL_AT(4, u.coll.warps, 81);
PKI_NCCL_AT(4, u.coll.algorithm, 88);
PKI_NCCL_AT(4, u.coll.protocol, 96);
PKI_NCCL_AT(4, u.p2p.func, 24);
PKI_NCCL_AT(4, u.p2p.type, 40);
PKI_NCCL_AT(4, u.p2p.count, 48);
PKI_NCCL_AT(4, u.p2p.peer, 56);
PKI_NCCL_AT(4, u.p2p.channels, 60);
PKI_NCCL_AT(4, u.kernel_ch.timer, 32);

#define PKI_NCCL_NEW_AT(VERSION)                                                                   \
    PKI_NCCL_SIZE(VERSION, 112);                                                                   \
    PKI_NCCL_AT(VERSION, u.coll.v4.count, 56);                                                     \
    PKI_NCCL_AT(VERSION, u.coll.v4.type, 72);                                                      \
    PKI_NCCL_AT(VERSION, u.coll.v4.protocol, 96);                                                  \
    PKI_NCCL_AT(VERSION, u.coll.group, 104);                                                       \
    PKI_NCCL_AT(VERSION, u.p2p.v4.peer, 56);                                                       \
    PKI_NCCL_AT(VERSION, u.p2p.v4.channels, 60);                                                   \
    PKI_NCCL_AT(VERSION, u.p2p.group, 64);                                                         \
    PKI_NCCL_AT(VERSION, u.kernel_ch.timer, 32);                                                   \
    PKI_NCCL_AT(VERSION, u.net.data, 32);                                                          \
    PKI_NCCL_AT(VERSION, u.coll_api.count, 32);                                                    \
    PKI_NCCL_AT(VERSION, u.coll_api.type, 40);                                                     \
    PKI_NCCL_AT(VERSION, u.coll_api.root, 48);                                                     \
    PKI_NCCL_AT(VERSION, u.coll_api.stream, 56);                                                   \
    PKI_NCCL_AT(VERSION, u.coll_api.captured, 64);                                                 \
    PKI_NCCL_AT(VERSION, u.p2p_api.stream, 48);                                                    \
    PKI_NCCL_AT(VERSION, u.p2p_api.captured, 56)
PKI_NCCL_NEW_AT(5);
PKI_NCCL_NEW_AT(6);
PKI_NCCL_AT(6, u.ce.synchronisation, 80);
PKI_NCCL_AT(6, u.ce.inside_batch, 88);
PKI_NCCL_AT(6, u.ce.batch, 92);
PKI_NCCL_AT(6, u.ce.ce_sequence, 100);
PKI_NCCL_AT(6, u.ce.stream, 104);

_Static_assert(sizeof(pki_nccl_state_v2) == 16 && sizeof(pki_nccl_state_v4) == 8, "states");
#endif
