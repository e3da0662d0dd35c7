#include "bench/team.h"

#include "base/atomic.h"
#include "base/compiler.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#define SPINS 2000 /* before the processor is offered to others: there may be fewer of them */

typedef struct member {
    pki_bench_team *team;
    unsigned number;
    pthread_t thread;
} member;

struct pki_bench_team {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    uint64_t runs; /* begun so far */
    unsigned busy; /* not done with this one */
    bool over;
    uint32_t arrived PKI_ALIGNED;
    unsigned threads, started;
    void (*job)(void *arg, unsigned thread);
    void *arg;
    member members[];
};

/* The next run's number; 0: there is none. */
static uint64_t await_work(pki_bench_team *team, uint64_t last)
{
    pthread_mutex_lock(&team->lock);
    while (team->runs == last && !team->over)
        pthread_cond_wait(&team->work, &team->lock);
    uint64_t next = team->over ? 0 : team->runs;
    pthread_mutex_unlock(&team->lock);
    return next;
}

static void report_done(pki_bench_team *team)
{
    pthread_mutex_lock(&team->lock);
    if (--team->busy == 0)
        pthread_cond_signal(&team->done);
    pthread_mutex_unlock(&team->lock);
}

static void *work(void *arg)
{
    member *self = arg;
    for (uint64_t run = 0; (run = await_work(self->team, run)) != 0;) {
        self->team->job(self->team->arg, self->number);
        report_done(self->team);
    }
    return NULL;
}

/* The program's signals are for the program's threads. */
static int start(member *m)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&m->thread, NULL, work, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

pki_bench_team *pki_bench_team_create(unsigned threads, void (*job)(void *arg, unsigned thread),
                                      void *arg)
{
    size_t bytes = sizeof(pki_bench_team) + threads * sizeof(member);
    pki_bench_team *team =
        aligned_alloc(PKI_LINE, (bytes + PKI_LINE - 1) & ~(size_t)(PKI_LINE - 1));
    if (!team)
        return NULL;
    *team = (pki_bench_team){.threads = threads, .started = 1, .job = job, .arg = arg};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work, NULL);
    pthread_cond_init(&team->done, NULL);
    for (unsigned i = 1; i < threads; i++) {
        team->members[i].team = team;
        team->members[i].number = i;
        int error = start(&team->members[i]);
        if (error) {
            pki_bench_team_destroy(team);
            errno = error;
            return NULL;
        }
        team->started++;
    }
    return team;
}

void pki_bench_team_destroy(pki_bench_team *team)
{
    if (!team)
        return;
    pthread_mutex_lock(&team->lock);
    team->over = true;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    for (unsigned i = 1; i < team->started; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->work);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

void pki_bench_team_run(pki_bench_team *team)
{
    pthread_mutex_lock(&team->lock);
    team->arrived = 0;
    team->busy = team->threads;
    team->runs++;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    team->job(team->arg, 0);
    pthread_mutex_lock(&team->lock);
    team->busy--;
    while (team->busy)
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

void pki_bench_team_meet(pki_bench_team *team)
{
    __atomic_fetch_add(&team->arrived, 1, __ATOMIC_ACQ_REL);
    for (unsigned spins = 0; pki_load_acquire(&team->arrived) < team->threads; spins++)
        if (spins >= SPINS)
            sched_yield();
}
