// Functions whose shares of the time outside regions are known: heavy has three parts, light one.
// See stacks.py.
//
//     stacks_program MODE        plain; fork: the child, too; slow: one step in a hundred is slow
//     in hot, inlined in heavy; stacks_program LIBRARY     heavy's part is the library's

#include <pk/pk.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
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

static int steps()
{
    for (unsigned i = 0; i < 60; i++) {
        pk_region_begin(&region);
        shares::worker::light();
        if (i == 50)
            shares::slow_step(24);
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
    if (std::strcmp(mode, "slow") == 0)
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
