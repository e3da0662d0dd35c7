/* A program with spans, for spans.py: `spans_run run|killed`. Options come from the environment. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pk/pk.h>

enum { STEPS = 40, EACH = 5 };

static pk_region request = PK_REGION_OF(PK_COMM, "request"), queued = PK_REGION("queued");
static pk_region work = PK_REGION_OF(PK_COMPUTE, "work"), session = PK_REGION("user \"session\"");

static void spend(void)
{
    const struct timespec some = {0, 200000};
    nanosleep(&some, NULL);
}

static void *end_all(void *argument)
{
    pk_span *spans = argument;
    for (int i = 0; i < EACH; i++) {
        pk_span_mark(&spans[i], &queued);
        pk_span_end(&spans[i]);
    }
    return NULL;
}

static int step(uint64_t n)
{
    pk_span spans[EACH];
    pthread_t thread;
    for (uint64_t i = 0; i < EACH; i++)
        spans[i] = pk_span_begin(&request, n * EACH + i);
    pk_region_begin(&work);
    spend();
    pk_region_end(&work);
    if (pthread_create(&thread, NULL, end_all, spans))
        return 1;
    return pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    int failed = argc != 2 || pk_start(NULL) != PK_OK;
    pk_span all = pk_span_begin(&session, UINT64_MAX); /* open to the end */
    for (uint64_t n = 0; n < STEPS && !failed; n++) {
        failed = step(n);
        pk_step(1);
    }
    if (argc == 2 && strcmp(argv[1], "killed") == 0)
        raise(SIGKILL);
    pk_span copy = all;
    if (argc == 2 && strcmp(argv[1], "twice") == 0) {
        pk_span_end(&all);
        pk_span_end(&copy);
    }
    return failed || pk_stop() != PK_OK;
}
