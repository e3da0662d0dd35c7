#include "fault.h"

#include "kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define NOT_MADE 77 /* a child's status: the call that was to fail was never made */

typedef struct attempt {
    void (*session)(const fault *f);
    const fault *fault;
} attempt;

void fault_arm(const fault *f)
{
    failing_arm(f->function, f->which.name ? &f->which : NULL, f->way, f->error);
}

static void child(void *arg)
{
    const attempt *a = arg;
    a->session(a->fault);
    if (!failing_hit())
        exit(NOT_MADE);
}

static int run(void (*session)(const fault *f), const fault *f)
{
    kit_clean();
    int status = kit_child(child, &(attempt){session, f}, 240);
    if (status != 0 && status != NOT_MADE)
        fail_msg("%s failing (error %d) at call %u by way %u of %u: the child ended with %d",
                 f->function, f->error, f->which.times, (unsigned)f->which.name,
                 failing_ways->count, status);
    return status;
}

static ways *shared_ways(void)
{
    if (!failing_ways)
        failing_ways = mmap(NULL, sizeof *failing_ways, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(failing_ways, MAP_FAILED);
    memset(failing_ways, 0, sizeof *failing_ways);
    return failing_ways;
}

/* The next call that tells something, behind this one; false: there is none. */
static bool next_call(const ways *w, bool once, unsigned *at, way *which)
{
    for (; *at < WAYS_MOST; (*at)++, which->times = 0)
        while (which->times < w->seen[*at].times)
            if (way_tells(++which->times) && (which->times == 1 || !once)) {
                which->name = w->seen[*at].name;
                return true;
            }
    return false;
}

/* Leaves in w the ways that are new. */
static void without_known(ways *w, ways *known)
{
    for (unsigned at = 0; at < WAYS_MOST; at++)
        if (w->seen[at].name && ways_count(known, w->seen[at].name) > 1)
            w->seen[at].times = 0;
}

static void check_calls(const fault *f, const ways *w, unsigned made, unsigned chosen)
{
    if (made == 0)
        fail_msg("%s is never called: this tests nothing", f->function);
    if (2 * made < chosen)
        fail_msg("%s: only %u of %u calls came again: ways have other names there", f->function,
                 made, chosen);
    if (w->count == WAYS_MOST / 2)
        fail_msg("%s: more ways than there is room for", f->function);
}

/* First with none that fails. All from one line, which is part of each way. Threads may come by a
 * way less often than they did when the ways were counted. */
void fault_sweep_on(void (*session)(const fault *f), fault f, ways *known)
{
    unsigned made = 0, chosen = 0, at = 0;
    ways *w = shared_ways();
    (void)way_here(); /* loads what it needs, here and for all children */
    f.which = (way){0};
    do {
        int status = run(session, &f);
        assert_true(f.which.name || status == NOT_MADE);
        if (!f.which.name)
            without_known(w, known);
        chosen += f.which.name != 0;
        made += status == 0;
    } while (next_call(w, f.once, &at, &f.which));
    check_calls(&f, w, made, chosen);
}

void fault_sweep(void (*session)(const fault *f), fault f)
{
    static ways none;
    memset(&none, 0, sizeof none);
    fault_sweep_on(session, f, &none);
}
