/* A library with operators of its own, all of them: where it is bound to them (-Bsymbolic), they
 * are its pool; else they are those of whoever comes first, all of them too. */
#include <cstddef>
#include <cstdlib>
#include <new>

alignas(16) static char pool[4096];
static std::size_t used;

static void *take(std::size_t size)
{
    void *block = pool + used;
    used += (size + 15) & ~std::size_t(15);
    if (used > sizeof pool)
        std::abort();
    return block;
}

static void give(void *block)
{
    if (block && (block < pool || block >= pool + sizeof pool))
        std::abort();
}

void *operator new(std::size_t size)
{
    return take(size);
}

void *operator new[](std::size_t size)
{
    return take(size);
}

void operator delete(void *block) noexcept
{
    give(block);
}

void operator delete[](void *block) noexcept
{
    give(block);
}

void operator delete(void *block, std::size_t) noexcept
{
    give(block);
}

void operator delete[](void *block, std::size_t) noexcept
{
    give(block);
}

extern "C" std::size_t pool_use();

extern "C" std::size_t pool_use()
{
    for (int i = 0; i < 10; i++) {
        int *volatile one = new int(i), *volatile many = new int[20];
        delete one;
        delete[] many;
    }
    return used;
}
