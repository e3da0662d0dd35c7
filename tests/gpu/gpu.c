/* What the tests on a GPU share, and the program that they are: gpu-tests NAME [ARGUMENT]. */
#include "gpu.h"

#include <pk/nccl.h>
#include <pk/pk.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- figures, checks, sessions and traces ---- */

static int failures;

void gpu_skip(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("skipped: ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    exit(failures ? 1 : 77); /* what has failed by then is no reason to skip */
}

/* One write of a whole line, so that several programs may append, and a kill leaves no half of it.
 */
static void append(const char *key, const char *text)
{
    const char *path = getenv("PK_GPU_FIGURES");
    FILE *file = path && *path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s\t%s\n", key, text);
    fclose(file);
}

void gpu_figure(const char *key, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    printf("  %-28s %s\n", key, text);
    fflush(stdout);
    append(key, text);
}

static void say_wrong(const char *what, const char *file, int line, const char *format,
                      va_list list)
{
    char details[256], text[512];
    const char *name = strrchr(file, '/');
    vsnprintf(details, sizeof details, format, list);
    snprintf(text, sizeof text, "%s:%d: not so: %s: %s", name ? name + 1 : file, line, what,
             details);
    printf("%s\n", text);
    fflush(stdout);
    append("wrong", text);
}

bool gpu_checked(bool so, const char *what, const char *file, int line, const char *format, ...)
{
    va_list list;
    if (so)
        return true;
    va_start(list, format);
    say_wrong(what, file, line, format, list);
    va_end(list);
    failures++;
    return false;
}

bool gpu_measured(bool so, const char *what, const char *file, int line, const char *format, ...)
{
    va_list list;
    if (so)
        return true;
    va_start(list, format);
    say_wrong(what, file, line, format, list);
    va_end(list);
    failures += getenv("PK_GPU_MOCK") == NULL;
    return false;
}

int gpu_result(void)
{
    return failures ? 1 : 0;
}

const char *gpu_start(const char *backends)
{
    static char path[512];
    static unsigned sessions;
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/pk-gpu-%d-%u.json", folder ? folder : "/tmp", (int)getpid(),
             sessions++);
    if (pk_start(pk_options(.trace_path = path, .backends = backends)) != PK_OK) {
        printf("pk_start: %s\n", pk_error_message());
        exit(1);
    }
    return path;
}

const char *gpu_reason(const char *backend)
{
    static pk_backend_info info;
    info.size = sizeof info;
    return pk_backend_status(backend, &info) == PK_OK ? info.reason : "no such backend";
}

void gpu_need(const char *backend)
{
    pk_backend_info info = {.size = sizeof info};
    if (pk_backend_status(backend, &info) != PK_OK || !info.live)
        gpu_skip("%s is off: %s", backend, info.reason);
}

uint64_t gpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void gpu_sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* -- numbers -- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double gpu_quantile(double *values, size_t count, double q)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, ascending);
    size_t i = (size_t)ceil(q * (double)count);
    return values[i > 0 ? i - 1 : 0];
}

/* Slopes between points half the distance apart: as good as between all, and few enough. */
gpu_line gpu_fit(const double *x, const double *y, size_t count)
{
    size_t half = count / 2;
    gpu_line line = {1, 0, count ? x[0] : 0};
    double *scratch = calloc(count + 1, sizeof *scratch);
    if (!scratch)
        abort();
    for (size_t i = 0; i < half; i++)
        scratch[i] = (y[i + half] - y[i]) / (x[i + half] - x[i]);
    if (half)
        line.slope = gpu_median(scratch, half);
    for (size_t i = 0; i < count; i++)
        scratch[i] = y[i] - line.slope * (x[i] - line.x0);
    if (count)
        line.offset = gpu_median(scratch, count);
    free(scratch);
    return line;
}

/* -- traces -- */

/* What follows "key": in the line; NULL if it is not there. perfkit writes one event per line, and
 * escapes quotes in names. */
static const char *field(const char *line, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(line, quoted);
    return at ? at + strlen(quoted) : NULL;
}

static double number(const char *line, const char *key)
{
    const char *at = field(line, key);
    return at ? strtod(at, NULL) : 0;
}

static void text(const char *line, const char *key, char *to, size_t size)
{
    const char *at = field(line, key);
    size_t n = at && *at == '"' ? strcspn(at + 1, "\"") : 0;
    snprintf(to, size, "%.*s", (int)n, n ? at + 1 : "");
}

/* "12.345" microseconds, exactly. */
static double ns_of(const char *line, const char *key)
{
    return round(number(line, key) * 1e3);
}

static void read_event(gpu_event *e, const char *line)
{
    text(line, "name", e->name, sizeof e->name);
    text(line, "cat", e->category, sizeof e->category);
    text(line, "region", e->region, sizeof e->region);
    e->start = ns_of(line, "ts");
    e->end = e->start + ns_of(line, "dur");
    e->uncertainty = number(line, "uncertainty_ns");
    const char *correlation = field(line, "correlation");
    e->correlation = correlation ? strtoull(correlation, NULL, 10) : 0;
    e->pid = (uint64_t)number(line, "pid");
    e->tid = (uint64_t)number(line, "tid");
}

static void add(gpu_trace *t, size_t *room, const char *line)
{
    if (t->count == *room) {
        *room = *room ? 2 * *room : 1024;
        t->events = realloc(t->events, *room * sizeof *t->events);
        if (!t->events)
            abort();
    }
    read_event(&t->events[t->count++], line);
}

size_t gpu_count_lines(const char *path, const char *containing)
{
    size_t count = 0, size = 0;
    char *line = NULL;
    FILE *file = fopen(path, "r");
    while (file && getline(&line, &size, file) > 0)
        count += strstr(line, containing) != NULL;
    free(line);
    if (file)
        fclose(file);
    return count;
}

gpu_trace gpu_read_trace(const char *path)
{
    gpu_trace trace = {.events = NULL};
    size_t room = 0, size = 0;
    char *line = NULL;
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s cannot be read\n", path);
        exit(1);
    }
    while (getline(&line, &size, file) > 0) {
        if (strncmp(line, "{\"ph\":\"X\"", 9) == 0)
            add(&trace, &room, line);
        else if (field(line, "base_monotonic_ns"))
            trace.base_monotonic = number(line, "base_monotonic_ns");
    }
    free(line);
    fclose(file);
    return trace;
}

bool gpu_is(const gpu_event *e, const char *category, const char *name)
{
    return (!category || strcmp(e->category, category) == 0) &&
           (!name || strcmp(e->name, name) == 0);
}

size_t gpu_count(const gpu_trace *t, const char *category, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        count += gpu_is(&t->events[i], category, name);
    return count;
}

/* ---- reports and what else a session leaves ---- */

char *gpu_read(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    bool read = file && getdelim(&text, &room, 0, file) > 0;
    if (file)
        fclose(file);
    gpu_check(read, "%s cannot be read", path);
    return read ? text : NULL;
}

double gpu_number(const char *text, ...)
{
    va_list keys;
    va_start(keys, text);
    for (const char *key; text && (key = va_arg(keys, const char *)) != NULL;)
        text = field(text, key);
    va_end(keys);
    return text && strchr("-0123456789", *text) ? strtod(text, NULL) : NAN;
}

bool gpu_has_verdict(const char *report, const char *name)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"name\":\"%s\",\"severity\"", name);
    return strstr(report, quoted);
}

bool gpu_is_closed(const char *path)
{
    char end[16] = "";
    FILE *file = fopen(path, "r");
    size_t n = file && fseek(file, -8, SEEK_END) == 0 ? fread(end, 1, 8, file) : 0;
    if (file)
        fclose(file);
    while (n > 0 && end[n - 1] == '\n')
        n--;
    return n > 0 && end[n - 1] == '}';
}

const char *gpu_path(const char *name)
{
    static char path[512];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/pk-gpu-%d.%s", folder ? folder : "/tmp", (int)getpid(), name);
    return path;
}

pid_t gpu_begin_anew(const char *test, const char *scenario, unsigned seconds)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(seconds);
        execl("/proc/self/exe", "gpu-tests", test, scenario, (char *)NULL);
        _exit(127);
    }
    return child;
}

int gpu_await(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int gpu_anew(const char *test, const char *scenario, unsigned seconds)
{
    return gpu_await(gpu_begin_anew(test, scenario, seconds));
}

double gpu_seconds(double usual, double on_mock)
{
    return getenv("PK_GPU_MOCK") ? on_mock : usual;
}

/* ---- the driver ---- */

driver cu;
kernels the_kernels;
static void *the_library;

static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry spin(.param .u64 ns, .param .u64 to)\n"
                          "{\n"
                          "    .reg .pred %p;\n"
                          "    .reg .u64 %ns, %to, %g0, %g1, %c0, %c1, %d;\n"
                          "    ld.param.u64 %ns, [ns];\n"
                          "    ld.param.u64 %to, [to];\n"
                          "    cvta.to.global.u64 %to, %to;\n"
                          "    mov.u64 %c0, %clock64;\n"
                          "    mov.u64 %g0, %globaltimer;\n"
                          "again:\n"
                          "    mov.u64 %g1, %globaltimer;\n"
                          "    sub.u64 %d, %g1, %g0;\n"
                          "    setp.lt.u64 %p, %d, %ns;\n"
                          "    @%p bra again;\n"
                          "    mov.u64 %c1, %clock64;\n"
                          "    st.global.u64 [%to], %g0;\n"
                          "    st.global.u64 [%to+8], %g1;\n"
                          "    st.global.u64 [%to+16], %c0;\n"
                          "    st.global.u64 [%to+24], %c1;\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry empty()\n"
                          "{\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry stray()\n"
                          "{\n"
                          "    .reg .u64 %a;\n"
                          "    mov.u64 %a, 8;\n"
                          "    st.global.u64 [%a], %a;\n"
                          "    ret;\n"
                          "}\n";

const char *driver_error(int code)
{
    const char *name = NULL;
    if (cu.cuda_error_name && cu.cuda_error_name(code, &name) == CUDA_OK && name)
        return name;
    return "an error without a name";
}

void driver_must(int code, const char *call, const char *file, int line)
{
    if (code == CUDA_OK)
        return;
    printf("%s:%d: %s: %d %s\n", file, line, call, code, driver_error(code));
    exit(1);
}

void driver_load(void)
{
#define CUDA_BIND(name, symbol, parameters) {symbol, offsetof(driver, cuda_##name)},
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {CUDA_FUNCTIONS(CUDA_BIND)};
#undef CUDA_BIND
    const char *named = getenv("PK_CUDA_LIBRARY");
    void *library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW);
    int devices = 0;
    if (!library)
        gpu_skip("no GPU: %s", dlerror());
    the_library = library;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            gpu_skip("the driver is too old: it has no %s", functions[i].name);
        memcpy((char *)&cu + functions[i].offset, &function, sizeof function);
    }
    int code = cu.cuda_init(0);
    if (code == CUDA_OK)
        code = cu.cuda_device_count(&devices);
    if (code != CUDA_OK)
        gpu_skip("no GPU: cuInit, cuDeviceGetCount: %d %s", code, driver_error(code));
    if (devices == 0)
        gpu_skip("no GPU: the driver sees none");
}

void driver_open(void)
{
    cuda_context context;
    driver_load();
    must(cu.cuda_retain(&context, 0));
    must(cu.cuda_set_current(context));
}

void driver_load_kernels(void)
{
    cuda_module module;
    must(cu.cuda_module_load(&module, ptx));
    must(cu.cuda_module_function(&the_kernels.spin, module, "spin"));
    must(cu.cuda_module_function(&the_kernels.empty, module, "empty"));
    must(cu.cuda_module_function(&the_kernels.stray, module, "stray"));
}

void driver_load_again(void)
{
    cuda_module module;
    must(cu.cuda_module_load(&module, ptx));
}

cuda_stream driver_stream(void)
{
    cuda_stream stream;
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    return stream;
}

static void spin(cuda_stream stream, uint64_t ns, cuda_memory to, unsigned blocks, unsigned threads)
{
    void *arguments[] = {&ns, &to};
    must(cu.cuda_launch(the_kernels.spin, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
}

void driver_spin(cuda_stream stream, uint64_t ns, cuda_memory memory, size_t index)
{
    spin(stream, ns, memory + index * sizeof(spun), 1, 1);
}

void driver_spin_wide(cuda_stream stream, uint64_t ns, cuda_memory memory, size_t index,
                      unsigned blocks)
{
    spin(stream, ns, memory + index * sizeof(spun), blocks, 1024);
}

void *driver_function(const char *name)
{
    return dlsym(the_library, name);
}

void driver_launch(cuda_stream stream, cuda_function function)
{
    must(cu.cuda_launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

/* ---- NCCL ---- */

nccl_functions nccl;
one_gpu gpus[GPUS_MOST];
int ranks;

static void bind(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    if (!address)
        gpu_skip("NCCL has no %s", name);
    memcpy(function, &address, sizeof address);
}

void nccl_open(void)
{
    const char *named = getenv("PK_NCCL_LIBRARY");
    void *library = dlopen(named && *named ? named : "libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        gpu_skip("there is no libnccl.so.2 (PK_NCCL_LIBRARY names one)");
    bind(library, "ncclCommInitAll", &nccl.init_all);
    bind(library, "ncclCommDestroy", &nccl.destroy);
    bind(library, "ncclGroupStart", &nccl.group_start);
    bind(library, "ncclGroupEnd", &nccl.group_end);
    bind(library, "ncclSend", &nccl.send);
    bind(library, "ncclRecv", &nccl.receive);
    bind(library, "ncclAllReduce", &nccl.all_reduce);
}

void nccl_must(int result, const char *what)
{
    if (!gpu_check(result == 0, "%s: NCCL's error %d", what, result))
        exit(gpu_result());
}

void nccl_make(int devices, size_t bytes)
{
    communicator comms[GPUS_MOST];
    int list[GPUS_MOST];
    ranks = devices < GPUS_MOST ? devices : GPUS_MOST;
    for (int i = 0; i < ranks; i++) {
        list[i] = i;
        must(cu.cuda_retain(&gpus[i].context, i));
        must(cu.cuda_set_current(gpus[i].context));
        must(cu.cuda_stream_create(&gpus[i].stream, CUDA_NON_BLOCKING));
        must(cu.cuda_memory(&gpus[i].from, bytes));
        must(cu.cuda_memory(&gpus[i].to, bytes));
    }
    nccl_must(nccl.init_all(comms, ranks, list), "ncclCommInitAll");
    for (int i = 0; i < ranks; i++) {
        gpus[i].nccl = comms[i];
        gpus[i].comm = pk_comm_create("NCCL", "all GPUs", 0, i, ranks);
    }
}

void nccl_destroy(void)
{
    for (int i = 0; i < ranks; i++) {
        nccl_must(nccl.destroy(gpus[i].nccl), "ncclCommDestroy");
        pk_comm_destroy(gpus[i].comm);
    }
}

void nccl_synchronize(void)
{
    for (int i = 0; i < ranks; i++) {
        must(cu.cuda_set_current(gpus[i].context));
        must(cu.cuda_stream_synchronize(gpus[i].stream));
    }
}

void nccl_group_begins(void)
{
    pk_nccl_group_start();
    nccl_must(nccl.group_start(), "ncclGroupStart");
}

void nccl_group_ends(void)
{
    pk_nccl_group_launch();
    int result = nccl.group_end();
    pk_nccl_group_end(result);
    nccl_must(result, "ncclGroupEnd");
}

/* ---- the program ---- */

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*test)(int argc, char **argv);
    } tests[] = {
        {"deep", test_deep},       {"verdicts", test_verdicts},   {"cost", test_cost},
        {"overlap", test_overlap}, {"gemm", test_gemm},           {"storm", test_storm},
        {"modules", test_modules}, {"processes", test_processes}, {"status", test_status},
        {"threads", test_threads}, {"pairs", test_pairs},         {"capture", test_capture},
        {"graphs", test_graphs},   {"kernels", test_kernels},     {"memory", test_memory},
        {"idle", test_idle},       {"launch", test_launch},       {"bench", test_bench},
        {"anchors", test_anchors}, {"clocks", test_clocks},       {"faults", test_faults},
        {"holder", test_holder},   {"nccl", test_nccl},           {"sweep", test_sweep},
        {"train", test_train},
    };
    const char *name = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(name, tests[i].name) == 0)
            return tests[i].test(argc - 1, argv + 1);
    gpu_skip("no test is called '%s'", name);
}
