/* An OpenMP program whose teams are uneven by design, built where the test runs: run_omp TURNS */
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

int main(int argc, char **argv)
{
    omp_set_num_threads(2);
    for (int turns = argc > 1 ? atoi(argv[1]) : 0; turns > 0; turns--) {
        smooth();
        uneven();
    }
    printf("%.3f\n", cells[7]);
    return 0;
}
