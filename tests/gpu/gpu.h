/* gpu.h - what the tests on a GPU share: saying why not, figures for docs/gpu-results.md, checks,
 * and traces read line by line.
 */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pk/comm.h>
#include <pk/pk.h>

/* One line, and exit 77; 1 if something has failed by then. */
void gpu_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A figure: printed, and appended as "key<TAB>text" to the file that PK_GPU_FIGURES names. */
void gpu_figure(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Said if it is not so, and appended to that file, too; gpu_result() is what main returns then. The
 * tests go on: who has come as far as to a GPU wants to know all that is wrong. */
#define gpu_check(condition, ...)                                                                  \
    gpu_checked((condition), #condition, __FILE__, __LINE__, __VA_ARGS__)
bool gpu_checked(bool so, const char *what, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same for what takes time: on a mock (PK_GPU_MOCK) it is said and does not count, since that
 * has no times of its own, and shares its processors with everybody. */
#define gpu_bar(condition, ...)                                                                    \
    gpu_measured((condition), #condition, __FILE__, __LINE__, __VA_ARGS__)
bool gpu_measured(bool so, const char *what, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int gpu_result(void);

/* Starts a session with a trace in a fresh file under $TMPDIR, whose path it returns; backends as
 * in pk_options. Ends the program if perfkit does not start. */
const char *gpu_start(const char *backends);

/* The backend's line. Skips the test if it is not live. */
void gpu_need(const char *backend);
const char *gpu_reason(const char *backend);

uint64_t gpu_now(void); /* CLOCK_MONOTONIC, ns */
void gpu_sleep_ms(unsigned ms);

/* ---- numbers; they sort what they are given ---- */

double gpu_quantile(double *values, size_t count, double q);
#define gpu_median(values, count) gpu_quantile((values), (count), 0.5)

/* The line through the points that is best in the sense of Theil and Sen: medians of slopes. */
typedef struct gpu_line {
    double slope, offset; /* y = slope * (x - x0) + offset */
    double x0;
} gpu_line;
gpu_line gpu_fit(const double *x, const double *y, size_t count);
static inline double gpu_at(gpu_line l, double x)
{
    return l.slope * (x - l.x0) + l.offset;
}

/* ---- traces ---- */

typedef struct gpu_event {
    char name[64], category[32], region[64];
    double start, end;  /* ns since the session's start */
    double uncertainty; /* ns; of a span's ends */
    uint64_t correlation;
    uint64_t pid, tid;
} gpu_event;

typedef struct gpu_trace {
    gpu_event *events; /* those with a duration, in the order of the file */
    size_t count;
    double base_monotonic; /* of ns 0 */
} gpu_trace;

/* Lines of the file that contain this. */
size_t gpu_count_lines(const char *path, const char *containing);

/* The file stays: run.sh removes those of a test that was well. */
gpu_trace gpu_read_trace(const char *path);
bool gpu_is(const gpu_event *event, const char *category, const char *name); /* NULL: any */
size_t gpu_count(const gpu_trace *trace, const char *category, const char *name);

/* ---- reports and what else a session leaves ---- */

/* All of a file; NULL, and it is said: it cannot be read. The caller frees it. */
char *gpu_read(const char *path);

/* The number that follows these keys, each behind the one before, up to a NULL: of a report in
 * JSON. NAN: there is none. */
double gpu_number(const char *text, ...) __attribute__((sentinel));
bool gpu_has_verdict(const char *report, const char *name);

/* A JSON document that ends as one does. */
bool gpu_is_closed(const char *path);

/* A path under $TMPDIR, of this process; it stays until the next call with another name. */
const char *gpu_path(const char *name);

/* A test's scenario as a process of its own, started anew; it is ended after so many seconds. */
pid_t gpu_begin_anew(const char *test, const char *scenario, unsigned seconds);
int gpu_await(pid_t child); /* its exit status; -signal if one ended it */
int gpu_anew(const char *test, const char *scenario, unsigned seconds);

/* How long this is to go on, which is less on a mock (PK_GPU_MOCK). */
double gpu_seconds(double usual, double on_mock);

/* ---- the driver ---- */

/* As much of libcuda.so.1 as the tests on a GPU use, declared here in our own words: the machine
 * with the GPU may have a driver and no toolkit. Names and meanings are those of NVIDIA's CUDA
 * driver API reference; cuda_ plus the rest of the name. */

typedef struct cuda_context *cuda_context;
typedef struct cuda_stream *cuda_stream;
typedef struct cuda_event *cuda_event;
typedef struct cuda_module *cuda_module;
typedef struct cuda_function *cuda_function;
typedef struct cuda_graph *cuda_graph;
typedef struct cuda_exec *cuda_exec;
typedef uint64_t cuda_memory;

enum {
    CUDA_OK = 0,
    CUDA_NOT_READY = 600,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_CAPTURED_EVENT = 907,
    CUDA_NON_BLOCKING = 1, /* of streams */
    CUDA_EXTERNAL = 1,     /* of cuEventRecordWithFlags */
    CUDA_CAPTURE_GLOBAL = 0,
    CUDA_CAPTURE_THREAD = 1,
    CUDA_CAPTURE_RELAXED = 2
};

#define CUDA_LEGACY_STREAM ((cuda_stream)(uintptr_t)1)

/* member, the library's name, parameters; all of them return a code. */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(device_count, "cuDeviceGetCount", (int *count))                                              \
    X(device_name, "cuDeviceGetName", (char *name, int size, int device))                          \
    X(error_name, "cuGetErrorName", (int code, const char **name))                                 \
    X(retain, "cuDevicePrimaryCtxRetain", (cuda_context * context, int device))                    \
    X(reset, "cuDevicePrimaryCtxReset_v2", (int device))                                           \
    X(set_current, "cuCtxSetCurrent", (cuda_context context))                                      \
    X(get_current, "cuCtxGetCurrent", (cuda_context * context))                                    \
    X(create_context, "cuCtxCreate_v2", (cuda_context * context, unsigned flags, int device))      \
    X(destroy_context, "cuCtxDestroy_v2", (cuda_context context))                                  \
    X(synchronize, "cuCtxSynchronize", (void))                                                     \
    X(stream_create, "cuStreamCreate", (cuda_stream * stream, unsigned flags))                     \
    X(stream_destroy, "cuStreamDestroy_v2", (cuda_stream stream))                                  \
    X(stream_synchronize, "cuStreamSynchronize", (cuda_stream stream))                             \
    X(stream_is_capturing, "cuStreamIsCapturing", (cuda_stream stream, int *status))               \
    X(begin_capture, "cuStreamBeginCapture_v2", (cuda_stream stream, int mode))                    \
    X(end_capture, "cuStreamEndCapture", (cuda_stream stream, cuda_graph * graph))                 \
    X(instantiate, "cuGraphInstantiateWithFlags",                                                  \
      (cuda_exec * exec, cuda_graph graph, unsigned long long flags))                              \
    X(launch_graph, "cuGraphLaunch", (cuda_exec exec, cuda_stream stream))                         \
    X(exec_destroy, "cuGraphExecDestroy", (cuda_exec exec))                                        \
    X(graph_destroy, "cuGraphDestroy", (cuda_graph graph))                                         \
    X(event_create, "cuEventCreate", (cuda_event * event, unsigned flags))                         \
    X(event_destroy, "cuEventDestroy_v2", (cuda_event event))                                      \
    X(event_record, "cuEventRecord", (cuda_event event, cuda_stream stream))                       \
    X(event_record_flags, "cuEventRecordWithFlags",                                                \
      (cuda_event event, cuda_stream stream, unsigned flags))                                      \
    X(event_query, "cuEventQuery", (cuda_event event))                                             \
    X(event_elapsed, "cuEventElapsedTime", (float *ms, cuda_event from, cuda_event to))            \
    X(module_load, "cuModuleLoadData", (cuda_module * module, const void *text))                   \
    X(module_function, "cuModuleGetFunction",                                                      \
      (cuda_function * function, cuda_module module, const char *name))                            \
    X(launch, "cuLaunchKernel",                                                                    \
      (cuda_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,    \
       unsigned bz, unsigned shared, cuda_stream stream, void **arguments, void **extra))          \
    X(memory, "cuMemAlloc_v2", (cuda_memory * memory, size_t bytes))                               \
    X(to_host, "cuMemcpyDtoH_v2", (void *to, cuda_memory from, size_t bytes))

#define CUDA_MEMBER(name, symbol, parameters) int(*cuda_##name) parameters;
typedef struct driver {
    CUDA_FUNCTIONS(CUDA_MEMBER)
} driver;
#undef CUDA_MEMBER

extern driver cu;

/* Opens the library and a device's primary context. Without a GPU the program says so and exits 77.
 */
void driver_open(void);

/* The same without a context; for children and for those who make their own. */
void driver_load(void);

/* Ends the program if a call of the driver's failed. */
#define must(call) driver_must((call), #call, __FILE__, __LINE__)
void driver_must(int code, const char *call, const char *file, int line);

const char *driver_error(int code);

/* -- kernels, in PTX for any GPU since Volta -- */

typedef struct spun {                  /* what the spinning kernel leaves behind */
    uint64_t began, ended;             /* %globaltimer, ns */
    uint64_t clock_began, clock_ended; /* %clock64 of its multiprocessor */
} spun;

typedef struct kernels {
    cuda_function spin;  /* one thread, until so many ns have passed on %globaltimer */
    cuda_function empty; /* nothing */
    cuda_function stray; /* writes to address 8 */
} kernels;

extern kernels the_kernels;
void driver_load_kernels(void);
void driver_load_again(void); /* the same code as one more module, for nobody */

/* Into the stream; the result goes to memory + index * sizeof(spun). */
void driver_spin(cuda_stream stream, uint64_t ns, cuda_memory memory, size_t index);
void driver_launch(cuda_stream stream, cuda_function function);
cuda_stream driver_stream(void);

/* The same by so many blocks of 1024 threads: enough of them and nothing else is run meanwhile. */
void driver_spin_wide(cuda_stream stream, uint64_t ns, cuda_memory memory, size_t index,
                      unsigned blocks);

/* A function that older drivers lack; NULL then. */
void *driver_function(const char *name);

/* ---- NCCL ---- */

/* As far as the tests on a GPU use it: opened while the program runs, with one communicator for
 * each GPU of this process. */

enum { GPUS_MOST = 16, FLOAT32 = 7, SUM = 0 };

typedef void *communicator;

typedef struct nccl_functions {
    int (*init_all)(communicator *comms, int devices, const int *list);
    int (*destroy)(communicator comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *, size_t, int, int, communicator, cuda_stream);
    int (*receive)(void *, size_t, int, int, communicator, cuda_stream);
    int (*all_reduce)(const void *, void *, size_t, int, int, communicator, cuda_stream);
} nccl_functions;

typedef struct one_gpu {
    cuda_context context;
    cuda_stream stream;
    cuda_memory from, to;
    communicator nccl;
    pk_comm *comm;
} one_gpu;

extern nccl_functions nccl;
extern one_gpu gpus[GPUS_MOST];
extern int ranks;

void nccl_open(void); /* skips the test if there is none */

/* Streams, memory and communicators; what fails there ends the program. */
void nccl_make(int devices, size_t bytes);
void nccl_destroy(void);
void nccl_synchronize(void);
void nccl_must(int result, const char *what);

/* A group, told to perfkit. */
void nccl_group_begins(void);
void nccl_group_ends(void);

static inline void *nccl_pointer(cuda_memory memory)
{
    return (void *)(uintptr_t)memory;
}

/* ---- the tests ---- */

/* Each as a program's main: argv[0] is its name. */
int test_status(int argc, char **argv);
int test_threads(int argc, char **argv);
int test_pairs(int argc, char **argv);
int test_capture(int argc, char **argv);
int test_graphs(int argc, char **argv);
int test_kernels(int argc, char **argv);
int test_memory(int argc, char **argv);
int test_deep(int argc, char **argv);
int test_verdicts(int argc, char **argv);
int test_cost(int argc, char **argv);
int test_overlap(int argc, char **argv);
int test_gemm(int argc, char **argv);
int test_storm(int argc, char **argv);
int test_modules(int argc, char **argv);
int test_processes(int argc, char **argv);
int test_idle(int argc, char **argv);
int test_launch(int argc, char **argv);
int test_bench(int argc, char **argv);
int test_anchors(int argc, char **argv);
int test_clocks(int argc, char **argv);
int test_faults(int argc, char **argv);
int test_holder(int argc, char **argv);
int test_nccl(int argc, char **argv);
int test_sweep(int argc, char **argv);
int test_train(int argc, char **argv);

#endif
