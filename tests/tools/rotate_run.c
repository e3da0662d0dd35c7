/* rotate_run.c STEPS - a program whose trace is cut into several files: a region around everything,
 * a second thread, so many steps of ten regions each. 0: until it is killed; it says when it has
 * begun. */
#include <pk/pk.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pk_region all = PK_REGION("all"), work = PK_REGION_OF(PK_COMPUTE, "work");
static pk_region aside = PK_REGION_OF(PK_IO, "aside");
static pk_counter level = PK_COUNTER("level", "things");
static volatile int over;

static void *beside(void *unused)
{
    (void)unused;
    while (!over) {
        pk_region_begin(&aside);
        pk_region_end(&aside);
        usleep(2000);
    }
    return NULL;
}

static void one_step(long i)
{
    for (int n = 0; n < 10; n++) {
        pk_region_begin(&work);
        pk_region_end(&work);
    }
    pk_counter_set(&level, (double)(i % 10));
    pk_step(1);
}

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 0;
    pthread_t thread;
    if (pk_start(NULL) != PK_OK)
        return 1;
    alarm(300); /* should nobody kill it */
    if (pthread_create(&thread, NULL, beside, NULL) != 0)
        return 1;
    pk_region_begin(&all);
    puts("under way");
    fflush(stdout);
    for (long i = 0; !steps || i < steps; i++) {
        one_step(i);
        if (i % 500 == 499)
            pk_flush(); /* so that no ring is ever full, on whatever machine */
    }
    pk_region_end(&all);
    over = 1;
    pthread_join(thread, NULL);
    return pk_stop() == PK_OK ? 0 : 2;
}
