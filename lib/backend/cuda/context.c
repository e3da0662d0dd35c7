#include "backend/cuda/context.h"

#include <pthread.h>
#include <stdlib.h>

#include "backend/cuda/reasons.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_cuda_context *first; /* release; acquire in pki_cuda_contexts */

pki_cuda_context *pki_cuda_contexts(void)
{
    return pki_load_acquire(&first); /* pairs with the release in make */
}

static unsigned long long id_of(CUcontext handle)
{
    unsigned long long id = 0;
    return pki_cuda.ctx_id && pki_cuda.ctx_id(handle, &id) == CUDA_SUCCESS ? id : 0;
}

static pki_cuda_context *find(CUcontext handle, unsigned long long id)
{
    for (pki_cuda_context *c = pki_cuda_contexts(); c; c = c->next) {
        if (c->handle != handle || pki_load(&c->dead) == PKI_CUDA_GONE)
            continue;
        if (c->id == id)
            return c;
        pki_store(&c->dead, PKI_CUDA_GONE); /* the handle is another one's now */
    }
    return NULL;
}

static uint32_t device_of(CUcontext handle)
{
    CUdevice device = 0;
    if (pki_cuda_enter(handle) == CUDA_SUCCESS) {
        if (pki_cuda.ctx_device(&device))
            device = 0;
        pki_cuda_leave();
    }
    return (uint32_t)device;
}

static pki_cuda_context *make(CUcontext handle, unsigned long long id)
{
    void *memory = NULL;
    if (posix_memalign(&memory, PKI_LINE, sizeof(pki_cuda_context)) != 0)
        return NULL;
    pki_cuda_context *c = memory;
    *c = (pki_cuda_context){.next = first,
                            .handle = handle,
                            .id = id,
                            .number = first ? first->number + 1 : 1,
                            .device = device_of(handle)};
    pki_store_release(&first, c); /* pairs with the acquire in pki_cuda_contexts */
    return c;
}

pki_cuda_context *pki_cuda_context_for(CUcontext handle)
{
    CUstreamCaptureMode mode = pki_cuda_relax();
    unsigned long long id = id_of(handle);
    pthread_mutex_lock(&lock);
    pki_cuda_context *c = find(handle, id);
    c = c ? c : make(handle, id);
    pthread_mutex_unlock(&lock);
    pki_cuda_restore(mode);
    return c;
}

bool pki_cuda_context_failed(pki_cuda_context *c, CUresult code)
{
    if (!pki_load(&c->dead) && pki_cuda_is_sticky(code)) {
        pki_store(&c->dead, (uint32_t)code);
        pki_cuda_note_reason(PKI_CUDA_CONTEXT_DEAD, code, c->number);
    }
    return pki_load(&c->dead) != 0;
}

bool pki_cuda_context_is_same(const pki_cuda_context *c)
{
    return id_of(c->handle) == c->id;
}

bool pki_cuda_context_alive(pki_cuda_context *c)
{
    unsigned version;
    if (pki_load(&c->dead))
        return false;
    CUresult code = pki_cuda.ctx_api_version(c->handle, &version);
    if (pki_cuda_context_failed(c, code))
        return false;
    if (code == CUDA_SUCCESS && pki_cuda_context_is_same(c))
        return true;
    pki_store(&c->dead, PKI_CUDA_GONE);
    pki_cuda_note_reason(PKI_CUDA_CONTEXT_GONE, code, c->number);
    return false;
}

static pki_cuda_context *used; /* under the drain lock */

void pki_cuda_context_use_none(void)
{
    if (used)
        pki_cuda_leave();
    used = NULL;
}

bool pki_cuda_context_use(pki_cuda_context *c)
{
    if (used == c)
        return true;
    pki_cuda_context_use_none();
    CUresult code = pki_load(&c->dead) ? CUDA_ERROR_INVALID_CONTEXT : pki_cuda_enter(c->handle);
    if (code && !pki_cuda_context_failed(c, code))
        pki_cuda_context_alive(c);
    used = code ? NULL : c;
    return !code;
}

void pki_cuda_contexts_after_fork(void)
{
    used = NULL;
    static void *volatile parents __attribute__((unused)); /* neither freed nor lost */
    pthread_mutex_init(&lock, NULL);
    parents = first;
    first = NULL; /* they are the parent's, events included */
}
