/* Ranks that are compared while they run: stragglers HOW. What a rank tells of its steps is a
 * script
 * ("late": rank 1 is for a while; "healthy"; "uneven": ranks end at different moments; "apart":
 * they come to MPI_Finalize up to 2 s apart; "silent": rank 1 has no steps; "abort": rank 1
 * aborts), or what perfkit records ("real": rank 1 sleeps longer). Rank 0 prints who is said to be
 * late, each time that it changes; the others, if they have heard something else than rank 0 at the
 * end.
 */
#include <pk/private.h>
#include <pk/pk.h>

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EVERY 10
#define MOST_SECONDS 120

static int rank, ranks;
static bool scripted = true, slow;
static uint64_t made, told; /* portions of steps */
static pk_job_word_ last;
static char shown[200];

/* ---- what libpk_mpi takes and leaves ---- */

static uint64_t about(uint64_t ns)
{
    uint64_t mixed = (told * 64 + (uint64_t)rank) * 0x9E3779B97F4A7C15u;
    return ns + (mixed >> 40) % (ns / 50); /* up to 2 % more */
}

static void put_stage(pk_job_stage_ *to, const char *name, pk_kind kind, uint64_t ns)
{
    snprintf(to->name, sizeof to->name, "%s", name);
    to->kind = (uint8_t)kind;
    to->self = ns;
}

uint32_t __real_pk_job_steps_take_(pk_job_steps_ *steps);
uint32_t __wrap_pk_job_steps_take_(pk_job_steps_ *steps);
uint32_t __wrap_pk_job_steps_take_(pk_job_steps_ *steps)
{
    if (!scripted)
        return __real_pk_job_steps_take_(steps);
    if (told == made)
        return 0;
    uint64_t load = about(30000000), work = about(60000000);
    load = slow ? load + load / 3 : load;
    *steps = (pk_job_steps_){.first = told * EVERY, .steps = EVERY, .time = 150000000};
    put_stage(&steps->stages[0], "load", PK_DATA, load);
    put_stage(&steps->stages[1], "work", PK_COMPUTE, work);
    put_stage(&steps->stages[2], "MPI_Allreduce", PK_COMM, 149000000 - load - work);
    told++;
    return 1;
}

static void show(const pk_job_word_ *word)
{
    char text[sizeof shown] = "late:";
    for (uint32_t i = 0; i < word->count && i < PK_JOB_LATE_; i++) {
        const char *in = strstr(word->late[i].text, " in ");
        snprintf(text + strlen(text), sizeof text - strlen(text), " %d%.8s", word->late[i].rank,
                 in ? in : "");
    }
    if (rank == 0 && strcmp(text, shown) != 0) {
        puts(text);
        fflush(stdout);
    }
    snprintf(shown, sizeof shown, "%s", text);
}

void __real_pk_job_say_(const pk_job_word_ *word, int32_t of);
void __wrap_pk_job_say_(const pk_job_word_ *word, int32_t of);
void __wrap_pk_job_say_(const pk_job_word_ *word, int32_t of)
{
    last = *word;
    show(word);
    __real_pk_job_say_(word, of);
}

/* ---- the program ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool all_of_them(bool here)
{
    int said = here, all = 0;
    MPI_Allreduce(&said, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

/* Steps until all ranks have heard of so many late ones. */
static bool go_on_until(uint32_t late)
{
    double until = seconds() + MOST_SECONDS;
    while (!all_of_them(last.last > 0 && last.count == late)) {
        made++;
        usleep(5000);
        if (!all_of_them(seconds() < until))
            return false;
    }
    return true;
}

static void late_for_a_while(void)
{
    slow = rank == 1;
    bool found = go_on_until(1);
    slow = false;
    if (!found || !go_on_until(0))
        printf("rank %d: nothing is said for %d s\n", rank, MOST_SECONDS);
}

static void healthy(uint64_t portions)
{
    double until = seconds() + MOST_SECONDS;
    while (!all_of_them(last.last / EVERY >= portions)) {
        made++;
        usleep(5000);
        if (!all_of_them(seconds() < until)) {
            printf("rank %d: it is not compared\n", rank);
            return;
        }
    }
}

/* No rank waits for another one, and what is told goes up to the end. */
static void uneven(void)
{
    int flag = 0;
    for (int i = 0; i < 40 * (1 + (rank + ranks - 1) % ranks); i++) {
        made += rank != 2;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_SELF);
        usleep(1000);
    }
}

/* Each amid an exchange that another one has left, or has never begun. */
static void apart(void)
{
    healthy(8);
    for (int i = 0; i < 5 * (rank * 3 % ranks); i++) {
        made++;
        MPI_Barrier(MPI_COMM_SELF);
        usleep(57000);
    }
}

static void silent(void)
{
    for (int i = 0; i < 100; i++) {
        made += rank != 1;
        all_of_them(true);
    }
}

static void abort_one(void)
{
    for (int i = 0; i < 50; i++) {
        made++;
        all_of_them(true);
    }
    if (rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    all_of_them(true);
    pause(); /* until the others' end is this one's */
}

static void real(void)
{
    static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");
    double until = seconds() + MOST_SECONDS;
    scripted = false;
    for (bool found = false; !found;) {
        pk_region_begin(&work);
        usleep(rank == 1 ? 4000 : 1000);
        pk_region_end(&work);
        found = all_of_them(last.count > 0 && (last.late[0].rank == 1 || last.count > 1));
        pk_step(1);
        if (!all_of_them(seconds() < until)) {
            printf("rank %d: nothing is said for %d s\n", rank, MOST_SECONDS);
            return;
        }
    }
}

/* Two threads call MPI at any time. */
static void *another_thread(void *comm)
{
    for (int i = 0; i < 100; i++) {
        MPI_Barrier(*(MPI_Comm *)comm);
        usleep(5000);
    }
    return NULL;
}

static void threads(void)
{
    MPI_Comm other;
    pthread_t thread;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    pthread_create(&thread, NULL, another_thread, &other);
    healthy(25);
    pthread_join(thread, NULL);
    MPI_Comm_free(&other);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "late";
    bool several = strcmp(how, "threads") == 0;
    int level = 0;
    MPI_Init_thread(&argc, &argv, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    if (several && level < MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 77);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (several)
        threads();
    else if (strcmp(how, "late") == 0)
        late_for_a_while();
    else if (strcmp(how, "healthy") == 0)
        healthy(40);
    else if (strcmp(how, "uneven") == 0)
        uneven();
    else if (strcmp(how, "apart") == 0)
        apart();
    else if (strcmp(how, "silent") == 0)
        silent();
    else if (strcmp(how, "abort") == 0)
        abort_one();
    else
        real();
    if (rank == 0)
        puts("ends");
    MPI_Finalize();
    return 0;
}
