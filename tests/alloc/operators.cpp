/* C++'s new and delete, of the C++ library, of the allocator beneath, and of the program: "own" as
 * its argument has it use a delete of its own, which no other may stand in for. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <dlfcn.h>

extern "C" {
#include "alloc/interface.h"
}

static const pki_alloc_interface *alloc;

static pki_alloc_sum now()
{
    pki_alloc_sum sum;
    alloc->sums(&sum, 1);
    return sum;
}

struct alignas(256) wide {
    char bytes[512];
};

template <class T> static void use(T *volatile block)
{
    (void)block;
}

static bool check(const char *what, void (*body)())
{
    pki_alloc_sum before = now();
    body();
    pki_alloc_sum after = now();
    uint64_t allocations = after.allocations - before.allocations,
             frees = after.frees - before.frees;
    uint64_t bytes = after.bytes - before.bytes;
    bool right =
        allocations == 1 && frees == 1 && bytes >= 100 && bytes == after.freed - before.freed;
    if (!right)
        std::printf("%s: %llu allocated, %llu bytes, %llu freed\n", what,
                    (unsigned long long)allocations, (unsigned long long)bytes,
                    (unsigned long long)frees);
    return right;
}

struct hundred {
    char bytes[100];
};

#define FORM(ask, give_back)                                                                       \
    check(#give_back, [] {                                                                         \
        void *block = ask;                                                                         \
        use(block);                                                                                \
        give_back;                                                                                 \
    })

/* Each delete there is, after the news that it may follow: of one and of many, with the size, the
 * alignment, without exceptions. */
static bool check_each_form()
{
    constexpr std::align_val_t by{64};
    bool right = FORM(::operator new(150), ::operator delete(block));
    right &= FORM(::operator new[](150), ::operator delete[](block));
    right &= FORM(::operator new(1500, std::nothrow), ::operator delete(block, std::nothrow));
    right &= FORM(::operator new[](1500, std::nothrow), ::operator delete[](block, std::nothrow));
    right &= FORM(::operator new(150, by), ::operator delete(block, by));
    right &= FORM(::operator new[](1500, by), ::operator delete[](block, by));
    right &=
        FORM(::operator new(150, by, std::nothrow), ::operator delete(block, by, std::nothrow));
    right &=
        FORM(::operator new[](150, by, std::nothrow), ::operator delete[](block, by, std::nothrow));
#ifdef __cpp_sized_deallocation
    right &= FORM(::operator new(150), ::operator delete(block, std::size_t(150)));
    right &= FORM(::operator new[](1500), ::operator delete[](block, std::size_t(1500)));
    right &= FORM(::operator new(1500, by), ::operator delete(block, std::size_t(1500), by));
    right &= FORM(::operator new[](150, by), ::operator delete[](block, std::size_t(150), by));
#endif
    return right;
}

int main()
{
    alloc = static_cast<const pki_alloc_interface *>(dlsym(RTLD_DEFAULT, PKI_ALLOC_SYMBOL));
    if (!alloc)
        return std::puts("libpk_alloc is not preloaded"), 77;
    bool right = check("new", [] {
        auto *p = new hundred;
        use(p);
        delete p;
    });
    right &= check("new[]", [] {
        auto *p = new char[200];
        use(p);
        delete[] p;
    });
    right &= check("nothrow", [] {
        auto *p = new (std::nothrow) hundred;
        use(p);
        delete p;
    });
    right &= check("aligned", [] {
        auto *p = new wide;
        use(p);
        if (reinterpret_cast<std::uintptr_t>(p) % 256)
            std::abort();
        delete p;
    });
    right &= check_each_form();
    try {
        volatile std::size_t much = SIZE_MAX / 2 - 100;
        use(new char[much]);
        right = false;
    } catch (const std::bad_alloc &) {
    }
    return right ? 0 : 1;
}
