/* guide.md's program has a model, a loader and somebody to reduce with. */
#include <pk/pk.h>
#include <time.h>

enum { steps = 1000 };
struct batch {
    unsigned samples;
};
static struct batch *batch;
static int loader, gradients;
static int rank, size = 1;
static size_t count = 1024;

static inline void spend(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static inline struct batch *next_batch(int from)
{
    static struct batch only = {32};
    spend(from + 700);
    return &only;
}

static inline void run_forward(const struct batch *one)
{
    spend(one ? 900 : 0);
}

static inline void all_reduce(int what)
{
    spend(what + 100);
}
