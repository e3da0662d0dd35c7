/* threads.c - regions from several threads: names for the threads, one distribution for all of
 * them, and a counter that they share.
 *
 *     cc threads.c $(pkg-config --cflags --libs pk) -o threads && ./threads
 */
#include <inttypes.h>
#include <pk/pk.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, TASKS = 200 };

/* A region may be open on many threads at once: each has its own stack of open regions, its own
 * buffer and its own statistics, which are added up when somebody asks. Nothing is shared while
 * recording. */
static pk_region task = PK_REGION_OF(PK_COMPUTE, "task");
static pk_region wait_for_task = PK_REGION_OF(PK_WAIT, "wait for a task");
static pk_counter tasks_left = PK_COUNTER("tasks left", "tasks");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int left = TASKS;
static _Thread_local volatile double sink;

static int take_task(void)
{
    PK_REGION_SCOPE(wait_for_task);
    int number = -1;
    pthread_mutex_lock(&lock);
    if (left > 0) {
        number = --left;
        pk_counter_set(&tasks_left, left);
    }
    pthread_mutex_unlock(&lock);
    return number;
}

static void *work(void *name)
{
    pk_thread_set_name(name); /* in the trace and the report; copied */
    for (int number; (number = take_task()) >= 0;) {
        PK_REGION_SCOPE(task);
        double sum = 0;
        for (int i = 1; i < 200000; i++)
            sum += 1.0 / (i + number);
        sink = sum;
    }
    return NULL;
}

/* How many it began. */
static int run_threads(void)
{
    static char *const names[THREADS] = {"red", "green", "blue", "grey"};
    pthread_t threads[THREADS];
    int begun = 0;
    while (begun < THREADS && pthread_create(&threads[begun], NULL, work, names[begun]) == 0)
        begun++;
    for (int i = 0; i < begun; i++)
        pthread_join(threads[i], NULL);
    return begun;
}

int main(void)
{
    pk_stats stats;
    if (pk_start(pk_options(.trace_path = "threads.json", .report_path = "-",
                            .tuning = "report_threads=1")))
        fprintf(stderr, "perfkit: %s\n", pk_error_message());
    int threads = run_threads();
    pk_stop();

    /* Threads that have ended still count. */
    pk_region_stats(&task, &stats);
    printf("%d threads, %" PRIu64 " tasks, p99 %" PRIu64 " ns\n", threads, stats.count,
           pk_stats_quantile(&stats, 0.99));
    return 0;
}
