/* A C library with a region of its own, linked with libpk.so, which calls back into whoever uses
 * it. */
#include <pk/pk.h>

#include <dlfcn.h>
#include <stdlib.h>

void inner_work(void (*back)(void));

/* A stream of the mock of CUDA's driver (tests/fake) that $PK_CUDA_LIBRARY names; NULL if it names
 * none. */
void *inner_stream(void);

static pk_region region = PK_REGION_OF(PK_DATA, "in C");

void inner_work(void (*back)(void))
{
    PK_REGION_SCOPE(region);
    if (back)
        back();
}

/* How the script of tests/fake/driver.h begins, without CUDA's header. */
struct script {
    void (*reset)(void);
    void (*not_needed_here[2])(void);
    void *(*context_create)(int device);
    void (*nor_these[3])(void);
    void *(*stream_create)(void *context);
};

void *inner_stream(void)
{
    const char *path = getenv("PK_CUDA_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct script *gpu = library ? dlsym(library, "fake_cuda_script") : NULL;
    if (!gpu)
        return NULL;
    gpu->reset();
    return gpu->stream_create(gpu->context_create(0));
}
