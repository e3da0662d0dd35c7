/* driver.h - as much of libcuda.so.1 as the tests on a GPU use, declared here in our own words: the
 * machine with the GPU may have a driver and no toolkit. Names and meanings are those of NVIDIA's
 * CUDA driver API reference; cuda_ plus the rest of the name.
 */
#ifndef TESTS_GPU_DRIVER_H
#define TESTS_GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

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

/* ---- kernels, in PTX for any GPU since Volta ---- */

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

/* Into the stream; the result goes to memory + index * sizeof(spun). */
void driver_spin(cuda_stream stream, uint64_t ns, cuda_memory memory, size_t index);
void driver_launch(cuda_stream stream, cuda_function function);

/* The same by so many blocks of 1024 threads: enough of them and nothing else is run meanwhile. */
void driver_spin_wide(cuda_stream stream, uint64_t ns, cuda_memory memory, size_t index,
                      unsigned blocks);

/* A function that older drivers lack; NULL then. */
void *driver_function(const char *name);

#endif
