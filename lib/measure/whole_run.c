#include "measure/whole_run.h"

#include "base/compiler.h"

#include <string.h>

uint64_t pki_thread_tracked(const pki_thread_row *thread)
{
    uint64_t sum = 0;
    for (int k = 0; k < PKI_KINDS; k++)
        sum += thread->kinds[k];
    return sum;
}

static const pki_thread_row *main_thread(const pki_summary *s)
{
    const pki_thread_row *busiest = NULL;
    for (size_t i = 0; i < s->thread_count; i++) {
        const pki_thread_row *thread = &s->threads[i];
        if (thread->tid == s->run.pid && pki_thread_tracked(thread) > 0)
            return thread;
        if (pki_thread_tracked(thread) > (busiest ? pki_thread_tracked(busiest) : 0))
            busiest = thread;
    }
    return busiest;
}

bool pki_whole_run_fill(pki_summary *s)
{
    bool stepped = s->steps.count || s->steps.step_kind_count;
    const pki_thread_row *thread = stepped ? NULL : main_thread(s);
    pki_whole_run *whole = &s->whole_run;
    if (!thread || s->run.wall == 0)
        return true;
    uint64_t inside = pki_thread_tracked(thread);
    whole->time = PKI_MAX(s->run.wall, inside);
    memcpy(whole->kinds, thread->kinds, sizeof thread->kinds);
    whole->kinds[PKI_UNTRACKED] = whole->time - inside;
    whole->busiest = thread->tid != s->run.pid;
    whole->thread = strdup(thread->name ? thread->name : "");
    return whole->thread != NULL;
}
