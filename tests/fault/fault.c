#include "fault.h"

#include "kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOT_MADE 77 /* a child's status: the call that was to fail was never made */
#define MOST 4000   /* calls of one function; a session makes far fewer */

typedef struct attempt {
    void (*session)(const fault *f);
    const fault *fault;
} attempt;

static void child(void *arg)
{
    const attempt *a = arg;
    a->session(a->fault);
    if (!failing_hit())
        exit(NOT_MADE);
}

void fault_sweep(void (*session)(const fault *f), fault f)
{
    for (f.n = 1; f.n < MOST; f.n++) {
        kit_clean();
        int status = kit_child(child, &(attempt){session, &f}, 240);
        if (status == NOT_MADE)
            break;
        if (status != 0)
            fail_msg("%s failing at its call %u (error %d): the child ended with %d", f.function,
                     f.n, f.error, status);
        if (f.n >= 24) /* later calls of one kind repeat the earlier ones */
            f.n += kit_sanitized("address") || kit_valgrind() ? f.n : f.n / 4;
    }
    if (f.n == 1)
        fail_msg("%s is never called: this tests nothing", f.function);
    assert_true(f.n < MOST);
}
