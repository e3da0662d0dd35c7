// A program that was compiled with -finstrument-functions: run_functions TURNS [slow].
// With OWN it has the hooks itself.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#ifdef OWN
static int own;
extern "C" __attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *, void *)
{
    own++;
}
extern "C" __attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *, void *)
{
    own++;
}
#endif

namespace mesh
{
struct grid {
    int cells;
    __attribute__((noinline)) int relax(int i) { return cells += i; }
    __attribute__((noinline)) void check(int i)
    {
        if (i % 2)
            throw std::runtime_error("odd");
    }
};
} // namespace mesh

static int __attribute__((noinline)) solve(int depth)
{
    return depth ? solve(depth - 1) + 1 : 0;
}

static int __attribute__((noinline)) turn(mesh::grid &g, int i)
{
    int caught = 0;
    g.relax(i);
    try {
        g.check(i);
    } catch (const std::exception &) {
        caught = 1;
    }
    return solve(3) + caught;
}

int main(int argc, char **argv)
{
    int turns = argc > 1 ? std::atoi(argv[1]) : 10, sum = 0;
    mesh::grid g{0}, other{0};
    std::thread beside([&other] { other.relax(1); });
    for (int i = 0; i < turns; i++) {
        sum += turn(g, i);
        if (argc > 2) /* or it is no step: too short */
            std::this_thread::sleep_for(std::chrono::microseconds(30));
    }
    beside.join();
    std::printf("%d %d\n", sum, g.cells);
    return 0;
}
