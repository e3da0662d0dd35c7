/* A library in C++ for a program in C: it brings the C++ library with it. Its constructors run
 * while the loader has its lock, and wait for a thread that asks for memory, and for more than
 * there is. */
#include <cstddef>
#include <cstdint>
#include <new>

#include <pthread.h>

static unsigned handled;
static bool right;

static void handle()
{
    if (++handled == 2)
        std::set_new_handler(nullptr);
}

static bool is_refused(void (*ask)())
{
    handled = 0;
    std::set_new_handler(handle);
    try {
        ask();
    } catch (const std::bad_alloc &) {
        return handled == 2;
    }
    return false;
}

struct alignas(128) wide {
    char bytes[128];
};

static char *volatile kept;
static volatile std::size_t much = SIZE_MAX / 2 - 1000;

static void *ask(void *)
{
    kept = new char[500];
    int *volatile one = new int(1);
    wide *volatile other = new wide;
    right = reinterpret_cast<std::uintptr_t>(other) % 128 == 0;
    delete one;
    delete other;
    delete[] kept;
    right = right && is_refused([] { kept = new char[much]; });
    right = right && is_refused([] { kept = static_cast<char *>(::operator new(much)); });
    right = right && new (std::nothrow) char[much] == nullptr;
    kept = new char[500];
    return nullptr;
}

static struct at_load {
    at_load()
    {
        pthread_t thread;
        pthread_create(&thread, nullptr, ask, nullptr);
        pthread_join(thread, nullptr);
    }
} at_load;

extern "C" {
int plugin_is_right();
void plugin_gives_back();

int plugin_is_right()
{
    return right;
}

void plugin_gives_back()
{
    delete[] kept;
    kept = nullptr;
}
}
