#include "session/windows/window_costs.h"

#include <string.h>

#include "session/costs/energy.h"
#include "session/job/goodput_account.h"
#include "session/costs/gpu_memory.h"
#include "session/costs/io.h"
#include "session/costs/memory.h"

static pki_window_costs before;

static uint64_t end_of(const pki_session *s, const pki_window *window)
{
    return window->last ? s->stop_ns
                        : pki_clock_ns(&s->arena->header->clock, pki_ticks(s->config.monotonic));
}

/* Of the session so far. */
static bool read_now(const pki_session *s, const pki_window *window, pki_window_costs *now)
{
    pki_summary all = {.threads = window->threads, .thread_count = window->thread_count};
    bool done = pki_io_summarise(s, &all) && pki_gpu_memory_so_far(&now->gpu_memory);
    now->io = all.io;
    now->memory = pki_memory_so_far();
    pki_fold_lock();
    done = pki_energy_so_far(&now->energy) && done;
    pki_goodput_fill(end_of(s, window), window->last, &now->goodput);
    pki_fold_unlock();
    return done;
}

bool pki_window_add_costs(const pki_session *s, pki_window *window)
{
    pki_window_costs now = {0};
    bool done = read_now(s, window, &now) && pki_window_costs_more(&now, &before, &window->costs);
    if (!done) {
        pki_window_costs_finish(&now);
        return false;
    }
    pki_window_costs_finish(&before);
    before = now;
    pki_gpu_memory_cut();
    return true;
}

void pki_window_costs_forget(void)
{
    pki_window_costs_finish(&before);
}

/* What is there may be half of something. */
void pki_window_costs_after_fork(void)
{
    memset(&before, 0, sizeof before);
}
