/* pk/region.h - where time goes: named regions of the program.
 *
 *     static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
 *
 *     pk_region_begin(&forward);
 *     ...
 *     pk_region_end(&forward);
 *
 *     PK_REGION_SCOPE(forward);                // from here to the end of the block around it; closed on
 *                                              // every way out but longjmp
 *     PK_REGION_SCOPE_NAMED("checkpoint");     // no pk_region needed
 *
 * Regions nest, up to 64 deep per thread; each call is a slice of the trace and a sample of the
 * region's distribution (count, sum, min, max exact; quantiles within 1 %). Regions of the same
 * name and kind share one distribution, wherever they are declared.
 *
 * Threads: every call from any thread; a pk_region may be used by all of them at once. A region
 *          begins and ends on the same thread.
 * Signals: what this header, step.h and counter.h record may be called in a signal handler, whatever
 *          it has interrupted; a region ends in the handler in which it began. Amid a call of perfkit
 *          other than a plain begin or end, what the handler records is dropped and counted, and
 *          pk_region_named and its like know no new names ("(too many names)"). Within a plain begin
 *          or end, some nanoseconds long, it is undone: neither recorded nor counted; where each one
 *          has to count, PK_CLOCK=monotonic makes no call a plain one. With mirrored backends (nvtx,
 *          cupti) a region calls their libraries, which promise nothing to handlers.
 * Failure: pointers are never NULL, but for names. None visible. What cannot be recorded is counted (pk_get_counts). A call that finds its
 *          ring full is missing in the trace but not in the distribution; one below 64 open regions
 *          is missing in both. Beyond 65,533 names all share one. A region left open by longjmp or
 *          an exception is closed by the next end around it, and counted as unbalanced.
 * Cost:    off: a load and a branch. On: two clock reads, 32 bytes into this thread's ring and
 *          about forty other instructions (docs/overhead.md); no lock, no system call, no
 *          allocation after a thread's first region and the process's first use of the name.
 */
#ifndef PK_REGION_H
#define PK_REGION_H

#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a region's own time is spent on; the step report adds up each kind. */
typedef enum pk_kind {
    PK_OTHER = 0,   /* not said */
    PK_COMPUTE = 1, /* the work itself */
    PK_DATA = 2,    /* getting input: reading, decoding, batching, waiting for a loader */
    PK_COMM = 3,    /* collectives, messages */
    PK_IO = 4,      /* checkpoints, logs, other files */
    PK_WAIT = 5     /* waiting for another thread or a device */
} pk_kind;

/* A place in the source. Declare it static or global, initialise it with PK_REGION or PK_REGION_OF,
 * and leave its members alone. The name may have any bytes; the first 255 count, and invalid UTF-8
 * is replaced in the output. The name is copied at the first use. */
typedef struct pk_region {
    const char *name;
    uint32_t kind; /* a pk_kind */
    uint32_t id;   /* 0 until first used; then perfkit's */
    const char *file;
    uint32_t line;
    uint32_t reserved;
} pk_region;

#define PK_REGION(name) PK_REGION_OF(PK_OTHER, name)
#define PK_REGION_OF(kind, name)                                                                   \
    {                                                                                              \
        (name), (uint32_t)(kind), 0, __FILE__, __LINE__, 0                                         \
    }

/* Begin, and end what this thread began. An end also closes what was left open inside it. */
PK_API PK_INLINE void pk_region_begin(pk_region *region);
PK_API PK_INLINE void pk_region_end(pk_region *region);

/* pk_region_end(from) and pk_region_begin(to) with one clock read: phases that follow each other.
 * */
PK_API PK_INLINE void pk_region_next(pk_region *from, pk_region *to);

/* Work done inside the open region, in bytes moved and floating-point operations (either may be 0):
 * throughput in the report, arguments in the trace. Adds up over calls. */
PK_API PK_INLINE void pk_region_add(pk_region *region, uint64_t bytes, uint64_t flops);

/* An instant: a mark at this moment in the trace, under the region's name. No duration, no
 * statistics. */
PK_API PK_INLINE void pk_region_mark(pk_region *region);

/* The region of that name and kind PK_OTHER, for names known only at run time and for FFI.
 * Interned: the same name gives the same pointer for the process's life; the name is copied. Never
 * NULL (NULL or "" is "(unnamed)"; beyond 65,533 names all share "(too many names)"). Cost: a hash
 * look-up without a lock for a known name; better keep the pointer. */
PK_API pk_region *pk_region_named(const char *name);
PK_API pk_region *pk_region_named_of(pk_kind kind, const char *name);

/* "attention[seq=512]": a region of its own, hence a distribution of its own, per value; key and
 * value are arguments in the trace. Interned, as above; region NULL is the unnamed one, key NULL
 * "value". */
PK_API pk_region *pk_region_variant(pk_region *region, const char *key, int64_t value);

/* The rest of the block that it stands in, as a region: a declaration, any number of them in one block.
 * PK_REGION_SCOPE takes an lvalue, PK_REGION_SCOPE_NAMED a string literal (inside functions only).
 * As with every variable that has something to do at its end, no goto and no case label may jump past
 * it into its block. */
#define PK_REGION_SCOPE(region) PK_REGION_SCOPE_AT_(region, PK_JOIN_(pk_scope_, __COUNTER__))
#define PK_REGION_SCOPE_NAMED(name) PK_REGION_SCOPE(PK_REGION_HERE_(name))

/* The block behind it as a region. A trap: it is a loop that runs once, so break and continue inside
 * end the block, not the loop around it, and compile without a word. Where the block has one of them,
 * PK_REGION_SCOPE as its first line does what they say. */
#define PK_SCOPE(region) PK_SCOPE_AT_(region, __COUNTER__)
#define PK_SCOPE_NAMED(name) PK_SCOPE(PK_REGION_HERE_(name))

/* ---- below: how it is done; not for direct use ---- */

#define PK_JOIN_(a, b) PK_JOIN2_(a, b)
#define PK_JOIN2_(a, b) a##b
#define PK_REGION_HERE_(name)                                                                      \
    (*__extension__({                                                                              \
        static pk_region pk_here_ = PK_REGION(name);                                               \
        &pk_here_;                                                                                 \
    }))
#define PK_REGION_SCOPE_AT_(region, scope)                                                         \
    pk_region *scope __attribute__((cleanup(pk_scope_close_), unused)) = pk_scope_open_(&(region))
#define PK_SCOPE_AT_(region, n) PK_SCOPE_AS_(region, PK_JOIN_(pk_scope_, n), PK_JOIN_(pk_once_, n))
#define PK_SCOPE_AS_(region, scope, once)                                                          \
    for (pk_region * scope __attribute__((cleanup(pk_scope_close_))) = pk_scope_open_(&(region)),  \
                           *once = scope;                                                          \
         once; once = 0)

PK_API void pk_region_begin_on_(pk_region *region);
PK_API void pk_region_end_on_(pk_region *region);
PK_API void pk_region_next_on_(pk_region *from, pk_region *to);
PK_API void pk_region_add_on_(pk_region *region, uint64_t bytes, uint64_t flops);
PK_API void pk_region_mark_on_(pk_region *region);

PK_INLINE void pk_region_begin(pk_region *region)
{
    if (PK_ON_)
        pk_region_begin_on_(region);
}

PK_INLINE void pk_region_end(pk_region *region)
{
    if (PK_ON_)
        pk_region_end_on_(region);
}

PK_INLINE void pk_region_next(pk_region *from, pk_region *to)
{
    if (PK_ON_)
        pk_region_next_on_(from, to);
}

PK_INLINE void pk_region_add(pk_region *region, uint64_t bytes, uint64_t flops)
{
    if (PK_ON_)
        pk_region_add_on_(region, bytes, flops);
}

PK_INLINE void pk_region_mark(pk_region *region)
{
    if (PK_ON_)
        pk_region_mark_on_(region);
}

static PK_INLINE pk_region *pk_scope_open_(pk_region *region)
{
    pk_region_begin(region);
    return region;
}

static PK_INLINE void pk_scope_close_(pk_region **region)
{
    pk_region_end(*region);
}

#ifdef __cplusplus
}
#endif
#endif
