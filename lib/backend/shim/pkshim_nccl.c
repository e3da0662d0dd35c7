/* NCCL's profiler interface: tables that perfkit fills in. As long as it has not, NCCL is told that
 * there is no profiler. */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
enum { SYSTEM_ERROR = 2 };

/* The same for every version: a name, and five functions of which the first is asked first. */
typedef struct table {
    const char *name;
    int (*init)(void);
    int (*start)(void *context, void **event, void *description);
    int (*stop)(void *event);
    int (*state)(void *event, int state, void *args);
    int (*finalize)(void *context);
} table;

static int refuse(void)
{
    return SYSTEM_ERROR;
}

static int start(void *context, void **event, void *description)
{
    (void)context;
    (void)description;
    *event = NULL;
    return 0;
}

static int ignore(void *object)
{
    (void)object;
    return 0;
}

static int ignore_state(void *event, int state, void *args)
{
    (void)event;
    (void)state;
    (void)args;
    return 0;
}

#define TABLE(V)                                                                                   \
    extern EXPORT table ncclProfiler_v##V;                                                         \
    table ncclProfiler_v##V = {"", refuse, start, ignore, ignore_state, ignore};
TABLE(2)
TABLE(3)
TABLE(4)
TABLE(5)
TABLE(6)
