/* victim.c - a program that records, says so, and goes on until it is killed. */
#include <pk/pk.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* As a backup does: of the locks that a process has as such, none is left after it. */
static void read_arena(void)
{
    char path[4096], byte;
    const char *apart = getenv("PK_ARENA_PATH"), *trace = getenv("PK_TRACE_PATH");
    snprintf(path, sizeof path, "%s%s", apart ? apart : trace, apart ? "" : ".arena");
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, &byte, 1) != 1)
        _exit(1);
    close(fd);
}

int main(void)
{
    static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_WAIT, "inner");
    if (pk_start(NULL) != PK_OK)
        return 1;
    alarm(240); /* should nobody kill it */
    for (int i = 0; i < 500; i++) {
        PK_SCOPE_NAMED("done") {
            pk_region_mark(pk_region_variant(&outer, "i", i % 5));
        }
        pk_step(1);
    }
    pk_flush();
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    read_arena();
    puts("under way");
    fflush(stdout);
    for (;;)
        pause();
}
