/* patient.c - a rank of MPICH that waits lets the others have the processor.
 *
 * MPICH asks for messages in a loop that never yields, so where there are more ranks than
 * processors one waits for the end of another's time slice at each message: four ranks took ten
 * times the processor time. It asks by UCX, whose function is found in the program first; of a
 * build without UCX nobody calls it. */
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

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
