/* lib/base/quiesce.h - the dear half of a cheap handshake.
 *
 * A recording thread says "I am inside" with a plain store and then reads whether the session is over;
 * pk_stop writes that it is over and then reads who is inside. For one of the two to see the other, both
 * need a full fence between their store and their load. The thread must not pay for one on every
 * region, so pk_stop pays for both: membarrier(2) makes every running thread of the process execute a fence.
 */
#ifndef PKI_BASE_QUIESCE_H
#define PKI_BASE_QUIESCE_H

/* Once, before the first session: the kernel wants to know. */
void pki_quiesce_prepare(void);

/* When it returns, every thread has executed a full fence since the call. */
void pki_quiesce_fence(void);

#endif
