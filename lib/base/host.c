#include "base/host.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu_files.h"
#include "base/small_file.h"

#define GPUS "/proc/driver/nvidia/gpus"

static void read_system(pki_host *m)
{
    struct utsname names;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    m->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    m->processors = online > 0 ? (uint64_t)online : 0;
    if (uname(&names) != 0)
        return;
    snprintf(m->kernel, sizeof m->kernel, "%.20s %.70s", names.sysname, names.release);
    snprintf(m->architecture, sizeof m->architecture, "%.31s", names.machine);
}

static void read_gpu(pki_host *m)
{
    char path[400], text[1024];
    DIR *folder = opendir(GPUS);
    for (struct dirent *e; folder && !m->gpu[0] && (e = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%.255s/information", GPUS, e->d_name);
        pki_small_file(path, text, sizeof text);
        pki_small_file_field(text, "Model", m->gpu, sizeof m->gpu);
    }
    if (folder)
        closedir(folder);
    pki_small_file("/proc/driver/nvidia/version", text, sizeof text);
    const char *module = strstr(text, "Module");
    if (module)
        snprintf(m->driver, sizeof m->driver, "%.*s",
                 (int)strcspn(module + 6 + strspn(module + 6, " "), " \n"),
                 module + 6 + strspn(module + 6, " "));
}

void pki_host_read(pki_host *m)
{
    memset(m, 0, sizeof *m);
    pki_cpu_name("", m->cpu, sizeof m->cpu);
    read_system(m);
    read_gpu(m);
}
