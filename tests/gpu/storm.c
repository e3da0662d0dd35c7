/* Many things at once: contexts destroyed and devices reset while others record, programs that end
 * with work in flight, modules that are loaded meanwhile, and several processes on one device. */
#include "gpu.h"

#include <pk/gpu.h>
#include <pk/pk.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pk_region region = PK_REGION("storm.span");

static void some_spans(cuda_stream stream, int n)
{
    for (int i = 0; i < n; i++) {
        pk_gpu_begin(&region, stream);
        cu.cuda_launch(the_kernels.empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        pk_gpu_end(&region, stream);
    }
}

static void check_counts(const char *path)
{
    pk_gpu_counts n = {.size = sizeof n};
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    pk_get_gpu_counts(&n);
    gpu_check(n.begun == n.recorded + n.dropped + n.skipped + n.lost,
              "%llu begun, %llu recorded, %llu dropped, %llu skipped, %llu lost",
              (unsigned long long)n.begun, (unsigned long long)n.recorded,
              (unsigned long long)n.dropped, (unsigned long long)n.skipped,
              (unsigned long long)n.lost);
    gpu_check(gpu_is_closed(path), "%s does not end as a trace does", path);
}

/* ---- storm ---- */

/* Six threads make a context each, begin spans in it and destroy it with those unread, fifty times;
 * a session goes on all the while. Then the same of a device that is reset. And programs that call
 * exit() amid a session, with spans and a long kernel on the device: none crashes, each trace is
 * whole. */

#define THREADS 6
#define AT_ONCE 8

static int rounds(void)
{
    return (int)gpu_seconds(50, 10);
}

static void *destroy(void *unused)
{
    for (int i = 0; i < rounds(); i++) {
        cuda_context context;
        must(cu.cuda_create_context(&context, 0, 0));
        some_spans(driver_stream(), 3);
        must(cu.cuda_destroy_context(context));
    }
    return unused;
}

static void destroys(void)
{
    pthread_t threads[THREADS];
    driver_open();
    driver_load_kernels();
    const char *path = gpu_start("cuda");
    gpu_need("cuda");
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, destroy, NULL) != 0)
            exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check_counts(path);
}

static void resets(void)
{
    driver_load();
    const char *path = gpu_start("cuda");
    for (int i = 0; i < rounds(); i++) {
        driver_open();
        driver_load_kernels();
        some_spans(driver_stream(), 3);
        must(cu.cuda_reset(0));
    }
    check_counts(path);
}

/* The parent looks at the trace, whose path it knows. */
static void end_amid(void)
{
    cuda_memory memory;
    driver_open();
    driver_load_kernels();
    must(cu.cuda_memory(&memory, sizeof(spun)));
    gpu_start("cuda,cupti");
    cuda_stream stream = driver_stream();
    some_spans(stream, 10);
    driver_spin(stream, 20000000, memory, 0);
    some_spans(stream, 10);
    exit(0);
}

static void check_end(pid_t child, unsigned *well)
{
    char path[600];
    const char *folder = getenv("TMPDIR");
    int status = gpu_await(child);
    snprintf(path, sizeof path, "%s/pk-gpu-%d-0.json", folder ? folder : "/tmp", (int)child);
    bool closed = gpu_is_closed(path);
    gpu_check(status == 0, "exit() amid a session: ended with %d", status);
    gpu_check(closed, "%s does not end as a trace does", path);
    *well += status == 0 && closed;
    unlink(path);
}

static void ends_in_flight(void)
{
    pid_t children[AT_ONCE];
    unsigned all = (unsigned)gpu_seconds(100, 8), begun = 0, ended = 0, well = 0;
    while (ended < all) {
        for (; begun < all && begun - ended < AT_ONCE; begun++)
            children[begun % AT_ONCE] = gpu_begin_anew("storm", "exit", 30);
        check_end(children[ended % AT_ONCE], &well);
        ended++;
    }
    gpu_figure("storm.exits", "%u of %u well", well, all);
}

int test_storm(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "destroys") == 0)
        return destroys(), gpu_result();
    if (argc == 2 && strcmp(argv[1], "resets") == 0)
        return resets(), gpu_result();
    if (argc == 2)
        end_amid();
    int destroyed = gpu_anew("storm", "destroys", 60);
    if (destroyed == 77)
        return 77;
    int reset = gpu_anew("storm", "resets", 60);
    gpu_figure("storm.destroys", "%d by %d threads: %s", THREADS * rounds(), THREADS,
               destroyed ? "not well" : "well");
    gpu_figure("storm.resets", "%d: %s", rounds(), reset ? "not well" : "well");
    gpu_check(destroyed == 0, "contexts destroyed: ended with %d", destroyed);
    gpu_check(reset == 0, "devices reset: ended with %d", reset);
    ends_in_flight();
    return gpu_result();
}

/* ---- modules ---- */

/* One thread loads code while another launches and records: nothing of it is missing. */

#define MODULES 60

static bool loaded;

static void *load_modules(void *context)
{
    must(cu.cuda_set_current(context));
    for (int i = 0; i < MODULES; i++)
        driver_load_again();
    __atomic_store_n(&loaded, true, __ATOMIC_SEQ_CST);
    return NULL;
}

int test_modules(int argc, char **argv)
{
    (void)argc, (void)argv;
    cuda_context context;
    cuda_memory memory;
    pthread_t loader;
    uint64_t launched = 0, longest = 0;
    driver_open();
    driver_load_kernels();
    must(cu.cuda_get_current(&context));
    must(cu.cuda_memory(&memory, sizeof(spun)));
    cuda_stream stream = driver_stream();
    const char *path = gpu_start("cuda,cupti");
    gpu_need("cuda");
    gpu_need("cupti");
    if (pthread_create(&loader, NULL, load_modules, context) != 0)
        return 1;
    while (launched < 2000 || !__atomic_load_n(&loaded, __ATOMIC_SEQ_CST)) {
        uint64_t begun = gpu_now();
        pk_gpu_begin(&region, stream);
        uint64_t took = gpu_now() - begun;
        longest = took > longest ? took : longest;
        driver_spin(stream, 5000, memory, 0);
        pk_gpu_end(&region, stream);
        if (++launched % 100 == 0)
            must(cu.cuda_stream_synchronize(stream));
    }
    pthread_join(loader, NULL);
    must(cu.cuda_stream_synchronize(stream));
    check_counts(path);
    gpu_trace t = gpu_read_trace(path);
    size_t seen = gpu_count(&t, "kernel", "spin"),
           spans = gpu_count(&t, "gpu_user_annotation", "storm.span");
    gpu_figure("modules.recorded",
               "%zu kernels, %zu spans of %llu beside %d modules; the longest "
               "begin %.1f us",
               seen, spans, (unsigned long long)launched, MODULES, (double)longest / 1e3);
    gpu_check(seen == launched, "%zu of %llu", seen, (unsigned long long)launched);
    gpu_check(spans == launched, "%zu of %llu", spans, (unsigned long long)launched);
    return gpu_result();
}

/* ---- processes ---- */

/* Two and four of them on the first device, each with kernels and spans of its own: each records
 * all of its own and nothing of the others'. And a communicator of two of them, where NCCL allows
 * two ranks on one device. */

#define PROCESSES 4
#define KERNELS 500

static void one_process(void)
{
    cuda_memory memory;
    driver_open();
    driver_load_kernels();
    must(cu.cuda_memory(&memory, sizeof(spun)));
    cuda_stream stream = driver_stream();
    const char *path = gpu_start("cuda,cupti");
    gpu_need("cuda");
    gpu_need("cupti");
    for (int i = 0; i < KERNELS; i++) {
        pk_gpu_begin(&region, stream);
        driver_spin(stream, 100000, memory, 0);
        pk_gpu_end(&region, stream);
        if (i % 50 == 49)
            must(cu.cuda_stream_synchronize(stream));
    }
    check_counts(path);
    gpu_trace t = gpu_read_trace(path);
    size_t seen = gpu_count(&t, "kernel", NULL),
           spans = gpu_count(&t, "gpu_user_annotation", "storm.span");
    gpu_check(seen == KERNELS, "%zu kernels of %d", seen, KERNELS);
    gpu_check(spans == KERNELS, "%zu spans of %d", spans, KERNELS);
}

typedef struct unique_id {
    char internal[128];
} unique_id;

/* rank 0 writes what both need. A rank that is refused says so, and that is no fault. */
static int one_rank(int rank)
{
    int (*get_id)(unique_id *), (*init)(communicator *, int, unique_id, int);
    unique_id id;
    communicator comm;
    const char *named = getenv("PK_NCCL_LIBRARY"), *path = getenv("PK_GPU_RANKS_FILE");
    driver_open();
    nccl_open();
    void *library = dlopen(named && *named ? named : "libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    void *first = dlsym(library, "ncclGetUniqueId"), *second = dlsym(library, "ncclCommInitRank");
    if (!first || !second || !path)
        return 77;
    memcpy(&get_id, &first, sizeof first);
    memcpy(&init, &second, sizeof second);
    FILE *file = fopen(path, rank ? "r" : "w");
    if (rank == 0) {
        nccl_must(get_id(&id), "ncclGetUniqueId");
        if (!file || fwrite(&id, sizeof id, 1, file) != 1)
            return 1;
        fclose(file);
    } else {
        for (int i = 0; i < 200 && !(file && fread(&id, sizeof id, 1, file) == 1); i++) {
            if (file)
                fclose(file);
            gpu_sleep_ms(50);
            file = fopen(path, "r");
        }
    }
    int code = init(&comm, 2, id, rank);
    if (code != 0) {
        printf("  rank %d: ncclCommInitRank: %d\n", rank, code);
        return 77;
    }
    nccl_must(nccl.destroy(comm), "ncclCommDestroy");
    return 0;
}

static void ranks_on_one_device(void)
{
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    setenv("PK_GPU_RANKS_FILE", gpu_path("ranks"), 1);
    pid_t first = gpu_begin_anew("processes", "rank0", 25),
          second = gpu_begin_anew("processes", "rank1", 25);
    int one = gpu_await(first), two = gpu_await(second);
    gpu_figure("processes.nccl", "two ranks on a device: %s (%d, %d)",
               one == 0 && two == 0 ? "a communicator" : "NCCL does not allow it here", one, two);
}

int test_processes(int argc, char **argv)
{
    if (argc == 2 && strncmp(argv[1], "rank", 4) == 0)
        return one_rank(argv[1][4] - '0');
    if (argc == 2)
        return one_process(), gpu_result();
    for (int n = 2; n <= PROCESSES; n += 2) {
        pid_t children[PROCESSES];
        int well = 0;
        for (int i = 0; i < n; i++)
            children[i] = gpu_begin_anew("processes", "one", 40);
        for (int i = 0; i < n; i++) {
            int status = gpu_await(children[i]);
            if (status == 77)
                return 77;
            gpu_check(status == 0, "one of %d: ended with %d", n, status);
            well += status == 0;
        }
        gpu_figure(n == 2 ? "processes.two" : "processes.four",
                   "%d of %d have recorded all %d of "
                   "their own",
                   well, n, KERNELS);
    }
    ranks_on_one_device();
    return gpu_result();
}
