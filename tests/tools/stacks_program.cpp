// Functions whose shares of the time outside regions are known: heavy has three parts, light one.
// See stacks.py.
//
//     stacks_program MODE        plain; fork: the child, too; slow: one step in a hundred is slow
//     in hot, inlined in heavy; jit: the same, called by code that is made while it runs, and is
//     in a map of perf's; stacks_program LIBRARY     heavy's part is the library's

#include <pk/pk.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile double sink;
static pk_region region = PK_REGION_OF(PK_COMPUTE, "work");

namespace shares
{

constexpr uint64_t ROUNDS = 4000000;

__attribute__((always_inline)) inline double hot(uint64_t rounds)
{
    double x = 1;
    for (uint64_t i = 0; i < rounds; i++)
        x = x * 1.0000001 + 0.3;
    return x;
}

struct worker {
    __attribute__((noinline)) static void heavy(uint64_t parts)
    {
        for (uint64_t i = 0; i < parts; i++)
            sink = sink + hot(ROUNDS);
    }

    __attribute__((noinline)) static void light()
    {
        double x = 1;
        for (uint64_t i = 0; i < ROUNDS; i++)
            x = x * 0.9999999 + 0.7;
        sink = sink + x;
    }
};

using function = void (*)(uint64_t);

__attribute__((noinline)) void run(function heavy, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        heavy(3);
        worker::light();
        pk_region_begin(&region);
        worker::light();
        pk_region_end(&region);
    }
    sink = sink + 1;
}

__attribute__((noinline)) void slow_step(unsigned parts)
{
    worker::heavy(parts);
    sink = sink + 1;
}

} // namespace shares

// Calls what it is given, with a frame pointer.
#if defined __x86_64__
static const unsigned char made[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#elif defined __aarch64__
static const uint32_t made[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#else
static const unsigned char made[] = {0};
#endif

static void call_slow()
{
    shares::slow_step(24);
}

static void (*caller)(void (*)()) = [](void (*function)()) { function(); };

static bool make_caller()
{
    void *at =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];
    std::snprintf(path, sizeof path, "/tmp/perf-%d.map", static_cast<int>(getpid()));
    std::FILE *map = std::fopen(path, "w");
    if (sizeof made == 1 || at == MAP_FAILED || !map)
        return false;
    std::memcpy(at, made, sizeof made);
    std::memcpy(&caller, &at, sizeof at);
    std::fprintf(map, "%lx %zx made::while_it_ran(int)\n", reinterpret_cast<unsigned long>(at),
                 sizeof made);
    return std::fclose(map) == 0;
}

static int steps()
{
    for (unsigned i = 0; i < 60; i++) {
        pk_region_begin(&region);
        shares::worker::light();
        if (i == 50)
            caller(call_slow);
        pk_region_end(&region);
        pk_step(1);
    }
    return pk_stop() != PK_OK;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "plain";
    shares::function heavy = shares::worker::heavy;
    if (std::strcmp(mode, "fork") == 0) {
        int status = 1;
        if (pk_start(nullptr) != PK_OK)
            return 1;
        shares::run(heavy, 4);
        pid_t child = fork();
        if (child > 0)
            waitpid(child, &status, 0);
        if (child != 0)
            return pk_stop() != PK_OK || status;
    }
    if (pk_start(nullptr) != PK_OK)
        return 1;
    if (std::strcmp(mode, "slow") == 0 || (std::strcmp(mode, "jit") == 0 && make_caller()))
        return steps();
    if (std::strchr(mode, '/')) {
        shares::run(heavy, 1); // so that which files there are is known before
        void *library = dlopen(mode, RTLD_NOW);
        void *at = library ? dlsym(library, "loaded_heavy") : nullptr;
        if (!at)
            return 1;
        std::memcpy(&heavy, &at, sizeof heavy);
    }
    shares::run(heavy, 30);
    return pk_stop() != PK_OK;
}
