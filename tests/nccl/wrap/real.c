/* real.c LIBRARY... - the real NCCL, if there is one, called by its public names with libpk_nccl
 * preloaded: what can be asked without a GPU, and what is answered where there is none. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "nccl_stub.h"

#define CALL(NAME, PARAMS) static int(*call_##NAME) PARAMS __attribute__((unused));
STUB_COLLECTIVES(CALL)
STUB_LATER(CALL)
STUB_OTHERS(CALL)

static int missing;

static void *open_first(char **paths, int flags)
{
    void *library = NULL;
    for (; *paths && !library; paths++)
        library = dlopen(*paths, RTLD_NOW | flags);
    return library;
}

static int is_wrapped(const char *name)
{
    Dl_info info = {0};
    dladdr(dlsym(RTLD_DEFAULT, name), &info);
    return info.dli_fname && strstr(info.dli_fname, "libpk_nccl");
}

int main(int argc, char **argv)
{
    char text[4096];
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    (void)argc;
    void *library = open_first(argv + 1, RTLD_LOCAL); /* visible to nobody but its user */
    if (!library) {
        printf("skipped: there is no NCCL here: %s\n", dlerror());
        return 77;
    }
#define FIND(NAME, PARAMS)                                                                         \
    *(void **)&call_##NAME = dlsym(RTLD_DEFAULT, "nccl" #NAME);                                    \
    missing += !call_##NAME || !is_wrapped("nccl" #NAME);
    STUB_COLLECTIVES(FIND)
    STUB_LATER(FIND)
    FIND(GroupStart, )
    FIND(GroupEnd, )
    FIND(CommInitRank, )
    FIND(CommDestroy, )
    *(void **)&call_GetUniqueId = dlsym(library, "ncclGetUniqueId");
    if (missing || !call_GetUniqueId || call_GetUniqueId(&id))
        return printf("%d functions are not libpk_nccl's\n", missing), 1;
    int start = call_GroupStart(), end = call_GroupEnd(), stray = call_GroupEnd();
    int reduce = call_AllReduce(NULL, NULL, 1, FLOAT, SUM, NULL, NULL);
    int all = call_AlltoAll ? call_AlltoAll(NULL, NULL, 1, FLOAT, NULL, NULL) : 5;
    int init = call_CommInitRank(&comm, 1, id, 0);
    snprintf(text, sizeof text, "%d %d %d %d %d %d", start, end, stray, reduce, all, init);
    printf("start, end, stray end, all-reduce of none, all-to-all of none, init: %s\n", text);
    if (comm)
        call_CommDestroy(comm);
    /* Before 2.28 there is no all-to-all. */
    return strncmp(text, "0 0 5 4 4 ", 10) != 0 && strncmp(text, "0 0 5 4 5 ", 10) != 0;
}
