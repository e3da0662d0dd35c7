/* machine_stream MIB THREADS - the triad as STREAM defines it, as any compiler makes it: a[i] =
 * b[i] + 3 c[i] over three arrays of so many MiB each, 24 bytes an element, the best of 10 rounds
 * without the first. Prints bytes per second. What `pk machine` is compared with, so it uses
 * nothing of it.
 *
 * The arrays are OFFSET apart, which STREAM has as a parameter for the same reason: a size that is
 * a power of two puts the three that a loop goes through at the same place of their pages and
 * banks, and costs a fifth. Each thread stays on a processor, as with OMP_PROC_BIND. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 16
#define THREADS_MOST 1024u
#define OFFSET 256u /* doubles */

typedef struct part {
    double *a, *b, *c;
    size_t count;
    unsigned number;
} part;

static pthread_barrier_t barrier;
static double seconds[ROUNDS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void triad(double *restrict a, const double *restrict b, const double *restrict c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + 3.0 * c[i];
}

/* On the processor of that number among those that it may use. */
static void stay(unsigned number)
{
    cpu_set_t may, one;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return;
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &may) && number-- == 0)
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one); /* refused if it is empty */
}

static void *serve(void *arg)
{
    const part *p = arg;
    stay(p->number);
    for (size_t i = 0; i < p->count; i++) {
        p->a[i] = 1;
        p->b[i] = 2;
        p->c[i] = 0;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double begin = 0;
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            begin = now();
        triad(p->a, p->b, p->c, p->count);
        /* The thread that took the time waits for all, and takes it again. */
        pthread_barrier_wait(&barrier);
        if (begin > 0)
            seconds[round] = now() - begin;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 128;
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    size_t count = (mib << 20) / sizeof(double);
    size_t apart = count + OFFSET;
    double *all = malloc(3 * apart * sizeof *all), best = 1e9;
    static part parts[THREADS_MOST];
    static pthread_t ids[THREADS_MOST];
    if (!all || threads < 1 || threads > THREADS_MOST)
        return 1;
    pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        size_t each = count / threads;
        double *first = all + i * each;
        parts[i] = (part){first, first + apart, first + 2 * apart, each, i};
        if (pthread_create(&ids[i], NULL, serve, &parts[i]) != 0)
            return 1;
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    for (int round = 1; round < ROUNDS; round++)
        if (seconds[round] > 0 && seconds[round] < best)
            best = seconds[round];
    printf("%.0f\n", (double)(count / threads * threads) * 24 / best);
    free(all);
    return 0;
}
