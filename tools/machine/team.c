#include "machine/team.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "memory.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSORS_MOST 8192

unsigned team_processors(int *processors, unsigned room)
{
    size_t bytes = CPU_ALLOC_SIZE(PROCESSORS_MOST);
    cpu_set_t *set = CPU_ALLOC(PROCESSORS_MOST);
    unsigned count = 0;
    memory_needed(set != NULL);
    if (sched_getaffinity(0, bytes, set) == 0)
        for (int i = 0; i < PROCESSORS_MOST && count < room; i++)
            if (CPU_ISSET_S((size_t)i, bytes, set))
                processors[count++] = i;
    CPU_FREE(set);
    if (count == 0)
        processors[count++] = -1;
    return count;
}

/* Where the system refuses, the thread is somewhere else, and the figures are what they are. */
static void stay(int processor)
{
    size_t bytes = CPU_ALLOC_SIZE(PROCESSORS_MOST);
    cpu_set_t *set = processor < 0 ? NULL : CPU_ALLOC(PROCESSORS_MOST);
    if (!set)
        return;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S((size_t)processor, bytes, set);
    sched_setaffinity(0, bytes, set);
    CPU_FREE(set);
}

static void *serve(void *arg)
{
    team_member *m = arg;
    team *t = m->team;
    stay(m->processor);
    for (;;) {
        pthread_barrier_wait(&t->begin);
        if (!t->work)
            return NULL;
        uint64_t before = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
        m->begin = pki_monotonic_ns();
        t->work(t->user, m->number);
        m->end = pki_monotonic_ns();
        m->on_processor = pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - before;
        pthread_barrier_wait(&t->end);
    }
}

/* Those that have begun wait at the barrier for ones that will not come: they go with the process,
 * which ends. */
bool team_make(team *t, const int *processors, unsigned count, complaint *why)
{
    *t = (team){.count = count};
    t->members = memory_zeroed(count, sizeof *t->members);
    memory_needed(pthread_barrier_init(&t->begin, NULL, count + 1) == 0);
    memory_needed(pthread_barrier_init(&t->end, NULL, count + 1) == 0);
    for (unsigned i = 0; i < count; i++) {
        t->members[i] = (team_member){.team = t, .number = i, .processor = processors[i]};
        int error = pthread_create(&t->members[i].thread, NULL, serve, &t->members[i]);
        if (error)
            return complaint_set(why, "no thread can be made: %s", strerror(error));
    }
    return true;
}

double team_do(team *t, team_work *work, void *user)
{
    uint64_t begin = UINT64_MAX, end = 0;
    t->work = work;
    t->user = user;
    pthread_barrier_wait(&t->begin);
    pthread_barrier_wait(&t->end);
    for (unsigned i = 0; i < t->count; i++) {
        const team_member *m = &t->members[i];
        begin = PKI_MIN(begin, m->begin);
        end = PKI_MAX(end, m->end);
        t->wanted += m->end - m->begin;
        t->had += m->on_processor;
    }
    return (double)PKI_MAX(end - begin, 1u) / 1e9;
}

uint64_t team_shortest(const team *t)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < t->count; i++)
        least = PKI_MIN(least, t->members[i].on_processor);
    return least;
}

void team_finish(team *t)
{
    t->work = NULL;
    pthread_barrier_wait(&t->begin);
    for (unsigned i = 0; i < t->count; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_barrier_destroy(&t->begin);
    pthread_barrier_destroy(&t->end);
    free(t->members);
}
