/* The double's buffers: one for each thread, at most THREADS of them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cupti_state.h"

#define THREADS 64

typedef struct place {
    long tid;
    uint8_t *data;
    size_t size, used;
} place;

static place places[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* not held while anybody is called */

static size_t length_of(const CUpti_Activity *record)
{
    size_t n = record->kind < FAKE_KINDS ? fake.lengths[record->kind] : 0;
    return (n + 7) & ~(size_t)7;
}

static place take(long tid)
{
    place p = {tid, NULL, 0, 0};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < THREADS; i++)
        if (places[i].data && places[i].tid == tid) {
            p = places[i];
            places[i].data = NULL;
            break;
        }
    pthread_mutex_unlock(&lock);
    return p;
}

static void hand_back(place p)
{
    if (!p.data)
        return;
    __atomic_fetch_sub(&fake.outstanding, 1, __ATOMIC_RELAXED);
    fake_get(fake_inside.completed)(NULL, 0, p.data, p.size, p.used);
}

static void put(place p)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < THREADS && places[i].data)
        i++;
    if (i < THREADS)
        places[i] = p;
    pthread_mutex_unlock(&lock);
    if (i == THREADS)
        hand_back(p);
}

static void request(place *p)
{
    size_t most = 99;
    fake_get(fake_inside.requested)(&p->data, &p->size, &most);
    pthread_mutex_lock(&fake_lock);
    fake.nulls += p->data == NULL;
    fake.misaligned += (uintptr_t)p->data % 64 != 0 || most != 0;
    fake.buffers++;
    __atomic_fetch_add(&fake.outstanding, p->data != NULL, __ATOMIC_RELAXED);
    fake.smallest = p->size < fake.smallest ? p->size : fake.smallest;
    pthread_mutex_unlock(&fake_lock);
    p->used = 0;
}

void fake_write(const void *record)
{
    size_t n = length_of(record);
    place p = take(syscall(SYS_gettid));
    if (p.data && p.size - p.used < n) {
        hand_back(p);
        p.data = NULL;
    }
    if (!p.data)
        request(&p);
    if (!p.data || p.size < n) {
        pthread_mutex_lock(&fake_lock);
        fake.dropped++;
        pthread_mutex_unlock(&fake_lock);
    } else {
        memcpy(p.data + p.used, record, n);
        p.used += n;
    }
    if (p.data)
        put(p);
}

void fake_complete(void)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_mutex_lock(&lock);
        place p = places[i];
        places[i].data = NULL;
        pthread_mutex_unlock(&lock);
        hand_back(p);
    }
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    fake_note("flush", (long)flag);
    pthread_mutex_lock(&fake_lock);
    __atomic_fetch_add(&fake.flushes, 1, __ATOMIC_RELAXED);
    fake.forced += flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
    pthread_mutex_unlock(&fake_lock);
    if (fake.on_flush)
        fake.on_flush(flag);
    fake_complete();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    pthread_mutex_lock(&fake_lock);
    *dropped = fake.dropped;
    fake.dropped = 0;
    pthread_mutex_unlock(&fake_lock);
    return CUPTI_SUCCESS;
}

/* Goes by the kinds' lengths alone, as the library does. */
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    size_t at = *record ? (size_t)((uint8_t *)*record - buffer) + length_of(*record) : 0;
    if (at >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    CUpti_Activity *next = (CUpti_Activity *)(void *)(buffer + at);
    if (valid - at < sizeof next->kind || length_of(next) == 0 || valid - at < length_of(next))
        return CUPTI_ERROR_INVALID_KIND;
    *record = next;
    return CUPTI_SUCCESS;
}
