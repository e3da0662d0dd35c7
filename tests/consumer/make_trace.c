/* make_trace PATH [pause|kill|drain|die] - a trace with everything in it, for those that read them.
 *
 * Prints two lines of JSON: what the trace has to show after the flush in the middle of the run,
 * and at its end. With "pause" it waits for a line of input behind the first. With "kill" it kills
 * itself in place of pk_stop, with "drain" it flushes before, with "die" it begins a region.
 */
#include <pk/pk.h>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scenes.h"
#include "tally.h"

static PLACE(training, PK_OTHER, "training", "training");
static PLACE(epilogue, PK_IO, "epilogue", "epilogue");
static PLACE(save, PK_IO, "save", "save");
static PLACE(last, PK_OTHER, "last", "last");
static PLACE(load, PK_DATA, "load", "load");
static PLACE(prefetch, PK_DATA, "prefetch", "prefetch");
static PLACE(forward, PK_COMPUTE, "forward", "forward");
static PLACE(backward, PK_COMPUTE, "backward", "backward");
static PLACE(update, PK_COMPUTE, "update", "update");
static pk_counter loss = PK_COUNTER("loss", "");
static unsigned steps;

/* On a clock that advances in steps a region may last no time at all; viewers cannot tell whether
 * such a slice lies in front of the one that begins at its end, or within it. */
static void last_a_while(void)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec == from.tv_sec && now.tv_nsec - from.tv_nsec < 100);
}

static void next(place *from, place *to)
{
    last_a_while();
    pk_region_next(&from->region, &to->region);
    tally_shut();
    tally_open(to->shown);
}

/* The prefetch of a step ends in the next one. */
static void make_step(bool first)
{
    static const uint64_t items[] = {32, 0, 1, INT64_MAX, UINT64_MAX};
    if (!first)
        place_shut(&prefetch);
    place_open(&load);
    next(&load, &forward);
    next(&forward, &backward);
    next(&backward, &update);
    place_shut(&update);
    pk_counter_set(&loss, 1.0 / (1 + steps));
    tally_value("loss value", 1.0 / (1 + steps));
    place_open(&prefetch);
    pk_step(items[steps]);
    tally_step(steps, (double)items[steps]);
    steps++;
}

static void make_steps(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        make_step(i == 0);
    place_shut(&prefetch);
}

/* ---- threads that come and go, and one that stays ---- */

static void *run_scenes(void *number)
{
    scenes_of_thread(*(const int *)number);
    return NULL;
}

static void run_threads(void)
{
    static const int numbers[SCENE_THREADS] = {0, 1, 2};
    pthread_t threads[SCENE_THREADS];
    for (int i = 0; i < SCENE_THREADS; i++)
        if (pthread_create(&threads[i], NULL, run_scenes, (void *)(uintptr_t)&numbers[i]))
            abort();
    for (int i = 0; i < SCENE_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static sem_t waiting, enough;

static void *wait_inside(void *unused)
{
    scenes_of_waiter();
    sem_post(&waiting);
    sem_wait(&enough);
    return unused;
}

static void start_waiter(pthread_t *thread)
{
    sem_init(&waiting, 0, 0);
    sem_init(&enough, 0, 0);
    if (pthread_create(thread, NULL, wait_inside, NULL))
        abort();
    sem_wait(&waiting);
}

/* ---- the run ---- */

static void say(const char *what, pk_status status)
{
    if (status == PK_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, pk_error_message());
    exit(1);
}

static void first_half(void)
{
    place_open(&training);
    make_steps(3);
    run_threads();
    say("pk_flush", pk_flush());
    tally_print(stdout);
}

/* Ends long after what it is in has begun. */
static void save_for_a_while(void)
{
    place_open(&save);
    nanosleep(&(struct timespec){0, 2000000}, NULL);
    pk_region_add(&save.region, 1 << 20, 0);
    tally_argument(save.shown, "bytes", 1 << 20);
    place_shut(&save);
}

static void second_half(bool with_last)
{
    run_threads();
    make_steps(2);
    place_open(&epilogue);
    save_for_a_while();
    if (with_last) {
        place_open(&last);
        tally_leave_open();
    }
    tally_leave_open();
    tally_leave_open();
    scenes_left_open();
    tally_print(stdout);
}

/* All is in the trace but the one region that is too deep, in each half. */
static void check_counts(void)
{
    pk_counts counts = {.size = sizeof counts};
    say("pk_get_counts", pk_get_counts(&counts));
    if (counts.dropped == 2 && counts.too_deep == 2 && counts.points_dropped == 0 &&
        counts.not_finite == 2 && counts.unwritten == 0)
        return;
    fprintf(stderr, "dropped %llu, too deep %llu, points dropped %llu, unwritten %llu\n",
            (unsigned long long)counts.dropped, (unsigned long long)counts.too_deep,
            (unsigned long long)counts.points_dropped, (unsigned long long)counts.unwritten);
    exit(1);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[2] : "";
    pthread_t waiter;
    if (argc < 2)
        return 2;
    pthread_setname_np(pthread_self(), "main");
    tally_track("main");
    say("pk_start", pk_start(pk_options(.trace_path = argv[1])));
    start_waiter(&waiter);
    first_half();
    if (strcmp(mode, "pause") == 0)
        (void)getchar();
    second_half(strcmp(mode, "die") == 0);
    if (strcmp(mode, "drain") == 0)
        say("pk_flush", pk_flush());
    if (strcmp(mode, "kill") == 0 || strcmp(mode, "drain") == 0 || strcmp(mode, "die") == 0)
        raise(SIGKILL);
    say("pk_stop", pk_stop());
    sem_post(&enough);
    pthread_join(waiter, NULL);
    check_counts();
    return 0;
}
