/* NCCL's search for its profiler, as its loader makes it: what NCCL_PROFILER_PLUGIN names, the
 * program itself for STATIC_PLUGIN, the newest table first. Says what the variable is, and how many
 * tables of perfkit's there are.
 *
 * -DLOADED: perfkit is not linked with the program, but there already. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LOADED
static int start(void)
{
    int (*pk_start)(const void *options) = NULL;
    *(void **)&pk_start = dlsym(RTLD_DEFAULT, "pk_start");
    return pk_start ? pk_start(NULL) : -1;
}
#else
#include <pk/pk.h>

static int start(void)
{
    return pk_start(NULL);
}
#endif

static int count_tables(void *library)
{
    int count = 0;
    for (int version = 6; version >= 2; version--) {
        char symbol[32];
        snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
        const char *const *name = dlsym(library, symbol); /* a table's first member */
        count += name && strcmp(*name, "perfkit") == 0;
    }
    return count;
}

int main(void)
{
    int status = start();
    const char *name = getenv("NCCL_PROFILER_PLUGIN");
    void *library =
        name ? dlopen(strcmp(name, "STATIC_PLUGIN") == 0 ? NULL : name, RTLD_NOW | RTLD_LOCAL)
             : NULL;
    printf("%s %d\n", name ? name : "(not set)", library ? count_tables(library) : 0);
    return status;
}
