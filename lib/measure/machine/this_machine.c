#include "measure/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/processors.h"

/* Up to size - 1 bytes from the beginning of a file, and a NUL. -1 and errno. */
static ssize_t read_head(int fd, char *text, size_t size)
{
    size_t have = 0;
    ssize_t n = 0;
    while (have + 1 < size && (n = read(fd, text + have, size - 1 - have)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        have += (size_t)n;
    }
    text[have] = '\0';
    return (ssize_t)have;
}

/* ---- which machine this is ---- */

static void find_cpu(char *cpu, size_t size)
{
    struct utsname name;
    if (!pki_cpu_name("", cpu, size))
        snprintf(cpu, size, "%s", uname(&name) == 0 ? name.machine : "unknown");
}

/* What the file takes: no control characters, no bytes beyond ASCII. */
static void make_plain(char *text, const char *otherwise, size_t size)
{
    for (char *c = text; *c; c++)
        if (*c < 0x20 || *c > 0x7E)
            *c = '?';
    if (!*text)
        snprintf(text, size, "%s", otherwise);
}

void pki_machine_here(pki_machine *m)
{
    struct utsname name;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    memset(m, 0, sizeof *m);
    if (uname(&name) == 0)
        snprintf(m->host, sizeof m->host, "%.63s", name.nodename);
    find_cpu(m->cpu, sizeof m->cpu);
    make_plain(m->host, "unknown", sizeof m->host);
    make_plain(m->cpu, "unknown", sizeof m->cpu);
    m->processors = online > 0 ? (uint64_t)online : 1;
}

/* ---- its file ---- */

bool pki_machine_path(const char *host, char path[PATH_MAX])
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    char safe[64];
    int n;
    snprintf(safe, sizeof safe, "%s", host);
    for (char *c = safe; *c; c++)
        if (*c == '/')
            *c = '_';
    /* Relative paths are to be ignored, says the XDG specification. */
    if (cache && cache[0] == '/')
        n = snprintf(path, PATH_MAX, "%s/perfkit/machine-%s.txt", cache, safe);
    else if (home && home[0] == '/')
        n = snprintf(path, PATH_MAX, "%s/.cache/perfkit/machine-%s.txt", home, safe);
    else
        return false;
    return n > 0 && n < PATH_MAX;
}

static bool read_file(const char *path, char text[PKI_MACHINE_BYTES + 1], size_t *length, char *why,
                      size_t size)
{
    struct stat s;
    /* A pipe in its place would have the program wait. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = -1;
    if (fd < 0) {
        snprintf(why, size, "%s", strerror(errno));
        return false;
    }
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode))
        n = read_head(fd, text, PKI_MACHINE_BYTES + 1);
    close(fd);
    if (n < 0)
        snprintf(why, size, "is no file that can be read");
    *length = n < 0 ? 0 : (size_t)n;
    return n >= 0;
}

static bool is_here(const pki_machine *m, bool named, char *why, size_t size)
{
    pki_machine here;
    pki_machine_here(&here);
    if (strcmp(here.cpu, m->cpu) != 0)
        snprintf(why, size, "was measured on %.60s, and this is %.60s", m->cpu, here.cpu);
    else if (here.processors != m->processors)
        snprintf(why, size, "was measured with %llu processors, and there are %llu",
                 (unsigned long long)m->processors, (unsigned long long)here.processors);
    else if (!named && strcmp(here.host, m->host) != 0)
        snprintf(why, size, "was measured on host %s, and this is %s", m->host, here.host);
    else
        return true;
    return false;
}

bool pki_machine_read(const char *path, pki_machine *m, char *why, size_t size)
{
    char text[PKI_MACHINE_BYTES + 1];
    size_t length;
    return read_file(path, text, &length, why, size) &&
           pki_machine_parse(text, length, m, why, size);
}

bool pki_machine_load(const char *path, bool named, pki_machine *m, char *why, size_t size)
{
    return pki_machine_read(path, m, why, size) && is_here(m, named, why, size);
}
