/* lib/base/atomic.h - atomic access to plain fields, named by ordering.
 *
 * The structures lie in shared memory and are read by `pk recover` from a file, so their fields are
 * plain integers and every access that another thread can meet is spelled with one of these. Each
 * acquire says in a comment which release it pairs with.
 */
#pragma once

#define pki_load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define pki_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define pki_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define pki_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define pki_fetch_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define pki_exchange_acquire(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)

/* For fields that only one thread writes: no locked instruction. */
#define pki_bump(p, v) pki_store((p), pki_load(p) + (v))

/* Keeps the compiler, not the processor, from moving accesses across: enough between a thread and
 * its signal handlers. */
#define pki_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
