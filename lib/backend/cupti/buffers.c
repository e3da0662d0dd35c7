#include "backend/cupti/buffers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"

#define SLOTS 32

static pki_cupti_buffer *filled; /* the newest first */
static pki_cupti_buffer *free_ones[SLOTS];
static uint32_t count; /* buffers that exist */
static uint64_t refused;
static PKI_ALIGNED uint8_t scrap[PKI_LINE]; /* eight bytes of it, for everybody: nothing fits */

static pki_cupti_buffer *of(uint8_t *data)
{
    return (pki_cupti_buffer *)(void *)(data - offsetof(pki_cupti_buffer, data));
}

static pki_cupti_buffer *acquire_free(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (!pki_load(&free_ones[i]))
            continue;
        /* Pairs with the release in put_free: its bytes are zero. */
        pki_cupti_buffer *b = __atomic_exchange_n(&free_ones[i], NULL, __ATOMIC_ACQUIRE);
        if (b)
            return b;
    }
    return NULL;
}

static bool put_free(pki_cupti_buffer *b)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        pki_cupti_buffer *none = NULL;
        if (__atomic_compare_exchange_n(&free_ones[i], &none, b, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static pki_cupti_buffer *make(void)
{
    size_t bytes = sizeof(pki_cupti_buffer) + PKI_CUPTI_BUFFER_BYTES;
    void *b = NULL;
    if (pki_fetch_add(&count, 1u) < PKI_CUPTI_BUFFERS_MOST)
        b = aligned_alloc(PKI_LINE, bytes);
    if (b)
        return memset(b, 0, bytes);
    pki_fetch_add(&count, (uint32_t)-1);
    return NULL;
}

void CUPTIAPI pki_cupti_buffer_requested(uint8_t **data, size_t *size, size_t *records_most)
{
    int saved = errno;
    pki_cupti_buffer *b = acquire_free();
    if (!b)
        b = make();
    if (!b)
        pki_fetch_add(&refused, (uint64_t)1);
    *data = b ? b->data : scrap;
    *size = b ? PKI_CUPTI_BUFFER_BYTES : 8;
    *records_most = 0;
    errno = saved;
}

void CUPTIAPI pki_cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *data,
                                         size_t size, size_t valid)
{
    (void)context, (void)stream;
    if (!data || data == scrap)
        return;
    pki_cupti_buffer *b = of(data);
    b->valid = PKI_MIN(valid, PKI_MIN(size, PKI_CUPTI_BUFFER_BYTES));
    b->completed = pki_monotonic_ns();
    pki_cupti_buffer *head = pki_load(&filled);
    do
        b->next = head; /* the release pairs with the acquire in pki_cupti_buffers_drain */
    while (
        !__atomic_compare_exchange_n(&filled, &head, b, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

pki_cupti_buffer *pki_cupti_buffers_drain(void)
{
    /* Taken as a whole, so nobody can put one back that another pusher still looks at. Pairs with
     * the release in pki_cupti_buffer_completed. */
    pki_cupti_buffer *newest = pki_exchange_acquire(&filled, NULL), *oldest = NULL;
    while (newest) {
        pki_cupti_buffer *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void discard(pki_cupti_buffer *b)
{
    free(b);
    pki_fetch_add(&count, (uint32_t)-1);
}

void pki_cupti_buffer_release(pki_cupti_buffer *b)
{
    memset(b->data, 0, b->valid);
    if (!put_free(b))
        discard(b);
}

uint64_t pki_cupti_buffers_refused(void)
{
    return pki_load(&refused);
}

void pki_cupti_buffers_trim(void)
{
    pki_cupti_buffer *b;
    while ((b = acquire_free()) != NULL)
        discard(b);
}

void pki_cupti_buffers_after_fork(void)
{
    filled = NULL;
    memset(free_ones, 0, sizeof free_ones);
    count = 0;
}
