/* patient.c - a rank that waits lets the others have the processor.
 *
 * MPICH asks for messages in a loop that never yields, so where there are more ranks than
 * processors one waits for the end of another's time slice at each message: four ranks took ten
 * times the processor time. It asks by UCX, whose function is found in the program first; of a
 * build without UCX nobody calls it. Open MPI yields, if it is told to (launch.py), and asks again
 * at once: it sleeps once that has been in vain. */
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef OPEN_MPI

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int sched_yield(void)
{
    static _Thread_local unsigned in_vain;
    static _Thread_local long long last;
    in_vain = now_ns() - last < 20000 ? in_vain + 1 : 0; /* it has done nothing else since */
    int status = in_vain > 40 ? usleep(20) : (int)syscall(SYS_sched_yield);
    last = now_ns();
    return status;
}

#else

unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static _Thread_local unsigned (*theirs)(void *);
    static _Thread_local unsigned in_vain;
    if (!theirs)
        *(void **)&theirs = dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned done = theirs(worker);
    in_vain = done ? 0 : in_vain + 1;
    if (in_vain > 60)
        usleep(20);
    else if (in_vain > 20)
        sched_yield();
    return done;
}

#endif
