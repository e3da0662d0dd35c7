/* A program that tells listeners what it does: run_listen WHAT TURNS. Of ITT and Kokkos it does
 * what their part in a program does: it opens the library that the variable names, and asks for
 * functions by their names. NVTX's part is its own header. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef WITH_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

static void work(void)
{
    nanosleep(&(struct timespec){0, 50000}, NULL);
}

static void *listener(const char *variable)
{
    const char *path = getenv(variable);
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    printf("%s\n", library ? "listened to" : "nobody listens");
    return library;
}

static void find(void *library, const char *name, void *where)
{
    void *found = dlsym(library, name);
    if (!found)
        exit(9);
    memcpy(where, &found, sizeof found);
}

/* ---- Kokkos ---- */

typedef struct space {
    char name[64];
} space;

static void kokkos(int turns)
{
    void *library = listener("KOKKOS_TOOLS_LIBS");
    void (*init)(int, uint64_t, uint32_t, void *);
    void (*begin)(const char *, uint32_t, uint64_t *), (*end)(uint64_t);
    void (*begin_fence)(const char *, uint32_t, uint64_t *), (*end_fence)(uint64_t);
    void (*push)(const char *), (*pop)(void), (*end_copy)(void), (*settings)(uint32_t, bool *);
    void (*copy)(space, const char *, const void *, space, const char *, const void *, uint64_t);
    void (*allocate)(space, const char *, const void *, uint64_t);
    void (*release)(space, const char *, const void *, uint64_t);
    bool wanted[256] = {true};
    uint64_t kernel, fence;
    space host = {"Host"}, device = {"Cuda"};
    if (!library)
        return;
    find(library, "kokkosp_init_library", &init);
    find(library, "kokkosp_request_tool_settings", &settings);
    find(library, "kokkosp_begin_parallel_reduce", &begin);
    find(library, "kokkosp_end_parallel_reduce", &end);
    find(library, "kokkosp_begin_fence", &begin_fence);
    find(library, "kokkosp_end_fence", &end_fence);
    find(library, "kokkosp_push_profile_region", &push);
    find(library, "kokkosp_pop_profile_region", &pop);
    find(library, "kokkosp_begin_deep_copy", &copy);
    find(library, "kokkosp_end_deep_copy", &end_copy);
    find(library, "kokkosp_allocate_data", &allocate);
    find(library, "kokkosp_deallocate_data", &release);
    init(0, 20211015, 0, NULL);
    settings(1, wanted);
    printf("%s\n", wanted[0] ? "each kernel is waited for" : "no kernel is waited for");
    allocate(host, "a", NULL, 1000);
    allocate(host, "b", NULL, 500);
    for (int i = 0; i < turns; i++) {
        push("turn");
        begin("sum of squares", 0, &kernel);
        work();
        end(kernel);
        copy(host, "a", NULL, device, "b", NULL, 64);
        end_copy();
        begin_fence("all", 0, &fence);
        end_fence(fence);
        pop();
    }
    release(host, "b", NULL, 500);
}

/* ---- ITT ---- */

typedef struct itt_domain {
    volatile int enabled;
    const char *name;
    void *wide_name;
    int extra;
    void *theirs;
    struct itt_domain *next;
} itt_domain;

typedef struct itt_string {
    const char *text;
    void *wide_text;
    int extra;
    void *theirs;
    struct itt_string *next;
} itt_string;

typedef struct itt_id {
    unsigned long long words[3];
} itt_id;

static void itt(int turns)
{
    void *library = listener("INTEL_LIBITTNOTIFY64");
    void (*task)(itt_domain *, itt_id, itt_id, itt_string *), (*end)(itt_domain *);
    void (*frame)(itt_domain *, itt_id *), (*end_frame)(itt_domain *, itt_id *);
    int (*create)(const char *, int), (*start)(int), (*stop)(int);
    const char *(*version)(void);
    itt_domain domain = {1, "solver", NULL, 0, NULL, NULL};
    itt_string outer = {"outer", NULL, 0, NULL, NULL}, inner = {"inner", NULL, 0, NULL, NULL};
    itt_id none = {{0}};
    if (!library)
        return;
    find(library, "__itt_api_version", &version);
    find(library, "__itt_task_begin", &task);
    find(library, "__itt_task_end", &end);
    find(library, "__itt_frame_begin_v3", &frame);
    find(library, "__itt_frame_end_v3", &end_frame);
    find(library, "__itt_event_create", &create);
    find(library, "__itt_event_start", &start);
    find(library, "__itt_event_end", &stop);
    int event = create("exchange of halos", 8);
    for (int i = 0; i < turns; i++) {
        frame(&domain, NULL);
        task(&domain, none, none, &outer);
        task(&domain, none, none, &inner);
        work();
        end(&domain);
        end(&domain);
        start(event);
        stop(event);
        end_frame(&domain, NULL);
        end(&domain); /* one too many */
    }
}

/* ---- NVTX ---- */

static void nvtx(int turns)
{
#ifdef WITH_NVTX
    for (int i = 0; i < turns; i++) {
        nvtxRangePushA("forward");
        work();
        nvtxRangePop();
        nvtxRangePushA("backward");
        nvtxRangePop();
    }
    printf("%s\n", getenv("NVTX_INJECTION64_PATH") ? "listened to" : "nobody listens");
#else
    (void)turns;
    exit(77);
#endif
}

int main(int argc, char **argv)
{
    int turns = argc > 2 ? atoi(argv[2]) : 0;
    if (argc > 2 && strcmp(argv[1], "kokkos") == 0)
        kokkos(turns);
    else if (argc > 2 && strcmp(argv[1], "itt") == 0)
        itt(turns);
    else if (argc > 2 && strcmp(argv[1], "nvtx") == 0)
        nvtx(turns);
    else
        return 2;
    return 0;
}
