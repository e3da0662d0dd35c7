/* An OpenMP program whose teams are uneven by design, built where the test runs: run_omp TURNS.
 * -DKINDS: before that, every kind of loop once, inside and outside of a team. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static double cells[1024];

__attribute__((noinline)) static void smooth(void)
{
#pragma omp parallel for
    for (int i = 0; i < 1024; i++)
        cells[i] = cells[i] * 0.5 + i;
}

__attribute__((noinline)) static void uneven(void)
{
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < 1024; i++)
            cells[i] += 1;
#pragma omp barrier
        if (omp_get_thread_num() == 1)
            usleep(2000);
    }
}

#ifdef KINDS
static void kinds(void)
{
    long sum = 0;
#pragma omp parallel for schedule(dynamic, 8) reduction(+ : sum)
    for (int i = 0; i < 1000; i++)
        sum += i;
#pragma omp parallel for schedule(monotonic : dynamic, 8) reduction(+ : sum)
    for (int i = 0; i < 1000; i++)
        sum += i;
#pragma omp parallel for schedule(guided) reduction(+ : sum)
    for (int i = 0; i < 1000; i++)
        sum += i;
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
    for (int i = 0; i < 1000; i++)
        sum += i;
#pragma omp parallel sections reduction(+ : sum)
    {
#pragma omp section
        sum += 1;
#pragma omp section
        sum += 2;
    }
#pragma omp parallel reduction(+ : sum)
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 1000; i++)
            sum += i;
#pragma omp sections
        {
#pragma omp section
            sum += 3;
        }
    }
#pragma omp parallel num_threads(3) reduction(+ : sum)
#pragma omp parallel for num_threads(2) reduction(+ : sum)
    for (int i = 0; i < 10; i++)
        sum += i;
#pragma omp barrier
    printf("%ld\n", sum);
}
#else
static void kinds(void) {}
#endif

int main(int argc, char **argv)
{
    kinds();
    omp_set_num_threads(2);
    for (int turns = argc > 1 ? atoi(argv[1]) : 0; turns > 0; turns--) {
        smooth();
        uneven();
    }
    printf("%.3f\n", cells[7]);
    return 0;
}
