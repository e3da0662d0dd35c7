/* A program with a pool: it replaces new and delete(void *), and nothing else. */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsized-deallocation" // which is what this is about
#endif

static char pool[4096];
static std::size_t used, given, taken;

void *operator new(std::size_t size)
{
    void *block = pool + used;
    used += (size + 15) & ~std::size_t(15);
    given++;
    if (used > sizeof pool)
        std::abort();
    return block;
}

void operator delete(void *) noexcept
{
    taken++;
}

int main()
{
    for (int i = 0; i < 10; i++) {
        int *volatile one = new int(i), *volatile many = new int[3];
#ifdef __cpp_sized_deallocation
        ::operator delete(one, sizeof(int)); // the C++ library's, which calls ours
#else
        delete one;
#endif
        delete[] many;
        int *volatile quiet = new (std::nothrow) int(1);
        delete quiet;
    }
    std::printf("%zu of %zu\n", taken, given);
    return given == 30 && taken == 30 ? 0 : 1;
}
