/* pk/status.h - what control calls return, and what every header needs: linkage and the gate.
 *
 *     pk_status s = pk_start(NULL);
 *     if (s)
 *         fprintf(stderr, "perfkit: %s (%s)\n", pk_error_message(), pk_status_name(s));
 *
 * Threads: any thread may call everything here at any time.
 * Failure: nothing here fails. An unknown code has the name "PK_E?" and the text "unknown status".
 * Cost:    a table look-up.
 */
#ifndef PK_STATUS_H
#define PK_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifndef PK_DISABLE

/* Linkage of every public function and object: exported, although the library hides everything
 * else. */
#define PK_API __attribute__((visibility("default")))

/* Functions that must cost nothing while perfkit is off are inlined. They are symbols of the
 * library too (C's rule for inline functions, lib/core/ffi.c), for callers that cannot inline C. */
#define PK_INLINE inline

#else

/* Each public function does nothing, in each file by itself: see pk/disable.h. */
#define PK_API static inline __attribute__((unused))
#define PK_INLINE

#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Code, value, text. Values never change and are never reused. */
#define PK_STATUS_LIST(X)                                                                          \
    X(PK_OK, 0, "success")                                                                         \
    X(PK_EINVAL, -1, "an argument, an option or an environment variable is not valid")             \
    X(PK_EBUSY, -2, "perfkit is already started in this process")                                  \
    X(PK_EOFF, -3, "perfkit is not started in this process")                                       \
    X(PK_ENOMEM, -4, "not enough memory, or the memory bound is reached")                          \
    X(PK_EIO, -5, "a file could not be read or written")                                           \
    X(PK_ENOSPC, -6, "no space is left where the trace or the report goes")                        \
    X(PK_EACCES, -7, "a file may not be created or written there")                                 \
    X(PK_ENOENT, -8, "there is nothing of that name")                                              \
    X(PK_ETHREAD, -9, "the collector thread could not be created")                                 \
    X(PK_ENOTSUP, -10, "this build or this machine cannot do that")

typedef enum pk_status {
#define PK_STATUS_ENUM(code, value, text) code = value,
    PK_STATUS_LIST(PK_STATUS_ENUM)
#undef PK_STATUS_ENUM
} pk_status;

/* "PK_EINVAL" */
PK_API const char *pk_status_name(pk_status status);

/* "an argument, an option or an environment variable is not valid" */
PK_API const char *pk_status_text(pk_status status);

/* One sentence about the last control call that failed on this thread: which option, which file,
 * which system error. Never NULL; "" if none has failed. Valid until the next failure on this
 * thread. */
PK_API const char *pk_error_message(void);

/* "0.1.0": the version of the library in use. pk/version.h has the one compiled against. */
PK_API const char *pk_version(void);

/* ---- below: how a call that records is inlined up to the gate; not for direct use ---- */

#ifndef PK_DISABLE

/* Non-zero while a session is open. */
extern PK_API uint32_t pk_gate_;

/* The straight line is for perfkit being off. With a probability of 0.9, which __builtin_expect
 * means, gcc moves the calls far from it, and the jumps there and back are 5 % of a recorded
 * region; with less than 0.82 clang lays the code out for "on". In between off costs the same
 * (docs/internals/overhead.md). */
#ifdef __has_builtin
#if __has_builtin(__builtin_expect_with_probability)
#define PK_EXPECT_OFF_(on) __builtin_expect_with_probability((on), 0, 0.85)
#endif
#endif
#ifndef PK_EXPECT_OFF_
#define PK_EXPECT_OFF_(on) __builtin_expect((on), 0)
#endif
#define PK_ON_ PK_EXPECT_OFF_(__atomic_load_n(&pk_gate_, __ATOMIC_RELAXED) != 0)

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_STATUS_
#include <pk/disable.h>
#endif
#endif
