/* pk/region.h - where time goes: named regions of the program.
 *
 *     static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
 *
 *     pk_region_begin(&forward);
 *     ...
 *     pk_region_end(&forward);
 *
 *     PK_REGION_SCOPE(forward);                // from here to the end of the block around it,
 *                                              // on every way out of it but longjmp
 *     PK_REGION_SCOPE_NAMED("checkpoint");     // no pk_region needed
 *     PK_FUNCTION();                           // the function around it, under its own name
 *
 * Regions nest, up to 64 deep per thread. Each call is a slice of the trace and a sample of the
 * region's distribution (count, sum, min and max are exact; quantiles are within 1 %). Regions of
 * the same name and kind share one distribution, wherever they are declared.
 *
 * Threads: every call from any thread; all threads may use one pk_region at the same time. A region
 *          begins and ends on the same thread.
 * Signals: a signal handler may make every recording call of this header, step.h and counter.h,
 *          whatever it interrupts. A region that begins in a handler ends in it. What the handler
 *          records is dropped and counted if it interrupts a perfkit call other than a plain begin
 *          or end; pk_region_named and the like then accept no new names ("(too many names)"). If
 *          it interrupts a plain begin or end, which takes some nanoseconds, what it records is
 *          undone: neither recorded nor counted. With PK_CLOCK=monotonic no call is a plain one,
 *          for programs in which every call of a handler has to count. With mirrored backends
 *          (nvtx, cupti) a region calls their libraries, which are not async-signal-safe.
 * Failure: none visible. Pointers must not be NULL, names may be. What cannot be recorded is
 *          counted (pk_get_counts). A call that finds its ring full is missing from the trace but
 *          not from the distribution; one nested deeper than 64 is missing from both. Beyond 65,533
 *          names, all further ones share one. A region left open by longjmp or an exception is
 *          closed by the next end around it, and counted as unbalanced.
 * Cost:    off: a load and a branch. On: two clock reads, 32 bytes into this thread's ring and
 *          about forty other instructions (docs/internals/overhead.md). No lock, and no allocation
 *          after a thread's first region and the process's first use of the name. No system call,
 *          but one to wake the collector, if it sleeps, when a quarter of the thread's ring has
 *          filled: one in 16,384 regions at most. With -DPK_DISABLE: nothing (pk/disable.h).
 */
#ifndef PK_REGION_H
#define PK_REGION_H

#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a region's self time is spent on; the step report adds up each kind. */
typedef enum pk_kind {
    PK_OTHER = 0,   /* unspecified */
    PK_COMPUTE = 1, /* the work itself */
    PK_DATA = 2,    /* getting input: reading, decoding, batching, waiting for a loader */
    PK_COMM = 3,    /* collectives, messages */
    PK_IO = 4,      /* checkpoints, logs, other files */
    PK_WAIT = 5     /* waiting for another thread or a device */
} pk_kind;

/* A place in the source. Declare it static or global, initialise it with PK_REGION or PK_REGION_OF,
 * and leave its members alone. The name may hold any bytes: the first 255 count, and invalid UTF-8
 * is replaced in the output. It is copied at the first use. */
typedef struct pk_region {
    const char *name;
    uint32_t kind; /* a pk_kind */
    uint32_t id;   /* 0 until first used; then perfkit's, as reserved is */
    const char *file;
    uint32_t line;
    uint32_t reserved;
    uint64_t spare[4]; /* 0, but for what PK_FUNCTION sets; for later versions */
} pk_region;

#define PK_REGION(name) PK_REGION_OF(PK_OTHER, name)
#define PK_REGION_OF(kind, name) PK_REGION_AS_(kind, name, 0)

/* Begin a region, and end one that this thread began. An end also closes what was left open inside
 * it. */
PK_API PK_INLINE void pk_region_begin(pk_region *region);
PK_API PK_INLINE void pk_region_end(pk_region *region);

/* pk_region_end(from) and pk_region_begin(to) with one clock read, for phases that follow each
 * other. */
PK_API PK_INLINE void pk_region_next(pk_region *from, pk_region *to);

/* Work done inside the open region: bytes moved and floating-point operations; either may be 0.
 * Several calls add up. The report shows throughput, the trace has the sums as arguments. */
PK_API PK_INLINE void pk_region_add(pk_region *region, uint64_t bytes, uint64_t flops);

/* What is special about the open call: its batch, its file, its shape. An argument of the call in
 * the trace, in captures and in SQL (`notes`), under the key's name; at a key's second time both
 * stand. Keys are names as regions have them: static ones, or pk_region_named. A text is copied, 32
 * bytes of it at most, cut between characters. NULL is "". Eight of a call are kept. Cost: a clock
 * read and a record, 32 bytes in the ring, 64 for a text. Calls of which perfkit keeps nothing but
 * the count (overhead_max) have none. */
PK_API PK_INLINE void pk_region_note(pk_region *region, pk_region *key, int64_t value);
PK_API PK_INLINE void pk_region_note_text(pk_region *region, pk_region *key, const char *string);

/* An instant event of the trace, at this moment and under the region's name. It has no duration and
 * no statistics. */
PK_API PK_INLINE void pk_region_mark(pk_region *region);

/* The region of that name and kind PK_OTHER, for names known only at run time and for other
 * languages. The same name gives the same pointer for the process's life; the name is copied. Never
 * NULL: a name that is NULL or "" becomes "(unnamed)", and beyond 65,533 names all share
 * "(too many names)". Cost: a hash look-up, without a lock if the name is known. Keep the pointer.
 */
PK_API pk_region *pk_region_named(const char *name);
PK_API pk_region *pk_region_named_of(pk_kind kind, const char *name);

/* "attention[seq=512]": a region of its own for each value, and so a distribution of its own. Key
 * and value are arguments in the trace. The same three give the same pointer, as above. NULL as the
 * region means the unnamed one, NULL as the key means "value". Cost: a hash look-up of region, key
 * and value, without a lock; the name is made when it is new. */
PK_API pk_region *pk_region_variant(pk_region *region, const char *key, int64_t value);

/* How long a call of this region may take, in seconds, before the watchdog says that the program
 * hangs (pk_options.hang_seconds): for phases that are long but rare, such as a compilation, and
 * for phases that must never be long. While a region with a limit is open on the stepping thread
 * (without steps: on any thread), its limit replaces hang_seconds; of several the innermost counts.
 * 0 or less: no limit of its own; a region of kind PK_IO may then take any time. It may be called
 * on any thread at any time, also before pk_start, and holds for all regions of that name and kind.
 * Cost: that of a first use of the name. */
PK_API void pk_region_set_limit(pk_region *region, double seconds);

/* The rest of the block around it, as a region. Each is a declaration, and a block may have
 * several. PK_REGION_SCOPE takes an lvalue, PK_REGION_SCOPE_NAMED a string literal (anything else
 * does not compile: pk_region_named is for names known at run time); both stand inside functions.
 * As with every variable that has a cleanup, no goto and no case label may jump past it into its
 * block. */
#define PK_REGION_SCOPE(region) PK_REGION_SCOPE_AT_(region, PK_JOIN_(pk_scope_, __COUNTER__))
#define PK_REGION_SCOPE_NAMED(name) PK_REGION_SCOPE(PK_REGION_HERE_(PK_OTHER, "" name, 0))

/* "This function is a region": a declaration, usually the function's first line.
 *
 *     static void load_batch(struct batch *batch)
 *     {
 *         PK_FUNCTION();                       // or PK_FUNCTION_OF(PK_DATA)
 *         ...
 *     }
 *
 * The region has the function's name: in C++ the qualified one, without return type, parameters and
 * template arguments ("trainer::load", one region for all instances and overloads of a line). It
 * ends at every return and, in C++, when an exception leaves the
 * function. longjmp out of the function leaves it open: the next end around it closes it and counts
 * it as unbalanced. A recursive call is a region inside a region, of the same distribution.
 * A function is told by its place: of those of one name (static ones in several files, overloads)
 * the first one called has the name alone, each other one its place behind it, "helper (b.c:12)",
 * as each lambda has. Cost: that of PK_REGION_SCOPE, a begin and an end: no look-up, since the
 * region is static. */
#define PK_FUNCTION() PK_FUNCTION_OF(PK_OTHER)
#define PK_FUNCTION_OF(kind)                                                                       \
    PK_REGION_SCOPE(PK_REGION_HERE_(kind, PK_FUNCTION_NAME_, PK_REGION_FUNCTION_))

/* ---- below: how it is done; not for direct use ---- */

#define PK_JOIN_(a, b) PK_JOIN2_(a, b)
#define PK_JOIN2_(a, b) a##b
#define PK_REGION_AS_(kind, name, flags)                                                           \
    {                                                                                              \
        (name), (uint32_t)(kind), 0, __FILE__, __LINE__, 0,                                        \
        {                                                                                          \
            (flags), 0, 0, 0                                                                       \
        }                                                                                          \
    }
#define PK_REGION_FUNCTION_ 1 /* the name is a function's or its signature */
#ifdef __cplusplus
#define PK_FUNCTION_NAME_ __PRETTY_FUNCTION__
#else
#define PK_FUNCTION_NAME_ __func__
#endif
#define PK_REGION_HERE_(kind, name, flags)                                                         \
    (*__extension__({                                                                              \
        static pk_region pk_here_ = PK_REGION_AS_(kind, name, flags);                              \
        &pk_here_;                                                                                 \
    }))

#ifndef PK_DISABLE

#define PK_REGION_SCOPE_AT_(region, scope)                                                         \
    pk_region *scope __attribute__((cleanup(pk_scope_close_), unused)) = pk_scope_open_(&(region))

PK_API void pk_region_begin_on_(pk_region *region);
PK_API void pk_region_end_on_(pk_region *region);
PK_API void pk_region_next_on_(pk_region *from, pk_region *to);
PK_API void pk_region_add_on_(pk_region *region, uint64_t bytes, uint64_t flops);
PK_API void pk_region_note_on_(pk_region *region, pk_region *key, int64_t value);
PK_API void pk_region_note_text_on_(pk_region *region, pk_region *key, const char *string);
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

PK_INLINE void pk_region_note(pk_region *region, pk_region *key, int64_t value)
{
    if (PK_ON_)
        pk_region_note_on_(region, key, value);
}

PK_INLINE void pk_region_note_text(pk_region *region, pk_region *key, const char *string)
{
    if (PK_ON_)
        pk_region_note_text_on_(region, key, string);
}

PK_INLINE void pk_region_mark(pk_region *region)
{
    if (PK_ON_)
        pk_region_mark_on_(region);
}

static inline pk_region *pk_scope_open_(pk_region *region)
{
    pk_region_begin(region);
    return region;
}

static inline void pk_scope_close_(pk_region **region)
{
    pk_region_end(*region);
}

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_REGION_
#include <pk/disable.h>
#endif
#endif
