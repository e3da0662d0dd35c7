/* A library that brings a perfkit of its own, none of whose symbols anybody else can see. */
#include <stdio.h>
#include <string.h>

#include <pk/pk.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN int copy_start(char *why, size_t size);
SHOWN int copy_stop(void);
SHOWN unsigned long long copy_others(void);

static void hear(void *why, pk_log_level level, const char *message)
{
    if (level == PK_LOG_ERROR)
        snprintf(why, 320, "%s", message);
}

/* What is wrong comes through the log. */
int copy_start(char *why, size_t size)
{
    memset(why, 0, size);
    return pk_start(pk_options(.backends = "none", .log = hear, .log_user = why));
}

int copy_stop(void)
{
    return pk_stop();
}

unsigned long long copy_others(void)
{
    pk_counts counts = {.size = sizeof counts};
    return pk_get_counts(&counts) == PK_OK ? counts.other_starts : 999;
}
