#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

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
