#include "base/world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/launcher.h"

/* CLOCK_MONOTONIC begins with the machine's start, and a time namespace may have shifted it. */
static void detect_clock(pki_world *w)
{
    static const char usual[] = "time:[4026531834]"; /* that of the machine itself */
    char boot[40], space[48] = "";
    ssize_t n = readlink("/proc/self/ns/time", space, sizeof space - 1);
    if (!pki_read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot))
        return;
    bool shifted = n > 0 && strcmp(space, usual) != 0;
    snprintf(w->clock, sizeof w->clock, "%s%s%s", boot, shifted ? " " : "", shifted ? space : "");
}

static void detect_program(pki_world *w)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    const char *last = strrchr(path, '/');
    snprintf(w->program, sizeof w->program, "%.127s", last ? last + 1 : "program");
}

void pki_world_detect(pki_world *w)
{
    memset(w, 0, sizeof *w);
    w->pid = (uint32_t)getpid();
    if (gethostname(w->host, sizeof w->host - 1) != 0)
        strcpy(w->host, "localhost");
    detect_program(w);
    detect_clock(w);
    pki_launcher_read(w);
}
