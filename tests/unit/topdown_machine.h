/* tests/unit/topdown_machine.h - what the kernel's files say of processors that count slots, in a
 * folder of the test's, which stands for /.
 */
#ifndef TESTS_TOPDOWN_MACHINE_H
#define TESTS_TOPDOWN_MACHINE_H

#include "folder.h"
#include "perf_mock.h"

#include "base/processors.h"

#define MACHINE "machine"
#define DEVICE "/sys/bus/event_source/devices/"

/* Its folders are made; NULL: there is no such file. */
static inline void machine_file(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, MACHINE "%s", path);
    for (char *slash = strchr(full, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0777);
        *slash = '/';
    }
    remove(full);
    FILE *file = text ? fopen(full, "w") : NULL;
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

/* Ice Lake and later; device: "cpu", or "cpu_core" where there are two sorts of cores. */
static inline void machine_intel(const char *device)
{
    static const char *const events[][2] = {{"slots", "event=0x00,umask=0x4\n"},
                                            {"topdown-retiring", "event=0x00,umask=0x80\n"},
                                            {"topdown-bad-spec", "event=0x00,umask=0x81\n"},
                                            {"topdown-fe-bound", "event=0x00,umask=0x82\n"},
                                            {"topdown-be-bound", "event=0x00,umask=0x83\n"}};
    char path[256];
    snprintf(path, sizeof path, DEVICE "%s/type", device);
    machine_file(path, "4\n");
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        snprintf(path, sizeof path, DEVICE "%s/events/%s", device, events[i][0]);
        machine_file(path, events[i][1]);
    }
    mock.core = MOCK_INTEL;
}

static inline void machine_amd(unsigned family, unsigned model)
{
    char text[256];
    snprintf(text, sizeof text,
             "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: %u\nmodel\t\t: %u\n"
             "model name\t: AMD EPYC\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\n",
             family, model);
    machine_file("/proc/cpuinfo", text);
    machine_file(DEVICE "cpu/type", "4\n");
    machine_file(DEVICE "cpu/events/cpu-cycles", "event=0x76\n");
    mock.core = MOCK_ZEN;
}

static inline int enter_machine(void **state)
{
    pki_topdown_root = MACHINE;
    return enter_folder(state) || use_mock(state);
}

static inline int leave_machine(void **state)
{
    pki_topdown_root = "";
    return leave_folder(state) || end_mock(state);
}

#endif
