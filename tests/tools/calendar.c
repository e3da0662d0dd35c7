/* Preloaded: the calendar's clock is an hour ahead as soon as the file that CALENDAR_AHEAD names is
 * there. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *);
    void *symbol = dlsym(RTLD_NEXT, "clock_gettime");
    const char *file = getenv("CALENDAR_AHEAD");
    memcpy(&real, &symbol, sizeof real);
    int status = real(id, now);
    if (id == CLOCK_REALTIME && file && access(file, F_OK) == 0)
        now->tv_sec += 3600;
    return status;
}
