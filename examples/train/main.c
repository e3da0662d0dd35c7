/* pk-train: a training program instrumented with perfkit.
 *
 * Where to look: main.c starts and stops a session; trainer.c has the step and its phases, with
 * their kinds; model.c and the layers have the regions inside, with variants and amounts of work;
 * loader.c and queue.c have another thread and a counter; checkpoint.c has I/O. Nothing else is
 * needed, and nothing of it needs a switch: without a session every one of these calls is a load
 * and a branch.
 */
#include <pk/pk.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "trainer.h"

enum { GOOD = 0, FAILED = 1, BAD_INPUT = 2 };

static volatile sig_atomic_t stop;

static void ask_to_stop(int number)
{
    (void)number;
    stop = 1;
}

/* The step under way is finished first, so that the checkpoint is a whole one. perfkit installs no
 * signal handlers of its own. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* A field that is NULL is left to its environment variable (PK_TRACE_PATH, PK_REPORT_PATH). A path
 * that cannot be written is worth ending for here, where nothing has been computed yet; a program
 * that would rather train than measure prints the line and goes on, with perfkit off. */
static bool start_session(const options *o)
{
    pk_status status = pk_start(pk_options(.trace_path = o->trace, .report_path = o->report));
    if (status != PK_OK)
        complain("perfkit: %s (%s)", pk_error_message(), pk_status_name(status));
    return status == PK_OK;
}

/* Trouble with the trace, a full disk for one, does not disturb the training and is told of here;
 * PK_LOG=stderr tells at once. */
static void stop_session(void)
{
    pk_status status = pk_stop();
    if (status != PK_OK)
        complain("perfkit: %s (%s)", pk_error_message(), pk_status_name(status));
}

static int train(const options *o)
{
    trainer t;
    int status = BAD_INPUT;
    if (trainer_init(&t, o))
        status = trainer_run(&t, &stop) ? GOOD : FAILED;
    trainer_finish(&t);
    return status;
}

int main(int argc, char **argv)
{
    options o;
    if (!options_parse(&o, argc, argv))
        return BAD_INPUT;
    if (o.help) {
        options_print_help();
        return GOOD;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    catch_signals();
    if (!start_session(&o))
        return BAD_INPUT;
    pk_thread_set_name("trainer");
    int status = train(&o);
    stop_session();
    return status;
}
